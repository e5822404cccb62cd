"""An operation on nodes that is declared here: what the gate does for it, so that its function need not."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Final

import pytest

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from trellis.compose import compose
from trellis.core import nodes
from trellis.core.fields import Field, Text
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.verbs import Body, Verb
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings

STAMP: Final = Verb(name="stamp", method="POST", tail="/stamp", writes=True, body=Body.NEW, answer="What was stamped.", code="78")
RETITLE: Final = Verb(
    name="retitle", method="POST", tail="/{id}/retitle", writes=True, body=Body.CHANGES, if_match=True, answer="It.", code="79"
)
FIELDS: Final = (Field("text", Text(20), "What to stamp.", required=True), Field("color", Text(20), "In which colour."))


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return two operations that do nothing; one of them takes changes."""
    return tuple(build_operation(kind, verb, "Stamp it", "Stamps it.", _tell, FIELDS) for verb in (STAMP, RETITLE))


def _tell(_: NodeKind, context: Context) -> Outcome:
    return Outcome(dict(context.input.values), happened=False)


@pytest.fixture
def run(settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setattr(nodes, "_MODULES", (*nodes._MODULES, SimpleNamespace(operations=operations)))
    gate = compose(settings, KINDS, clock)
    yield runner(gate)
    gate.store.close()


def test_what_it_needs_and_was_not_sent_is_refused_with_what_is_wrong(run: Run) -> None:
    for raw, at_fault in (
        ({}, {"text": "MISSING_VALUE"}),
        ({"color": "x" * 21, "size": 3}, {"text": "MISSING_VALUE", "color": "INVALID_VALUE", "size": "UNKNOWN_PARAMETER"}),
    ):
        with pytest.raises(Refused) as refused:
            run("forums.stamp", **raw)
        assert {fault.field: fault.message for fault in refused.value.faults} == at_fault
    assert run("forums.stamp", text="Seen") == {"text": "Seen"}


def test_an_unknown_id_is_among_its_refusals_once() -> None:
    operation = build_operation(KINDS[1], RETITLE, "Retitle it", "Retitles it.", _tell, FIELDS, ("INVALID_PARENT",))
    assert [message for message, _ in operation.refusals] == ["INVALID_ID", "INVALID_PARENT"]
    with pytest.raises(ValueError, match=r"^forums\.retitle has INVALID_ID twice"):
        build_operation(KINDS[1], RETITLE, "Retitle it", "Retitles it.", _tell, FIELDS, ("INVALID_ID",))


def test_none_of_its_changes_is_needed(run: Run) -> None:
    forum = run("forums.create", name="News")["id"]
    assert run("forums.retitle", forum, color="red") == {"color": "red"}
    with pytest.raises(Refused, match="UNKNOWN_PARAMETER"):
        run("forums.retitle", forum, size=3)
