"""No administrator has a name that passes for another administrator, or for the terminal or the service."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from tests.admin.conftest import PASSWORD
from tests.fixture_types import Run
from trellis.core.actor import TERMINAL
from trellis.core.admins import create_first_run_token, names
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.languages import OFFERED, Language, load_offered
from trellis.store.tables import administrators


def add(run: Run, name: str, login: str) -> Mapping[str, Any]:
    added: Mapping[str, Any] = run("admins.create", name=name, login=login, password=PASSWORD)
    return added


def find_faults(refused: pytest.ExceptionInfo[Refused]) -> list[str]:
    return [fault.field for fault in refused.value.faults]


def test_a_name_that_looks_like_that_of_another_administrator_is_refused(run: Run) -> None:
    mira = add(run, "Mira Holm", "mira")
    jon = add(run, "Jon Aske", "jon")
    run("admins.disable", mira["id"])  # events still name her
    for name in (
        "Mira Holm",
        "MIRA  HOLM",
        "Mira\u00a0Holm",
        "Mira\u2060Holm",
        "\uff2dira Holm",
        "Mira Holm\u200e",
        "Mir\u0430 H\u03bflm",
        "\u041c\u0456ra \u041d\u043elm",
    ):
        for attempt in (
            partial(add, run, name, "other"),
            partial(run, "admins.invite", name=name, login="other", role="auditor"),
            partial(run, "admins.update", jon["id"], name=name),
        ):
            with pytest.raises(Refused) as refused:
                attempt()
            assert find_faults(refused) == ["name"], ascii(name)
    assert [one["name"] for one in run("admins.list")["results"]] == ["Mira Holm", "Jon Aske"]


def test_a_name_by_which_trellis_calls_a_part_of_itself_is_refused(run: Run, gate: Gate) -> None:
    link = create_first_run_token(gate)
    for name in ("The terminal", "terminal", "THE SERVICE", "Sign-in", "one-time link", "Das Terminal", "Th\u0435 terminal"):
        with pytest.raises(Refused) as refused:
            run("admins.begin", name=name, login="first", password=PASSWORD, link=link)
        assert find_faults(refused) == ["name"], ascii(name)
        assert "Choose another." in refused.value.detail


def test_administrators_who_had_the_same_name_before_stay_usable(run: Run, gate: Gate) -> None:
    mira, jon = add(run, "Mira Holm", "mira"), add(run, "Jon Aske", "jon")
    rename = sa.update(administrators).values(name="Mira Holm")
    gate.store.write(lambda tx: tx.connection.execute(rename), quiet=True).result()
    changed = run("admins.update", jon["id"], name="Mira Holm", login="jon.aske")
    assert (changed["name"], changed["login"]) == ("Mira Holm", "jon.aske")
    assert run("admins.update", mira["id"], name="mira holm (owner)")["name"] == "mira holm (owner)"
    assert run("admins.update", mira["id"], name="Mira H.")["name"] == "Mira H."
    assert run("admins.update", mira["id"], name="mira h.")["name"] == "mira h."  # nobody is in their own way


def test_the_catalogues_are_read_while_other_writes_go_on(run: Run, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    jon = add(run, "Jon Aske", "jon")
    written: list[str] = []

    def write_meanwhile(code: str) -> Language:
        written.append(gate.run(Call("forums.create", TERMINAL, {"name": f"Forum {len(written)}"})).value["name"])
        return load_offered(code)

    monkeypatch.setattr("trellis.core.admins.names.load_offered", write_meanwhile)
    for write in (
        lambda: add(run, "Mira Holm", "mira"),
        lambda: run("admins.invite", name="Kim Berg", login="kim", role="auditor"),
        lambda: run("admins.update", jon["id"], name="Jon A."),
    ):
        names.read_own_names.cache_clear()
        write()
        assert len(written) == len(OFFERED)
        written.clear()
