"""The pages on proposals, without scripts: the list with its filters, one proposal, and the decisions."""

import re
from html import unescape
from typing import Any

import pytest
import sqlalchemy as sa

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.proposals.conftest import Propose
from tests.community import Community
from tests.fixture_types import Clock, Events, Run
from trellis.admin.page import PageRequest
from trellis.admin.proposals import deciding, index, proposal
from trellis.admin.proposals.deciding import Decision, decide
from trellis.core.gate import Gate, Result
from trellis.core.proposals import effects
from trellis.errors import Refused
from trellis.store.tables import proposals


def _decide(admin: Visitor, path: str, action: str, *chosen: int, reason: str = "") -> Any:
    form = find_form(admin.get(path), path)
    return admin.post(path, form.filled(*(("proposal", str(number)) for number in chosen), _action=action, reason=reason))


def _child_of(run: Run, forum: int) -> dict[str, Any]:
    children = [one for one in run("forums.list", perPage=1000)["results"] if one["parentId"] == forum]
    return dict(children[0])


@pytest.fixture
def parent(community: Community, run: Run) -> dict[str, Any]:
    """A forum with children."""
    del community
    found = run("forums.list", perPage=1000)["results"]
    parents = {one["parentId"] for one in found}
    return next(one for one in found if one["id"] in parents)


def test_the_menu_tells_how_many_are_open(admin: Visitor, propose: Propose, run: Run) -> None:
    assert '<span class="unseen"> open</span>' not in admin.get("").text
    propose("forums.create", name="News")
    propose("forums.create", name="More")
    assert '<span class="badge note waiting">2<span class="unseen"> open</span></span>' in admin.get("").text
    run("proposals.reject", 1, reason="No.")
    assert '<span class="badge note waiting">1<' in admin.get("/keys").text


def test_none_is_open(admin: Visitor) -> None:
    page = page_text(admin.get("/proposals"))
    assert "Nothing is waiting for a decision" in page


def test_a_delete_is_shown_as_its_own_page_shows_it_and_rejected_with_a_reason(
    admin: Visitor, propose: Propose, run: Run, parent: dict[str, Any], events: Events
) -> None:
    number = propose("forums.delete", parent["id"], deleteChildrenOrMove=-1, reason="Nobody writes there.")
    page = page_text(admin.get(f"/proposals/{number}"))
    assert f"Agent proposes: Delete a forum {parent['name']}" in page
    assert f"Deletes: forum {parent['name']} , and" in page
    assert f"Agent created proposal 1: Delete a forum {parent['name']}" in page_text(admin.get("/events"))
    assert _child_of(run, parent["id"])["name"] in page
    assert "Nobody writes there." in page
    refused = _decide(admin, f"/proposals/{number}", "reject")
    assert (refused.status_code, "Enter a reason, so that" in page_text(refused)) == (400, True)
    assert 'aria-invalid="true"' in refused.text
    done = _decide(admin, f"/proposals/{number}", "reject", reason="It is still in use.")
    assert (done.status_code, done.headers["location"]) == (303, f"/admin/proposals/{number}")
    page = page_text(admin.get(f"/proposals/{number}"))
    assert f"Proposal {number} was rejected." in page
    assert "Mira Holm" in page
    assert "It is still in use." in page
    assert run("forums.get", parent["id"])["name"] == parent["name"]
    assert events()[-1]["type"] == "proposal.rejected"
    assert f"Mira Holm rejected proposal {number}: Delete a forum {parent['name']}" in page_text(admin.get("/events"))


def test_a_delete_that_moves_the_children_tells_where_they_go(
    admin: Visitor, propose: Propose, parent: dict[str, Any], run: Run
) -> None:
    to = run("forums.create", name="Attic")["id"]
    number = propose("forums.delete", parent["id"], deleteChildrenOrMove=to)
    page = page_text(admin.get(f"/proposals/{number}"))
    assert "Moves:" in page
    assert f"to forum {to}" in page
    assert _child_of(run, parent["id"])["name"] in page


