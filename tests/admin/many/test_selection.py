"""What is done with the nodes that were ticked: always what would happen first, then all of it or nothing."""

import re
from typing import Any

import pytest

from tests.admin.conftest import Visitor, before_writing, page_text
from tests.admin.html_forms import HtmlForm, find_form
from tests.community import GUESTS, MEMBERS, Community
from tests.fixture_types import Events, Run
from trellis.admin.many import actions, plan


def _start(admin: Visitor, kind: str, action: str, *ids: int, **values: str) -> tuple[Any, HtmlForm]:
    admin.get(f"/{kind}")
    page = admin.post(f"/{kind}/many/{action}", {"ids": [str(one) for one in ids], "_from": f"/admin/{kind}?open=1", **values})
    return page, find_form(page, f"/many/{action}")


def _names(run: Run, kind: str, **query: Any) -> list[str]:
    return [one["name"] for one in run(f"{kind}.list", sortBy="position", perPage=100, **query)["results"]]


def _undo(admin: Visitor, done: Any) -> str:
    """Undo what was done from the page that it leads to, and return what that said."""
    page = admin.get(done.headers["location"].removeprefix("/admin").partition("#")[0])
    undo = re.search(r'href="/admin(/change-sets/\d+/undo)"', page.text)
    assert undo is not None, page_text(page)
    assert admin.post(undo[1], find_form(admin.get(undo[1]), "/undo").filled()).status_code == 303
    return page_text(page)


