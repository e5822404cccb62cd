"""A write of an administrator that waits for its turn, while their session ends."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.admins import find_session
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

PASSWORD = "correct horse battery"


@pytest.fixture
def mira(gate: Gate, run: Run) -> Actor:
    """Mira Holm, an owner, in a session of hers."""
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    admin = run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)["id"]
    me = find_session(gate, run("admins.sign_in", admin)["token"])
    assert me is not None
    return me.actor


LATE = ("groups.create", {"name": "Late"})
OWN = ("admins.set_password", {"password": "a third long password"})  # which is for every role


@pytest.mark.parametrize(
    ("operation", "raw", "late", "refusal"),
    [
        ("admins.sign_out", {"everywhere": True}, LATE, "Your session was ended"),
        ("admins.sign_out", {"everywhere": True}, OWN, "Your session was ended"),
        ("admins.set_password", {"password": "another long password"}, OWN, "Your session was ended"),
        ("admins.disable", {}, LATE, "Mira Holm was disabled"),
        ("admins.set_role", {"role": "auditor"}, LATE, "groups.create is for"),
        ("admins.set_role", {"role": "auditor"}, OWN, ""),
        ("admins.set_role", {"role": "structure-editor"}, LATE, ""),
        ("admins.update", {"name": "Mira Quist"}, LATE, ""),
    ],
)
def test_it_is_judged_by_the_session_at_its_turn(
    gate: Gate,
    run: Run,
    mira: Actor,
    operation: str,
    raw: Mapping[str, Any],
    late: tuple[str, Mapping[str, Any]],
    refusal: str,
) -> None:
    go, (name, values) = threading.Event(), late
    gate.store.write(lambda _: go.wait(30), quiet=True)
    changed = gate.submit(Call(operation, TERMINAL, raw, mira.id))
    if "password" in raw:  # whose digest is made first
        go.set()
        changed.result(30)
    last = gate.submit(Call(name, mira, values, mira.id if name.startswith("admins.") else None))
    go.set()
    changed.result(30)
    if refusal:
        with pytest.raises(Refused, match=refusal):
            last.result(30)
        return
    assert last.result(30).event is not None


def test_a_write_after_a_change_of_role_knows_its_session_still(gate: Gate, run: Run, mira: Actor) -> None:
    run("admins.set_role", mira.id, role="structure-editor")
    gate.run(Call("groups.create", mira, {"name": "One"}))
    run("admins.sign_out", mira.id, everywhere=True)
    with pytest.raises(Refused, match="Your session was ended"):
        gate.run(Call("groups.create", mira, {"name": "Two"}))
    assert "Two" not in str(run("groups.list"))
