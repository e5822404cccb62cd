"""Saved filters: one's own and those that others share, with bounds, and with nothing of a list that one may not read."""

from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.filters import MOST
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused


@pytest.fixture
def admins(gate: Gate, run: Run) -> dict[str, Actor]:
    """An administrator of each of some roles."""
    made = {}
    for role in ("owner", "key-manager", "structure-editor", "auditor"):
        number = run("admins.create", name=role, login=role, password="correct horse battery", role=role)["id"]
        made[role] = Actor.administrator(number, role, gate.environment.permits.find(role))
    return made


def _list(gate: Gate, actor: Actor) -> list[str]:
    return [one["name"] for one in gate.run(Call("filters.list", actor, {})).value]


def _save(gate: Gate, actor: Actor, name: str, **raw: Any) -> int:
    return int(gate.run(Call("filters.create", actor, {"name": name, "list": "requests", "query": "status=4xx"} | raw)).value["id"])


def test_each_sees_their_own_and_what_is_shared_of_what_they_may_read(gate: Gate, admins: dict[str, Actor]) -> None:
    _save(gate, admins["auditor"], "Mine")
    _save(gate, admins["auditor"], "Ours", shared=True)
    _save(gate, admins["owner"], "Bulk", list="events", query="type=forum.deleted", shared=True)
    assert _list(gate, admins["auditor"]) == ["Mine", "Ours", "Bulk"]
    assert _list(gate, admins["owner"]) == ["Bulk", "Ours"]
    assert _list(gate, admins["structure-editor"]) == ["Bulk"]  # it reads no requests
    with pytest.raises(Refused, match="there is no 'requests'"):
        _save(gate, admins["structure-editor"], "Not for me")


def test_they_come_by_name_in_the_same_order_from_both_engines(gate: Gate, admins: dict[str, Actor]) -> None:
    for name in ("b", "Ärger", "A 2", "a-1", "C", "b 2"):
        _save(gate, admins["owner"], name)
    assert _list(gate, admins["owner"]) == ["A 2", "a-1", "b", "b 2", "C", "Ärger"]


def test_whose_it_is_changes_it_and_owners_what_is_shared(gate: Gate, admins: dict[str, Actor]) -> None:
    own, shared = _save(gate, admins["auditor"], "Mine"), _save(gate, admins["auditor"], "Ours", shared=True)

    def refusal(actor: str, number: int) -> str:
        with pytest.raises(Refused) as refused:
            gate.run(Call("filters.delete", admins[actor], {}, number))
        return refused.value.message

    assert refusal("owner", own) == refusal("key-manager", own) == "INVALID_ID"
    assert refusal("key-manager", shared) == "NO_PERMISSION"
    assert refusal("structure-editor", shared) == "INVALID_ID"  # it reads no requests, and is not shown this filter
    changed = gate.run(Call("filters.update", admins["owner"], {"name": "Everybody's"}, shared))
    assert changed.value["name"] == "Everybody's"
    assert changed.event is not None
    gate.run(Call("filters.delete", admins["auditor"], {}, own))
    assert _list(gate, admins["auditor"]) == ["Everybody's"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"name": "mine"}, "another filter of this list"),
        ({"list": "secrets"}, "there is no 'secrets'"),
        ({"query": "x" * 1001}, "query"),
        ({"query": "path=" + "ä" * 167}, "query is 1,007 characters long"),
        ({"query": "&".join(f"a{n}=1" for n in range(31))}, "more than 30"),
        ({"query": "path=trl_abcdefgh_" + "a" * 38}, "secret part"),
    ],
)
def test_what_is_no_filter_is_refused(gate: Gate, raw: dict[str, str], said: str) -> None:
    _save(gate, TERMINAL, "Mine")
    with pytest.raises(Refused) as refused:
        _save(gate, TERMINAL, **({"name": "Another"} | raw))
    assert said in " ".join(fault.detail for fault in refused.value.faults)


def test_there_is_a_most_and_places_in_a_list_are_left_out(gate: Gate) -> None:
    number = _save(gate, TERMINAL, "0", query="?status=4xx&before=x&page=3&_zone=UTC&path=")
    assert gate.run(Call("filters.list", TERMINAL, {})).value[0]["query"] == "status=4xx"
    for name in range(1, MOST):
        _save(gate, TERMINAL, str(name))
    with pytest.raises(Refused) as refused:
        _save(gate, TERMINAL, "One more")
    assert f"you already have {MOST} saved filters" in refused.value.faults[0].detail
    gate.run(Call("filters.delete", TERMINAL, {}, number))
    _save(gate, TERMINAL, "One more")
