"""The check of the database in the panel: nothing is read before somebody asks for it, and what is wrong can be repaired."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Run
from trellis.core.gate import Gate


def _damage(gate: Gate, forum: int) -> None:
    """Give a forum a name to search by that is not its own."""
    damage = text("UPDATE nodes SET name_key = '?' WHERE kind = 'forums' AND id = :id")
    gate.store.write(lambda tx: tx.connection.execute(damage, {"id": forum})).result(60)


def test_the_page_checks_nothing_until_it_is_asked_to(admin: Visitor, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bool] = []
    monkeypatch.setattr(gate, "run", lambda *_: checked.append(True))
    assert "The check changes nothing." in page_text(admin.get("/check"))
    assert checked == []


def test_what_is_wrong_is_found_and_repaired(admin: Visitor, gate: Gate, community: Community, run: Run) -> None:
    fine = admin.post("/check", find_form(admin.get("/check"), "/check").filled())
    assert "nothing is wrong" in page_text(fine)
    assert "Repair" not in page_text(fine)

    _damage(gate, community.news)
    found = admin.post("/check", find_form(fine, "/check").filled())
    assert "1 problem in" in page_text(found)
    repaired = admin.post("/check/repair", find_form(found, "/check/repair").filled())
    assert (repaired.status_code, repaired.headers["location"]) == (303, "/admin/check")
    again = admin.post("/check/repair", find_form(found, "/check/repair").filled())  # as by a double click
    assert (again.status_code, again.headers["location"]) == (303, "/admin/check")
    assert "1 problem was repaired." in page_text(admin.get("/check"))
    assert run("check.list")["count"] == 0


def test_a_repair_that_takes_too_long_here_can_be_made_in_a_terminal(admin: Visitor, gate: Gate, community: Community) -> None:
    _damage(gate, community.news)
    found = admin.post("/check", find_form(admin.get("/check"), "/check").filled())
    gate.calls.environment = replace(gate.environment, job_timeout=0)

    refused = admin.post("/check/repair", find_form(found, "/check/repair").filled())

    assert refused.status_code == 409
    assert "it takes too long here. Run trellis check --repair in a terminal." in page_text(refused).replace("`", "")


def test_a_repair_that_left_problems_says_so(
    admin: Visitor, gate: Gate, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.core.check.report._MAX_REPAIRS", 1)
    _damage(gate, community.news)
    _damage(gate, community.help)
    found = admin.post("/check", find_form(admin.get("/check"), "/check").filled())

    told = []
    for _ in range(2):
        admin.post("/check/repair", find_form(found, "/check/repair").filled())
        page = admin.get("/check")
        told.append(page_text(page))
        found = admin.post("/check", find_form(page, "/check").filled())

    assert "1 problem was repaired. There are more: check again" in told[0]
    assert "1 problem was repaired." in told[1]
    assert "There are more" not in told[1]
