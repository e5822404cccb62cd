"""Making and changing a node by its form: what is saved, what is refused and kept, and two administrators at once."""

import re
from typing import Any

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import MEMBERS, Community
from tests.fixture_types import Events, Run
from trellis.core.kind import NodeKind
from trellis.kinds import KINDS

_RETYPE = "Password: type it again"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_each_kinds_form_makes_and_saves(admin: Visitor, community: Community, run: Run, events: Events, kind: NodeKind) -> None:
    before = events()
    new = find_form(admin.get(f"/{kind.name}/new"), "/new")
    made = admin.post(f"/{kind.name}/new", new.filled(name="Lantern", _action="save"))
    assert made.status_code == 303
    told = events()[len(before) :]
    assert [event["operation"] for event in told] == [f"{kind.name}.create"]
    assert told[0]["actor"]["name"] == "Mira Holm"
    number = told[0]["resourceId"]
    plain = run(f"{kind.name}.create", name="Lantern")
    kept = run(f"{kind.name}.get", number)
    passing = {"id", "url", "position", "createdAt", "updatedAt"}
    assert {n: v for n, v in kept.items() if n not in passing} == {n: v for n, v in plain.items() if n not in passing}

    count = len(events())
    shown = find_form(admin.get(f"/{kind.name}/{number}"), f"/{number}")
    again = admin.post(f"/{kind.name}/{number}", shown.filled(_action="save"))
    assert (again.status_code, len(events())) == (303, count)  # nothing was changed, and nothing is recorded
    changed = admin.post(f"/{kind.name}/{number}", shown.filled(name="Lamp", _action="save"))
    assert changed.status_code == 303
    assert run(f"{kind.name}.get", number)["name"] == "Lamp"
    assert {"name"} <= set(events()[-1]["changed"]) <= {"name", "url", "path", "formattedName"}


def test_all_kinds_are_visited() -> None:
    (mark,) = test_each_kinds_form_makes_and_saves.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
    assert len(mark.args[1]) == len(KINDS) >= 5