def test_an_approved_one_is_done_and_can_be_undone(
    admin: Visitor, propose: Propose, parent: dict[str, Any], run: Run, events: Events
) -> None:
    number = propose("forums.update", parent["id"], name="Bulletin")
    page = page_text(admin.get(f"/proposals/{number}"))
    assert f"Change forum {parent['name']}" in page
    assert "Bulletin" in page
    done = _decide(admin, f"/proposals/{number}", "approve", reason="Fine.")
    assert done.status_code == 303
    assert run("forums.get", parent["id"])["name"] == "Bulletin"
    seq = events()[-2]["seq"]
    page = admin.get(f"/proposals/{number}")
    assert f'href="/admin/events/{seq}/undo"' in page.text
    assert f'href="/admin/events/{seq}"' in page.text
    told = page_text(admin.get(f"/events/{seq}"))
    assert "Agent changed forum Bulletin , approved by Mira Holm" in told
    assert "Approved by Mira Holm" in told
    assert f'href="/admin/proposals/{number}"' in admin.get(f"/events/{seq}").text
    assert "Agent changed forum Bulletin , approved by Mira Holm" in page_text(admin.get("/events"))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_who_may_not_undo_what_they_have_approved_is_not_told_of_it(visitor: MakeVisitor, propose: Propose, run: Run) -> None:
    run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, mustChangePassword=False, role="approver")
    ada = visitor()
    ada.sign_in("ada", PASSWORD)
    number = propose("forums.create", name="News")
    told = page_text(ada.get(_decide(ada, f"/proposals/{number}", "approve").headers["location"].removeprefix("/admin")))
    assert f"Proposal {number} was approved." in told
    assert "Undo" not in told


def test_what_has_changed_meanwhile_is_shown_and_cannot_be_approved(
    admin: Visitor, propose: Propose, parent: dict[str, Any], run: Run
) -> None:
    number = propose("forums.delete", parent["id"], deleteChildrenOrMove=-1)
    path = f"/proposals/{number}"
    form = find_form(admin.get(path), path).filled(_action="approve", reason="")
    run("forums.update", parent["id"], name="Bulletin")
    late = admin.post(path, form)
    assert late.status_code == 409
    for page in (late, admin.get(path)):
        text = page_text(page)
        assert "This proposal cannot be approved as it is." in text
        assert "forums.update of forum" in text
        assert f"{parent['name']} now: Bulletin" in text
        assert ("_action", "approve") not in find_form(page, path).buttons
    assert _decide(admin, path, "reject", reason="Outdated.").status_code == 303


def test_what_was_decided_meanwhile_is_told(admin: Visitor, propose: Propose, run: Run) -> None:
    number = propose("forums.create", name="News")
    path = f"/proposals/{number}"
    form = find_form(admin.get(path), path).filled(_action="approve", reason="")
    run("proposals.withdraw", number)
    late = admin.post(path, form)
    assert late.status_code == 409
    assert "This proposal has already been decided." in page_text(late)
    assert run("forums.list", search="News")["totalResults"] == 0


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("action", ["approve", "reject"])
def test_a_decision_that_is_sent_twice_is_taken_once(admin: Visitor, propose: Propose, events: Events, action: str) -> None:
    for path in (f"/proposals/{propose('forums.create', name='Board')}", "/proposals"):
        number = propose("forums.create", name="Garden") if path == "/proposals" else 0
        chosen = [("proposal", str(number))] if number else []
        form = find_form(admin.get(path), path).filled(*chosen, _action=action, reason="So.")
        first, before = admin.post(path, form), events()
        second = admin.post(path, form)
        assert (first.status_code, second.status_code) == (303, 303)
        assert second.headers["location"] == first.headers["location"]
        assert events() == before


