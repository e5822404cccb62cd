"""What the sweeps send to an operation on nodes: a name if it takes one, and else what is in its example."""

from typing import Any

import pytest

from tests.sweeps.grantable import given_to
from trellis.compose import catalogue_of
from trellis.core.fields import Field, Integer, NodeId, Text
from trellis.core.nodes.crud import build_operation
from trellis.core.operation import Outcome
from trellis.core.verbs import Body, Verb
from trellis.kinds import KINDS
from trellis.kinds.forums import FORUMS

CATALOGUE = catalogue_of(KINDS)
INTO = Field("into", NodeId(), "Where to.", required=True, example=3)
PARAMETERS = (INTO, Field("depth", Integer(1), "How far down."), Field("note", Text(20), "A note.", example="Moved"))


@pytest.mark.parametrize("name", ["forums.create", "forums.update", "forums.copy"])
def test_a_name_is_all_that_is_sent_to_what_takes_one(name: str) -> None:
    assert given_to(CATALOGUE[name], "By name") == {"name": "By name"}


@pytest.mark.parametrize(
    ("body", "sent"), [(body, {"into": 3, "note": "Moved"}) for body in (Body.NEW, Body.CHANGES, Body.OPTIONS)]
)
def test_what_takes_no_name_is_sent_what_it_needs(body: Body, sent: dict[str, Any]) -> None:
    verb = Verb(name="merge", method="POST", tail="/{id}/merge", body=body, if_match=True, answer="The record.", code="77")
    operation = build_operation(FORUMS, verb, "Merge forums", "Merges two.", lambda *_: Outcome(None), PARAMETERS)
    assert given_to(operation, "By name") == sent