def test_a_new_one_under_a_parent_begins_with_its_permissions(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    new = find_form(admin.get(f"/forums/new?parentId={community.news}"), "/new")
    assert new["parentId"] == str(community.news)
    assert "*" in new.all("permissions.view")
    response = admin.post("/forums/new", new.filled(name="Sub"))
    assert response.headers["location"].startswith(f"/admin/forums?open={community.news}#node-")
    made = events()[-1]["after"]
    assert made["parentId"] == community.news
    assert made["permissions"] == run("forums.get", community.news)["permissions"]
    assert "Sub was created." in page_text(admin.get("/forums"))


def test_nobody_sees_a_new_one_without_permissions_and_the_panel_says_so(admin: Visitor, community: Community) -> None:
    admin.post("/forums/new", find_form(admin.get("/forums/new"), "/new").filled(name="Hidden"))
    assert "Nobody can see it yet" in page_text(admin.get("/forums"))


@pytest.mark.either_engine
def test_faults_stand_at_their_fields_and_all_that_was_typed_is_kept(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    new = find_form(admin.get("/forums/new"), "/new")
    response = admin.post(
        "/forums/new",
        new.filled(("permissions.view", str(MEMBERS)), name="", type="redirect", minContent="many", description="<p>Kept & so</p>"),
    )
    assert response.status_code == 400
    said = page_text(response)
    assert "3 fields need another look" in said
    again = find_form(response, "/new")
    assert (again["minContent"], again["type"], again["description"]) == ("many", "redirect", "<p>Kept & so</p>")
    assert str(MEMBERS) in again.all("permissions.view")
    assert re.search(r'id="field-redirectUrl-fault"', response.text)
    assert events() == before


@pytest.mark.either_engine
def test_what_is_not_on_the_form_is_refused(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    for name in ("id", "builtIn", "parentId", "createdAt", "strange", "permissions.own", "before"):
        path = f"/groups/{community.patrons}" if name == "builtIn" else f"/forums/{community.help}"
        shown = find_form(admin.get(path), path)
        response = admin.post(path, shown.filled(**{name: "1"}))
        assert response.status_code == 400, name
        assert name.rpartition(".")[2] in page_text(response)
    assert events() == before


def test_another_token_saves_nothing_and_keeps_what_was_typed(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    shown = find_form(admin.get(f"/forums/{community.help}"), f"/{community.help}")
    response = admin.post(f"/forums/{community.help}", shown.filled(name="Typed at length"), csrf="0" * 64)
    assert response.status_code == 409
    assert find_form(response, f"/{community.help}")["name"] == "Typed at length"
    assert events() == before
    again = find_form(response, f"/{community.help}")
    assert admin.post(f"/forums/{community.help}", again.filled()).status_code == 303


@pytest.mark.either_engine
def test_five_megabytes_are_refused(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    assert admin.post(f"/forums/{community.help}", {"name": "Help", "description": "x" * 5_000_000}).status_code == 413
    path = f"/forums/{community.help}"
    long = admin.post(path, find_form(admin.get(path), path).filled(description="x" * 200_000))
    assert long.status_code == 400
    assert events() == before


def test_guessed_ids_are_said_to_be_unknown(admin: Visitor, community: Community) -> None:
    for path in ("/forums/999", f"/forums/{10**30}", "/forums/0", "/forums/999/move", "/groups/999/access"):
        assert admin.get(path).status_code == 404
    assert admin.get("/forums/999/delete").status_code == 303
    assert admin.get("/forums/x").status_code == 404
    assert admin.get(f"/calendars/{community.help}/access").status_code == 404


# --- the password of a forum --------------------------------------------------------------------------------------


def test_a_password_is_set_left_and_taken_away(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/forums/{community.help}"

    def send(*more: tuple[str, str], status: int = 303, **changes: str) -> Any:
        response = admin.post(path, find_form(admin.get(path), path).filled(*more, **changes))
        assert response.status_code == status
        return response

    send(password="open sesame")
    assert run("forums.get", community.help)["passwordProtected"] is True
    assert "open sesame" not in admin.get(path).text
    count = len(events())
    send(password="")
    assert (run("forums.get", community.help)["passwordProtected"], len(events())) == (True, count)
    both = send(("_remove.password", "1"), password="another", status=400)
    assert "not both" in page_text(both)
    send(("_remove.password", "1"))
    assert run("forums.get", community.help)["passwordProtected"] is False


@pytest.mark.either_engine
def test_a_password_that_was_typed_is_asked_for_again_wherever_the_form_comes_back(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    before = events()
    for path, ending in (("/forums/new", "/new"), (f"/forums/{community.help}", f"/{community.help}")):
        form = find_form(admin.get(path), ending)
        typed = {"name": "Secret room", "password": "open sesame"}
        run("forums.update", community.help, minContent=len(events()))  # somebody else, so that it is a conflict
        for changes, how, status in (
            (typed | {"name": "", "_action": "save"}, {}, 400 if ending == "/new" else 409),
            (typed | {"_action": "search"}, {}, 200),
            (typed | {"_action": "save"}, {"csrf": "0" * 64}, 409),
            *(((typed | {"_action": "save"}, {}, 409),) if ending != "/new" else ()),
        ):
            page = admin.post(path, form.filled(**changes), **how)
            assert page.status_code == status
            assert page_text(page).count(_RETYPE) == 2, changes  # above the form, and at its field
            assert "open sesame" not in page.text
        assert _RETYPE not in page_text(admin.post(path, form.filled(name="Secret room", password="", _action="search")))
    assert [event["operation"] for event in events()[len(before) :]] == ["forums.update"] * 2
    assert not run("forums.get", community.help)["passwordProtected"]


@pytest.mark.either_engine
def test_that_a_password_was_typed_or_removed_is_known_after_signing_in_again(
    admin: Visitor, community: Community, run: Run
) -> None:
    run("forums.update", community.help, password="sesame")
    path = f"/forums/{community.help}"
    form = find_form(admin.get(path), path)
    for changes, said in (
        ({"password": "open sesame"}, _RETYPE),
        ({"_remove.password": "1"}, 'name="_remove.password" value="1" checked'),
    ):
        admin.client.cookies.clear()
        admin.get("/sign-in")
        ended = admin.post(path, form.filled(_action="save", **changes))
        assert ended.status_code == 401
        assert "open sesame" not in ended.text
        back = admin.post("/sign-in", find_form(ended, "/sign-in").filled(login=LOGIN, password=PASSWORD))
        assert "_submission" not in page_text(back)
        assert "_retype" not in page_text(back)
        again = admin.post(path, find_form(back, path).filled(), csrf="")
        assert said in again.text


# --- copying permissions ------------------------------------------------------------------------------------------


def test_the_grid_is_filled_from_another_node_before_anything_is_saved(
    admin: Visitor, community: Community, events: Events
) -> None:
    before = events()
    shown = find_form(admin.get(f"/forums/{community.staff}"), f"/{community.staff}")
    response = admin.post(f"/forums/{community.staff}", shown.filled(_copy=str(community.help), _action="copy", name="Half typed"))
    assert response.status_code == 200
    filled = find_form(response, f"/{community.staff}")
    assert filled["name"] == "Half typed"
    assert all("*" in filled.all(f"permissions.{option}") for option in ("view", "read", "add", "reply", "attachments"))
    assert events() == before
    assert admin.post(f"/forums/{community.staff}", filled.filled(_action="save", _copy="")).status_code == 303
    assert events()[-1]["after"]["permissions"]["add"] == "*"


def test_what_was_typed_stays_where_the_node_to_copy_from_has_been_deleted(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    paths = ("/forums/new", f"/forums/{community.help}")
    forms = [find_form(admin.get(path), path) for path in paths]
    run("forums.delete", community.staff)
    before = events()
    for path, form in zip(paths, forms, strict=True):
        response = admin.post(
            path, form.filled(("permissions.add", str(MEMBERS)), _copy=str(community.staff), _action="copy", name="Half typed")
        )
        assert response.status_code == 200
        assert "This forum has already been deleted." in page_text(response)
        kept = find_form(response, path)
        assert (kept["name"], str(MEMBERS) in kept.all("permissions.add") or "*" in kept.all("permissions.add")) == (
            "Half typed",
            True,
        )
    assert events() == before


def test_a_search_in_a_form_saves_nothing(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    new = find_form(admin.get("/forums/new"), "/new")
    pressed = admin.post("/forums/new", new.filled(**{"name": "X", "_search.parentId": "relea", "_action": "search"}))
    entered = admin.post("/forums/new", new.filled(**{"name": "X", "_search.parentId": "relea"}))  # Enter, without scripts
    for response in (pressed, entered):
        assert response.status_code == 200
        assert ("parentId", str(community.releases)) in find_form(response, "/new").offered
        assert find_form(response, "/new")["name"] == "X"
    assert events() == before


def test_a_search_that_scripts_have_answered_does_not_keep_from_saving(admin: Visitor, community: Community, run: Run) -> None:
    new = find_form(admin.get("/forums/new"), "/new")
    typed = {"name": "X", "_search.parentId": "relea", "parentId": str(community.releases)}
    response = admin.post("/forums/new", new.filled(without=["_searched.parentId"], **typed))
    assert response.status_code == 303, page_text(response)
    assert "X" in [one["name"] for one in run("forums.list", parentId=community.releases)["results"]]


# --- two at once --------------------------------------------------------------------------------------------------


def test_conflicting_edits_are_noticed_and_both_are_shown(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/forums/{community.help}"
    mine = find_form(admin.get(path), path)
    run("forums.update", community.help, name="Help desk", minContent=5)
    count = len(events())
    response = admin.post(path, mine.filled(name="Helping hands", description="<p>Mine</p>"))
    assert response.status_code == 409
    said = page_text(response)
    for part in (
        "terminal changed this forum",
        "Help desk",
        "Helping hands",
        "Both changed it",
        "They changed it",
        "You changed it",
    ):
        assert part in said
    assert 'href="/admin/forums/' in response.text
    assert len(events()) == count
    kept = find_form(response, path)
    assert (kept["name"], kept["description"]) == ("Helping hands", "<p>Mine</p>")
    assert admin.post(path, kept.filled(_action="save")).status_code == 303  # mine anyway
    record = run("forums.get", community.help)
    assert (record["name"], record["description"], record["minContent"]) == ("Helping hands", "<p>Mine</p>", 0)


@pytest.mark.either_engine
def test_a_conflict_names_nobody_in_the_language_of_the_panel(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/forums/{community.help}"
    mine = find_form(admin.get(path), path)
    run("forums.update", community.help, permissions={"view": []})
    typed = mine.filled(("permissions.view", "999"), name="Hilfe")
    response = admin.post(path, typed, headers={"accept-language": "de"})
    assert response.status_code == 409
    assert "Niemand" in page_text(response)
    assert "Nobody" not in page_text(response)


def test_what_the_form_does_not_show_may_change_meanwhile(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/forums/{community.releases}"
    mine = find_form(admin.get(path), path)
    run("forums.update", community.releases, parentId=community.help)
    run("forums.update", community.help, name="Elsewhere")
    assert admin.post(path, mine.filled(name="Versions")).status_code == 303
    assert run("forums.get", community.releases)["path"] == "Elsewhere > Versions"


def test_equal_edits_are_no_loss(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/blogs/{community.notebook}"
    mine = find_form(admin.get(path), path)
    run("blogs.update", community.notebook, name="Diary")
    response = admin.post(path, mine.filled(name="Diary"))
    assert response.status_code == 409
    assert "Both versions are the same now" in page_text(response)


def test_one_that_was_deleted_meanwhile_keeps_what_was_typed(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    path = f"/forums/{community.help}"
    mine = find_form(admin.get(path), path)
    run("forums.delete", community.help)
    count = len(events())
    response = admin.post(path, mine.filled(name="Typed", description="<p>At length</p>"))
    assert response.status_code == 404
    assert "Deleted at the terminal" in page_text(response)
    anew = admin.post("/forums/new", find_form(response, "/forums/new").filled(_action="again"))
    assert anew.status_code == 200
    again = find_form(anew, "/forums/new")
    assert (again["name"], again["description"]) == ("Typed", "<p>At length</p>")
    assert len(events()) == count
    assert admin.post("/forums/new", again.filled(_action="save")).status_code == 303
    assert events()[-1]["operation"] == "forums.create"
    assert admin.get(path).status_code == 404


def test_a_conflict_is_shown_whatever_was_typed_for_a_group(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    for typed in ("x", "\U0001f30d" * 1000, "9" * 5000, "-1"):
        shown = admin.post(f"/forums/{community.news}", {"name": "News", "permissions.view": typed})
        assert shown.status_code == 409
    assert events() == before


def test_a_stranger_reaches_nothing(visitor: MakeVisitor, mira: int, community: Community, events: Events) -> None:
    before = events()
    somebody = visitor()
    somebody.get("/sign-in")
    for path in (
        "/forums",
        f"/forums/{community.help}",
        f"/forums/{community.help}/delete",
        "/forums/find?search=e",
        "/groups/2/access",
    ):
        assert somebody.get(path).status_code == 303
        assert "Help" not in somebody.get(path).text
    lost = somebody.post(f"/forums/{community.help}", {"name": "Typed at length"})
    assert lost.status_code == 401
    assert "Typed at length" in lost.text
    assert events() == before


def test_what_is_above_a_node_leads_to_it_and_folds(admin: Visitor, community: Community, run: Run) -> None:
    crumbs = re.search(r'<nav class="crumbs".*?</nav>', admin.get(f"/forums/{community.betas}").text, re.DOTALL)
    assert crumbs is not None
    assert re.findall(r'href="/admin([^"]*)">([^<]*)<', crumbs[0]) == [
        ("/forums", "Forums"),
        (f"/forums/{community.news}", "News"),
        (f"/forums/{community.releases}", "Releases"),
    ]
    deep = community.betas
    for number in range(3):
        deep = run("forums.create", name=f"Level {number}", parentId=deep)["id"]
    folded = re.search(r"<details>(.*?)</details>", admin.get(f"/forums/{deep}").text, re.DOTALL)
    assert folded is not None
    assert re.findall(r'">([^<]*)</a>', folded[1]) == ["Releases", "Betas"]