def test_several_are_decided_on_at_once(admin: Visitor, propose: Propose, run: Run, parent: dict[str, Any], events: Events) -> None:
    made = propose("forums.create", name="Board")
    changed = propose("forums.update", parent["id"], name="Bulletin")
    third = propose("forums.create", name="Garden")
    run("forums.update", parent["id"], name="News of today")
    refused = _decide(admin, "/proposals", "approve")
    assert (refused.status_code, "Tick at least one proposal" in page_text(refused)) == (400, True)
    assert 'aria-invalid="true"' not in refused.text, "nothing is wrong with the reason"
    refused = _decide(admin, "/proposals", "reject", made)
    assert (refused.status_code, "Enter a reason, so that" in page_text(refused)) == (400, True)
    assert f'name="proposal" value="{made}" aria-label="Proposal {made}" checked' in refused.text
    done = _decide(admin, "/proposals", "approve", made, changed)
    page = page_text(done)
    assert done.status_code == 409
    assert "1 proposal was approved." in page
    assert f"Proposal {changed} : Nothing was done: what proposal {changed} affects has changed" in page
    assert [event["type"] for event in events()[-2:]] == ["forum.created", "proposal.approved"]
    assert _decide(admin, "/proposals", "reject", changed, third, reason="Not now.").status_code == 303
    assert "2 proposals were rejected." in page_text(admin.get("/proposals"))