def test_several_are_deleted_with_what_is_below_and_come_back_at_once(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    before, known = run("forums.tree"), events()
    page, form = _start(admin, "forums", "delete", community.news, community.betas, community.staff)
    said = page_text(page)
    assert "5 forums would be deleted" in said
    assert "1 other ticked node is below these and goes with them." in said
    assert "with 3 below it" in said
    assert events() == known
    done = admin.post("/forums/many/delete", form.filled(_action="do"))
    assert done.headers["location"] == "/admin/forums?open=1"
    assert _names(run, "forums", parentId="root") == ["Help", "Wiki"]
    _undo(admin, done)
    assert _without_times(run("forums.tree")) == _without_times(before)


def _without_times(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_without_times(one) for one in tree]
    return {n: _without_times(v) for n, v in tree.items() if n != "updatedAt"} if isinstance(tree, dict) else tree


@pytest.mark.either_engine
def test_a_form_counts_as_typed_into_once_something_was_asked_of_it(admin: Visitor, community: Community) -> None:
    """Whoever leaves a form with what they typed is asked whether to discard it, and nobody else."""
    page, form = _start(admin, "forums", "move", community.staff)
    planned = admin.post("/forums/many/move", form.filled(_action="plan", to=str(community.news)))
    assert ["data-typed" in one.text for one in (page, planned)] == [False, True]


def test_several_are_moved_in_their_order(admin: Visitor, community: Community, run: Run) -> None:
    _, form = _start(admin, "forums", "move", community.staff, community.help)
    page = admin.post("/forums/many/move", form.filled(_action="plan", to=str(community.news), place="first"))
    assert "2 forums would change" in page_text(page)
    assert "Staff → News > Staff" in page_text(page)
    done = admin.post("/forums/many/move", find_form(page, "/many/move").filled(_action="do"))
    assert _names(run, "forums", parentId=community.news) == ["Staff", "Help", "Releases", "Interviews"]
    _undo(admin, done)
    assert _names(run, "forums", parentId="root") == ["News", "Help", "Wiki", "Staff"]


def test_all_siblings_moved_to_the_end_keep_their_order(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    """The last is at the end already, but not when its turn comes."""
    _, form = _start(admin, "forums", "move", community.help, community.wiki, community.staff)
    page = admin.post("/forums/many/move", form.filled(_action="plan", place="last"))
    assert "3 forums would change" not in page_text(page), "they stay where they are"
    _, form = _start(admin, "forums", "move", community.news, community.staff)
    page = admin.post("/forums/many/move", form.filled(_action="plan", place="last"))
    assert "Place: 0 → 2" in page_text(page)
    done = admin.post("/forums/many/move", find_form(page, "/many/move").filled(_action="do"))
    assert _names(run, "forums", parentId="root") == ["Help", "Wiki", "News", "Staff"]
    _undo(admin, done)
    assert _names(run, "forums", parentId="root") == ["News", "Help", "Wiki", "Staff"]


def test_what_comes_at_the_last_moment_is_seen_before_it_goes(admin: Visitor, community: Community, run: Run) -> None:
    _, form = _start(admin, "forums", "delete", community.news, community.staff)
    with before_writing(lambda: run("forums.create", name="Late", parentId=community.betas)):
        page = admin.post("/forums/many/delete", form.filled(_action="do"))
    assert (page.status_code, "with 4 below it" in page_text(page)) == (409, True)
    assert run("forums.list", search="late")["totalResults"] == 1


def test_one_that_cannot_be_moved_keeps_all_where_they_are(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    known = events()
    _, form = _start(admin, "forums", "move", community.staff, community.news)
    page = admin.post("/forums/many/move", form.filled(_action="plan", to=str(community.betas)))
    assert page.status_code == 400
    assert "Under: a forum cannot be moved under" in page_text(page)
    assert "parentId" not in page_text(page)
    assert events() == known
    assert _names(run, "forums", parentId="root") == ["News", "Help", "Wiki", "Staff"]


def test_they_are_not_offered_as_where_they_move_to(admin: Visitor, community: Community) -> None:
    page, _ = _start(admin, "forums", "move", community.staff, community.news)
    assert re.findall(r'<input type="radio" name="to" value="(\d*)"', page.text) == ["", str(community.help)]
    source = re.search(r'"/admin(/forums/find\?not=[^"]+)"', page.text)
    assert source is not None
    address = source[1].replace("&amp;", "&")
    assert admin.get(f"{address}&search=betas").json()["results"] == []
    assert [one["name"] for one in admin.get(f"{address}&search=help").json()["results"]] == ["Help"]


def test_where_they_move_to_may_be_searched_for_with_scripts(admin: Visitor, community: Community, run: Run) -> None:
    """Scripts show the matches as one types: the form is sent with what was typed, without what the page has searched for."""
    _, form = _start(admin, "forums", "move", community.staff)
    typed = {"_search.to": "hel", "to": str(community.help), "_action": "plan"}
    page = admin.post("/forums/many/move", form.filled(without=["_searched.to"], **typed))
    assert "1 forum would change" in page_text(page)
    done = find_form(page, "/many/move").filled(without=["_searched.to"], _action="do")
    assert admin.post("/forums/many/move", done).status_code == 303
    assert _names(run, "forums", parentId=community.help) == ["Staff"]


def test_flat_ones_are_moved_and_copied(admin: Visitor, community: Community, run: Run) -> None:
    run("calendars.create", name="Trips")
    _, form = _start(admin, "calendars", "move", community.meetups)
    page = admin.post("/calendars/many/move", form.filled(_action="plan", place="last"))
    assert admin.post("/calendars/many/move", find_form(page, "/many/move").filled(_action="do")).status_code == 303
    assert _names(run, "calendars") == ["Holidays", "Trips", "Meetups"]
    _, form = _start(admin, "calendars", "copy", community.meetups, community.holidays)
    page = admin.post("/calendars/many/copy", form.filled(_action="plan"))
    assert "2 calendars would be copied" in page_text(page)
    assert admin.post("/calendars/many/copy", find_form(page, "/many/copy").filled(_action="do")).status_code == 303
    assert _names(run, "calendars") == ["Holidays", "Trips", "Meetups", "Meetups (copy)", "Holidays (copy)"]


def test_branches_are_copied_under_another(admin: Visitor, community: Community, run: Run) -> None:
    _, form = _start(admin, "forums", "copy", community.releases, community.staff)
    there = form.filled(_action="plan", where="there", to=str(community.help), withChildren="1")
    page = admin.post("/forums/many/copy", there)
    assert "2 forums would be copied with everything below" in page_text(page)
    done = admin.post("/forums/many/copy", find_form(page, "/many/copy").filled(_action="do"))
    assert _names(run, "forums", parentId=community.help) == ["Releases", "Staff"]
    assert run("forums.tree", root=community.help)["total"] == 3
    assert "2 forums were copied with everything below. Undo…" in _undo(admin, done)
    assert _names(run, "forums", parentId=community.help) == []


def test_those_below_others_are_copied_by_themselves_where_nothing_goes_along(
    admin: Visitor, community: Community, run: Run
) -> None:
    page, form = _start(admin, "forums", "copy", community.releases, community.betas)
    assert "1 other ticked node is below these and goes with them." in page_text(page)
    alone = form.filled(_action="plan", where="there", to=str(community.help), withChildren="0")
    page = admin.post("/forums/many/copy", alone)
    assert "2 forums would be copied" in page_text(page)
    assert "goes with them" not in page_text(page)
    assert admin.post("/forums/many/copy", find_form(page, "/many/copy").filled(_action="do")).status_code == 303
    assert _names(run, "forums", parentId=community.help) == ["Releases", "Betas"]
    assert run("forums.tree", root=community.help)["total"] == 2


@pytest.mark.parametrize(
    ("how", "groups", "expected"),
    [
        ("give", [str(GUESTS)], {"betas": lambda c: [GUESTS, c.patrons], "staff": lambda c: [GUESTS, c.moderators], "help": "*"}),
        ("give", ["*"], {"betas": "*", "staff": "*", "help": "*"}),
        ("take", [str(GUESTS)], {"betas": lambda c: [c.patrons], "help": lambda c: [3, 4, c.moderators, c.patrons]}),
        ("take", ["*"], {"betas": [], "staff": [], "help": []}),
    ],
    ids=["give a group", "give all", "take from a group", "take from all"],
)
def test_rights_are_given_and_taken(
    admin: Visitor, community: Community, run: Run, how: str, groups: list[str], expected: dict[str, Any]
) -> None:
    _, form = _start(admin, "forums", "permissions", community.betas, community.staff, community.help)
    ticks = [("options", "read"), *(("groups", one) for one in groups)]
    page = admin.post("/forums/many/permissions", form.filled(*ticks, _action="plan", how=how))
    done = admin.post("/forums/many/permissions", find_form(page, "/many/permissions").filled(_action="do"))
    assert done.status_code == 303
    for name, who in expected.items():
        held = run("forums.get", getattr(community, name))["permissions"]["read"]
        assert held == (who(community) if callable(who) else who)
    assert run("forums.get", community.staff)["permissions"]["view"] == [community.moderators]


def test_permissions_are_those_of_another_for_everything_below_too(admin: Visitor, community: Community, run: Run) -> None:
    _, form = _start(admin, "forums", "permissions", community.news)
    same = form.filled(_action="plan", how="same", source=str(community.staff), below="1")
    page = admin.post("/forums/many/permissions", same)
    assert "4 forums would change" in page_text(page)
    admin.post("/forums/many/permissions", find_form(page, "/many/permissions").filled(_action="do"))
    staff = run("forums.get", community.staff)["permissions"]
    assert all(run("forums.get", one)["permissions"] == staff for one in (community.news, community.betas, community.interviews))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_is_below_is_read_once_and_no_further_than_what_fits(
    admin: Visitor, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    fetch = plan.fetch_below

    def fetch_noting(request: Any, kind: Any, node: int) -> Any:
        read.append(node)
        return fetch(request, kind, node)

    monkeypatch.setattr(actions, "fetch_below", fetch_noting)
    nested = (community.betas, community.releases, community.news, community.help)
    _, form = _start(admin, "forums", "permissions", *nested)
    same = form.filled(_action="plan", how="same", source=str(community.staff), below="1")
    admin.post("/forums/many/permissions", same)
    assert read == [community.news, community.help]
    monkeypatch.setattr(plan, "MOST", 4)
    page = admin.post("/forums/many/permissions", same)
    assert "More than 4 forums would change" in page_text(page)
    assert read == [community.news, community.help, community.news]
    assert "More than 4 forums would change" in page_text(_start(admin, "forums", "delete", community.news, community.help)[0])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_write_between_the_plan_and_the_change_is_not_overwritten(
    admin: Visitor, community: Community, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, form = _start(admin, "forums", "permissions", community.betas, community.staff)
    ticks = [("options", "view"), ("groups", str(MEMBERS))]
    page = admin.post("/forums/many/permissions", form.filled(*ticks, _action="plan", how="give"))
    build, slipped = plan._build_plan, []

    def slip_in(*args: Any) -> Any:
        slipped.append(run("forums.update", community.staff, permissions={"view": []}))
        return build(*args)

    monkeypatch.setattr(plan, "_build_plan", slip_in)
    known = len(events())
    refused = admin.post("/forums/many/permissions", find_form(page, "/many/permissions").filled(_action="do"))
    assert (refused.status_code, len(slipped)) == (409, 1)
    assert "has changed since this page was loaded" in page_text(refused)
    assert [event["resourceId"] for event in events()[known:]] == [community.staff]
    assert run("forums.get", community.staff)["permissions"]["view"] == []


@pytest.mark.parametrize("how", ["give", "take"])
def test_a_form_with_more_groups_than_there_are_is_refused(admin: Visitor, community: Community, events: Events, how: str) -> None:
    _, form = _start(admin, "forums", "permissions", community.news)
    known = events()
    many = ",".join(str(number) for number in range(1, 3_000))
    page = admin.post("/forums/many/permissions", form.filled(("options", "view"), ("groups", many), _action="plan", how=how))
    assert page.status_code == 400
    assert "Some of these groups no longer exist. Reload the page." in page_text(page)
    assert events() == known


_LONG = "A year in your garden. " * 10


@pytest.mark.parametrize("action", ["fields", "permissions"])
def test_a_change_is_noticed_although_the_plan_does_not_show_that_part(admin: Visitor, run: Run, action: str) -> None:
    *groups, last = (run("groups.create", name=f"Growers {number}")["id"] for number in range(7))
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "fields": ({"description": _LONG}, {"description": _LONG + "Bring boots."}),
        "permissions": ({"permissions": {"view": groups}}, {"permissions": {"view": [*groups[:-1], last]}}),
    }
    before, after = changes[action]
    ids = [run("forums.create", name=name, **before)["id"] for name in ("Garden", "Sheds")]
    _, form = _start(admin, "forums", action, *ids)
    choices = {"fields": (("_set.description", "1"),), "permissions": (("options", "view"), ("groups", "*"))}[action]
    page = admin.post(f"/forums/many/{action}", form.filled(*choices, _action="plan", description="Short", how="take"))
    assert page.status_code == 200
    theirs = run("forums.update", ids[1], **after)
    refused = admin.post(f"/forums/many/{action}", find_form(page, f"/many/{action}").filled(_action="do"))
    assert refused.status_code == 409
    assert "has changed since this page was loaded" in page_text(refused)
    assert run("forums.get", ids[1]) == theirs
    done = admin.post(f"/forums/many/{action}", find_form(refused, f"/many/{action}").filled(_action="do"))
    assert done.status_code == 303


def test_a_node_that_takes_the_place_of_a_deleted_one_is_noticed(admin: Visitor, run: Run) -> None:
    top = run("forums.create", name="Garden")["id"]
    below = run("forums.create", name="Sheds", parentId=top)["id"]
    page, form = _start(admin, "forums", "delete", top)
    run("forums.delete", below)
    kept = run("forums.create", name="Tools", parentId=top)["id"]
    refused = admin.post("/forums/many/delete", form.filled(_action="do"))
    assert (page.status_code, refused.status_code) == (200, 409)
    assert run("forums.get", kept)["name"] == "Tools"


def test_fields_are_set_in_several(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    _, form = _start(admin, "forums", "fields", community.news, community.help, community.betas)
    assert form["minContent"] == "0"
    known = events()
    page = admin.post("/forums/many/fields", form.filled(("_set.minContent", "1"), _action="plan", minContent="x"))
    assert page.status_code == 400
    ticked = form.filled(("_set.minContent", "1"), ("_set.canSeeOthers", "1"), _action="plan", minContent="7", description="no")
    page = admin.post("/forums/many/fields", ticked)
    assert "3 forums would change" in page_text(page)
    assert "Posts needed to see it: 0 → 7" in page_text(page)
    assert events() == known
    assert admin.post("/forums/many/fields", find_form(page, "/many/fields").filled(_action="do")).status_code == 303
    for number in (community.news, community.help, community.betas):
        forum = run("forums.get", number)
        assert (forum["minContent"], forum["description"]) == (7, "")
    _, form = _start(admin, "forums", "fields", community.news)
    assert "Tick at least one field" in page_text(admin.post("/forums/many/fields", form.filled(_action="plan")))


def test_what_nobody_chose_or_ticked_is_asked_for(admin: Visitor, community: Community, events: Events) -> None:
    known = events()
    admin.get("/forums")
    assert "Tick at least one node first." in page_text(admin.get(_sent_back(admin, "move", {})))
    assert "Tick at least one" in page_text(
        admin.get(_sent_back(admin, "delete", {"ids": "999,x,-1", "_from": "//evil.example/?a"}))
    )
    _, form = _start(admin, "forums", "permissions", community.help)
    page = admin.post("/forums/many/permissions", form.filled(_action="plan"))
    assert "Tick at least one right and one group." in page_text(page)
    assert "Nothing would change" in page_text(
        admin.post("/forums/many/permissions", form.filled(("options", "read"), ("groups", str(MEMBERS)), _action="plan"))
    )
    assert admin.get("/forums/many/delete").status_code == 303
    assert events() == known


def test_what_names_no_node_is_not_taken_for_one(admin: Visitor, community: Community, events: Events) -> None:
    known = events()
    _, rights = _start(admin, "forums", "permissions", community.help)
    _, move = _start(admin, "forums", "move", community.betas)
    for number in ("x", "-4", "9" * 30):
        same = admin.post("/forums/many/permissions", rights.filled(how="same", source=number, _action="plan"))
        assert (same.status_code, "Choose the forum to copy the permissions from." in page_text(same)) == (400, True), number
        moved = admin.post("/forums/many/move", move.filled(to=number, _action="plan"))
        assert (moved.status_code, 'id="plan"' in moved.text) == (400, False), number
    assert events() == known


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_form_that_no_page_has_made_is_answered(admin: Visitor, community: Community, events: Events) -> None:
    known, long = events(), "9" * 5000
    _, form = _start(admin, "forums", "permissions", community.staff)
    for groups, words in ((long, "Nothing would change"), ("1" * 19, "1" * 19)):
        ticks = [("options", "read"), ("groups", groups)]
        assert words in page_text(admin.post("/forums/many/permissions", form.filled(*ticks, _action="plan")))
    assert admin.post("/forums/many/move", {"ids": long, "_from": "//["}).headers["location"] == "/admin/forums"
    access = f"/groups/{community.patrons}/access"
    page = admin.post(access, {"kind": "forums", "shown": long, "_from": "https://[/admin"})
    assert "have changed since" in page_text(page)
    assert admin.post(access, {"_from": "https://evil.example/?all=1"}).headers["location"] == f"/admin{access}"
    assert admin.get(f"/deliveries?webhook={long}").status_code == 400
    assert admin.post("/forums/many/move", {"ids": "1"}, headers={"origin": "http://["}).status_code == 403
    assert events() == known


def _sent_back(admin: Visitor, action: str, values: dict[str, str]) -> str:
    response = admin.post(f"/forums/many/{action}", values)
    assert response.headers["location"] == "/admin/forums"
    return "/forums"


def test_built_in_groups_stay_and_a_form_sent_twice_deletes_once(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    page, form = _start(admin, "groups", "delete", GUESTS, community.patrons, community.moderators)
    assert "Built in and cannot be deleted: Guests." in page_text(page)
    assert "removed from the permissions of" in page_text(page)
    sent = form.filled(_action="do")
    done = admin.post("/groups/many/delete", sent)
    said = page_text(admin.get("/groups"))
    known = events()
    again = admin.post("/groups/many/delete", sent)
    assert again.headers["location"] == done.headers["location"]
    assert events() == known
    assert "2 groups were deleted. Undo…" in page_text(admin.get("/groups")) == said
    assert _all_groups(run) == ["Administrators", "Guests", "Members"]
    page = admin.post("/groups/many/delete", {"ids": str(GUESTS)})
    assert page.status_code == 303


def _all_groups(run: Run) -> list[str]:
    return sorted(one["name"] for one in run("groups.list")["results"])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_thousands_of_ticks_lead_back_to_the_list_with_how_many_may_be_ticked(admin: Visitor, community: Community) -> None:
    admin.get("/forums")
    back = admin.post("/forums/many/delete", {"ids": ",".join(map(str, range(1, 10_001))), "_from": "/admin/forums?open=1"})
    assert back.headers["location"] == "/admin/forums?open=1", page_text(back)
    assert "More than 500 forums would change" in page_text(admin.get("/forums?open=1"))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_link_that_undoes_it_is_in_the_language_of_the_panel(admin: Visitor, community: Community) -> None:
    admin.client.headers["accept-language"] = "de"
    plan = find_form(admin.post("/forums/many/delete", {"ids": str(community.staff)}), "/delete")
    assert admin.post("/forums/many/delete", plan.filled(_action="do")).status_code == 303
    assert "1 Forum gelöscht. Rückgängig machen…" in page_text(admin.get("/forums"))
