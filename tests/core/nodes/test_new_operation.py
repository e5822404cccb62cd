"""An operation on nodes that is declared here: what the gate does for it, so that its function need not."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

import pytest

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from trellis.compose import compose
from trellis.core import nodes
from trellis.core.events import changed_members
from trellis.core.fields import Field, NodeId, Text, invalid_id
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation
from trellis.core.nodes.record import find_reachable, get_with_path, serialize_node
from trellis.core.operation import Call, Context, Operation, Outcome
from trellis.core.verbs import Body, Verb
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store import nodes as rows
from trellis.store import snapshots

STAMP: Final = Verb(name="stamp", method="POST", tail="/stamp", body=Body.NEW, answer="What was stamped.", code="78")
RETITLE: Final = Verb(
    name="retitle", method="POST", tail="/{id}/retitle", body=Body.CHANGES, if_match=True, answer="It.", code="79"
)
PAIR: Final = Verb(name="pair", method="POST", tail="/{id}/pair", body=Body.NEW, keeps_rows=True, answer="It.", code="80")
OTHER: Final = Field("other", NodeId(), "The other one.", required=True)
FIELDS: Final = (Field("text", Text(20), "What to stamp.", required=True), Field("color", Text(20), "In which colour."))


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return two operations that do nothing, of which one takes changes, and one that changes two nodes."""
    idle = tuple(build_operation(kind, verb, "Stamp it", "Stamps it.", _tell, FIELDS) for verb in (STAMP, RETITLE))
    return (*idle, build_operation(kind, PAIR, "Pair them", "Pairs them.", _pair, (OTHER,)))


def _tell(_: NodeKind, context: Context) -> Outcome:
    return Outcome(dict(context.input.values), happened=False)


def _pair(kind: NodeKind, context: Context) -> Outcome:
    """Mark the names of two nodes, as the tutorial says."""
    node, above = get_with_path(kind, context, PAIR)
    other = find_reachable(kind, context, context.input.get(OTHER.name))
    if other is None:
        raise invalid_id(kind.singular, context.input.get(OTHER.name), kind.missing_code(PAIR))
    after = {}
    for one in (node, other.node):
        snapshots.save(context.tx, kind.name, one, "changed")
        after[one.id] = replace(one, name=f"{one.name}!", updated_at=context.at)
        rows.update(context.tx, kind.name, after[one.id])
    old, new = (serialize_node(kind, one, above, context.environment.community_url) for one in (node, after[node.id]))
    touched = ({"resource": kind.name, "id": other.node.id, "how": "changed"},)
    return Outcome(new, resource_id=node.id, before=old, after=new, changed=changed_members(old, new), touched=touched)


@pytest.fixture
def gate(settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    monkeypatch.setattr(nodes, "_MODULES", (*nodes._MODULES, SimpleNamespace(operations=operations)))
    gate = compose(settings, KINDS, clock)
    yield gate
    gate.store.close()


@pytest.fixture
def run(gate: Gate) -> Run:
    return runner(gate)


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
    with pytest.raises(ValueError, match=r"^forums\.retitle declares a refusal twice"):
        build_operation(KINDS[1], RETITLE, "Retitle it", "Retitles it.", _tell, FIELDS, ("INVALID_ID",))


def test_none_of_its_changes_is_needed(run: Run) -> None:
    forum = run("forums.create", name="News")["id"]
    assert run("forums.retitle", forum, color="red") == {"color": "red"}
    with pytest.raises(Refused, match="UNKNOWN_PARAMETER"):
        run("forums.retitle", forum, size=3)


def test_a_second_node_stays_changed_if_the_event_is_undone(run: Run) -> None:
    first, second = (run("forums.create", name=name)["id"] for name in ("News", "Help"))
    run("forums.pair", first, other=second)
    assert [run("forums.get", node)["name"] for node in (first, second)] == ["News!", "Help!"]
    event = run("events.list", order="newest", limit=1)["results"][0]
    assert (event["type"], event["changed"], [one["id"] for one in event["touched"]]) == (
        "forum.paired",
        ["name", "path"],
        [second],
    )
    run("events.restore", event["seq"])
    assert [run("forums.get", node)["name"] for node in (first, second)] == ["News", "Help!"]


def test_a_node_out_of_reach_does_not_exist_for_a_parameter(run: Run, gate: Gate) -> None:
    first, second = (run("forums.create", name=name)["id"] for name in ("News", "Help"))
    text = run("keys.create", name="Plugin", grants=["forums.pair"], bounds={"forums.pair": {"under": [f"forums:{first}"]}})["key"]
    caller = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    for other in (second, 987_654):
        with pytest.raises(Refused, match=f"^INVALID_ID: There is no forum with the id {other}\\.$"):
            gate.run(Call("forums.pair", caller, {"other": other}, first))