def test_what_was_decided_before_the_service_was_busy_is_told(
    admin: Visitor, propose: Propose, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (propose("forums.create", name=name) for name in ("Board", "Desk", "Garden"))
    busy = {second}

    async def decide_unless_busy(request: PageRequest, decision: Decision, number: int, reason: str) -> Result:
        if number in busy:
            raise Refused("BUSY", "The database is busy. Nothing was changed; try again.")
        return await decide(request, decision, number, reason)

    monkeypatch.setattr(index, "decide", decide_unless_busy)
    refused = _decide(admin, "/proposals", "approve", first, second, third)
    assert refused.status_code == 409
    assert "1 proposal was approved." in page_text(refused)
    assert f"Proposal {second} : The database is busy." in page_text(refused)
    assert [run("proposals.get", number)["state"] for number in (first, second, third)] == ["approved", "open", "open"]
    ticked = re.findall(r'name="proposal" value="(\d+)" aria-label="Proposal \d+" checked', refused.text)
    assert {int(one) for one in ticked} == {second, third}
    busy.add(third)
    assert _decide(admin, "/proposals", "approve", third).status_code == 503


@pytest.mark.either_engine
def test_more_than_a_page_lists_are_not_decided_on_at_once(
    admin: Visitor, propose: Propose, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [propose("forums.create", name=f"Board {number}") for number in range(3)]
    monkeypatch.setattr(index, "MOST_PER_PAGE", 2)
    before = events()
    refused = _decide(admin, "/proposals", "approve", *made)
    assert refused.status_code == 400
    assert "At most 2 proposals can be decided on at once. Tick fewer." in page_text(refused)
    assert events() == before
    assert _decide(admin, "/proposals", "approve", *made[:2]).status_code == 303


def test_the_list_is_filtered(admin: Visitor, propose: Propose, run: Run, clock: Clock) -> None:
    first = propose("forums.create", name="News")
    propose("forums.create", name="Board")
    run("proposals.reject", first, reason="No.")
    assert [name in page_text(admin.get("/proposals")) for name in ("News", "Board")] == [False, True]
    assert [name in page_text(admin.get("/proposals?state=rejected")) for name in ("News", "Board")] == [True, False]
    assert [name in page_text(admin.get("/proposals?state=")) for name in ("News", "Board")] == [True, True]
    assert "rejected at the terminal" in page_text(admin.get("/proposals?state=rejected"))
    closed = admin.post(f"/proposals/{first}", {"_action": "reject", "reason": "No."})
    assert "It was rejected. The terminal closed it at" in page_text(closed)
    assert "Decided by The terminal" in page_text(closed)
    assert "No proposal matches" in page_text(admin.get("/proposals?operation=forums.delete"))
    assert "No proposal matches" in page_text(admin.get("/proposals?keyId=999"))
    assert ">Clear<" not in admin.get("/proposals?state=open&keyId=&operation=").text
    clock.move(days=7)
    admin.sign_in()
    assert "Nothing is waiting for a decision" in page_text(admin.get("/proposals"))
    assert "Board" in page_text(admin.get("/proposals?state=expired"))
    assert admin.get("/proposals?state=nothing").status_code == 400


def test_further_pages_show_the_same_states(admin: Visitor, propose: Propose, run: Run) -> None:
    for name in ("News", "Board", "Desk"):
        run("proposals.reject", propose("forums.create", name=name), reason="No.")
    propose("forums.create", name="Open")
    path, shown = "/proposals?state=any&perPage=2", []
    while path:
        page = admin.get(path)
        shown += [name for name in ("Open", "Desk", "Board", "News") if f">{name}</span>" in page.text]
        further = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = "/proposals" + unescape(further[1]) if further else ""
    assert shown == ["Open", "Desk", "Board", "News"]
    assert "state=any" in admin.get("/proposals?state=").text


def test_a_decision_leads_back_to_the_proposals_that_were_shown(admin: Visitor, propose: Propose, run: Run) -> None:
    numbers = [propose("forums.create", name=name) for name in ("News", "Board", "Desk")]
    run("filters.create", name="Forums", list="proposals", query="state=open&operation=forums.create&perPage=2", shared=True)
    path = admin.get("/filters/1").headers["location"].removeprefix("/admin")
    form = find_form(admin.get(f"{path}&page=2"), "&page=2&_filter=1")
    to = form.action.removeprefix("/admin")
    done = admin.post(to, form.filled(("proposal", str(numbers[0])), _action="reject", reason="No."))
    assert done.headers["location"] == f"/admin{to}"
    last = admin.get(to)  # its page has gone with the proposal
    assert last.status_code == 303
    page = admin.get(last.headers["location"].removeprefix("/admin"))
    assert "1 proposal was rejected." in page_text(page)
    assert 'href="/admin/filters/1" aria-current="true"' in page.text


def test_other_calls_are_shown_too(admin: Visitor, propose: Propose, run: Run, community: Community) -> None:
    del community
    group = run("groups.create", name="Editors")["id"]
    run("forums.create", name="Desk", permissions={"view": [group]})
    pages = [
        propose("groups.delete", group),
        propose("core.batch", operations=[{"operation": "forums.create", "body": {"name": "Board"}}]),
        propose(
            "structure.apply", document={"format": "trellis/1", "name": "spring", "forums": [{"externalId": "s", "name": "Spring"}]}
        ),
    ]
    told = [page_text(admin.get(f"/proposals/{number}")) for number in pages]
    assert "Desk" in told[0]
    assert "The group would be removed from the permissions of 1 node" in told[0]
    assert "Create forum Board" in told[1]
    assert "Create Forum Spring" in told[2]
    for number in pages:
        assert _decide(admin, f"/proposals/{number}", "approve").status_code == 303
        assert admin.get(f"/proposals/{number}").status_code == 200


def test_where_it_touches_more_than_nodes_the_password_is_asked_for(admin: Visitor, propose: Propose, clock: Clock) -> None:
    number = propose("webhooks.create", url="https://agents.example/hook", events=["*"])
    clock.move(hours=1)
    asked = _decide(admin, f"/proposals/{number}", "approve")
    assert (asked.status_code, "Enter your password" in asked.text) == (403, True)
    admin.post("/confirm-password", {"password": PASSWORD, "next": f"/admin/proposals/{number}"})
    assert _decide(admin, f"/proposals/{number}", "approve").status_code == 303
    assert "secret" not in admin.get(f"/proposals/{number}").text


def test_what_is_not_kept_of_a_long_proposal_may_be_more_than_nodes(
    admin: Visitor, propose: Propose, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, bound in ((effects, "SHOWN", 10), (deciding, "SHOWN", 10), (proposal, "_SHOWN", 2)):
        monkeypatch.setattr(module, name, bound)
    steps = [{"operation": "forums.create", "body": {"name": f"Board {number}"}} for number in range(12)]
    hook = {"operation": "webhooks.create", "body": {"url": "https://agents.example/hook", "events": ["*"]}}
    few, many = (propose("core.batch", operations=some) for some in (steps[:5], [*steps, hook]))
    assert "And 3 more changes." in page_text(admin.get(f"/proposals/{few}"))
    shown = page_text(admin.get(f"/proposals/{many}"))
    assert ("more changes" in shown, "Further changes are not listed. The numbers above include them." in shown) == (False, True)
    clock.move(hours=1)
    for path, chosen in ((f"/proposals/{many}", ()), ("/proposals", (many,))):
        asked = _decide(admin, path, "approve", *chosen)
        assert (asked.status_code, "Enter your password" in asked.text) == (403, True)
    assert run("webhooks.list")["results"] == []
    assert _decide(admin, f"/proposals/{few}", "approve").status_code == 303


def test_one_of_a_kind_that_is_gone_is_shown_and_can_be_rejected(admin: Visitor, propose: Propose, gate: Gate, run: Run) -> None:
    number = propose("forums.create", name="Board")
    gate.store.write(lambda tx: tx.connection.execute(sa.update(proposals).values(operation="galleries.create"))).result(30)
    assert "galleries.create" in page_text(admin.get("/proposals"))
    page = page_text(admin.get(f"/proposals/{number}"))
    assert "galleries.create" in page
    assert "This proposal cannot be approved as it is." in page
    assert _decide(admin, f"/proposals/{number}", "reject", reason="We have no galleries any more.").status_code == 303
    assert run("proposals.get", number)["state"] == "rejected"


def test_a_delete_of_a_group_that_nodes_of_a_kind_that_is_gone_named_is_shown(
    admin: Visitor, propose: Propose, gate: Gate, run: Run
) -> None:
    group = run("groups.create", name="Patrons")["id"]
    run("forums.create", name="Board", permissions={"view": [group]})
    number = propose("groups.delete", group)

    _rename_forums(gate)
    assert "The group would be removed from the permissions of 1 node" in page_text(admin.get(f"/proposals/{number}"))


def test_a_document_with_nodes_of_a_kind_that_is_gone_is_shown(admin: Visitor, propose: Propose, gate: Gate, run: Run) -> None:
    above, below, other = ({"externalId": name, "name": name.title()} for name in ("above", "below", "other"))
    document: dict[str, Any] = {"format": "trellis/1", "name": "spring"}
    run("structure.apply", document=document | {"forums": [above, below, other]})
    number = propose("structure.apply", document=document | {"forums": [above | {"children": [below]}]})
    assert "Forum Above > Below" in page_text(admin.get(f"/proposals/{number}"))
    _rename_forums(gate)
    assert "Gallery Above > Below" in page_text(admin.get(f"/proposals/{number}"))


def _rename_forums(gate: Gate) -> None:
    """Let what is kept of proposals be about nodes of another kind, which is none."""
    renamed = sa.func.replace(proposals.c.content, '"resource":"forums"', '"resource":"galleries"')
    gate.store.write(lambda tx: tx.connection.execute(sa.update(proposals).values(content=renamed))).result(30)


def test_there_is_no_such_proposal(admin: Visitor) -> None:
    assert admin.get("/proposals/999").status_code == 404
    assert admin.post("/proposals/999", {"_action": "approve"}).status_code == 404
    assert admin.post("/proposals", {"_action": "approve", "proposal": "999"}).status_code == 409
    assert admin.post("/proposals", {"_action": "eat", "proposal": "1"}).status_code == 400
