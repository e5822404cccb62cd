"""`trellis import invision`: from a live community to a plan that has nothing left to do."""

import base64
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.cli.conftest import Trellis
from tests.cli.invision.conftest import Document, Import
from tests.fixture_types import Run
from tests.old_community import KEY, Interruption, OldCommunity, blog, calendar, category, forum, group
from trellis.core.structure import LARGEST_DOCUMENT, MOST_ENTRIES
from trellis.store.sqlite import connect

Read = Callable[..., Document]

translation = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # of what comes, whatever database it goes into


def names(entries: list[dict[str, Any]], above: str = "") -> list[str]:
    """List the names of entries with those above them."""
    found: list[str] = []
    for entry in entries:
        path = f"{above}/{entry['name']}"
        found += [path, *names(entry.get("children", []), path)]
    return found


def settle(trellis: Trellis, *options: str, kept: str = "") -> None:
    """Apply the document, and see that nothing is left to do but to keep what it leaves alone."""
    applied = trellis("apply", "invision.yaml", "--yes", *options)
    assert applied.exit_code == 0, applied.output
    planned = trellis("plan", "invision.yaml", *options)
    assert (planned.exit_code, planned.stdout) == (0, f"{kept}Nothing to do: the community matches the document.\n")


def test_it_is_planned_applied_and_repeated_without_doubling(bring: Import, trellis: Trellis, run: Run, read: Read) -> None:
    brought = bring()
    assert brought.exit_code == 0, brought.output
    assert "Wrote invision.yaml: 5 groups, 7 forums, 2 blogs, 2 calendars, 2 download categories; 2 left out.\n" in brought.stdout
    assert brought.stdout.endswith("Next: trellis plan invision.yaml\n")
    assert trellis("plan", "invision.yaml").exit_code == 2
    settle(trellis)
    first = read()
    for blog_here in first["blogs"]:
        del blog_here["groups"]  # who may read a blog is not reported, and stays

    assert bring().exit_code == 0
    assert read() == first
    settle(trellis, "--prune")
    forums = run("forums.list", sortBy="position")["results"]
    assert sorted(one["path"] for one in forums) == [
        *("Projects", "Projects > Betas", "Projects > News", "Projects > News"),
        *("Shop", "Staff", "Staff > Salt > Pepper"),
    ]


def test_what_changes_in_the_old_community_follows(bring: Import, trellis: Trellis, run: Run, old: OldCommunity) -> None:
    bring()
    settle(trellis)
    forums = old.lists["forums/forums"]
    forums[1] |= {"name": "Previews", "parentId": 1}
    forums.append(forum(21, "Recipes", 20, who=("*", "*", "4")))
    del forums[3]

    bring()
    planned = trellis("plan", "invision.yaml", "--prune")
    assert "1 to create, 1 to update, 0 to move, 1 to delete." in planned.stdout
    settle(trellis, "--prune")
    assert run("forums.list", externalIds="invision:forum:2")["results"][0]["path"] == "Staff > Previews"


def test_what_the_old_community_does_not_tell_stays_as_it_is_here(bring: Import, trellis: Trellis, run: Run) -> None:
    bring()
    settle(trellis)
    shop, staff, projects = (
        run("forums.list", externalIds=f"invision:forum:{number}")["results"][0]["id"] for number in (7, 1, 20)
    )
    run("forums.update", staff, description="<p>For the team.</p>", password="secret")
    run("forums.update", shop, redirectUrl="https://shop.example/")
    run("forums.update", projects, position=0)

    bring()
    planned = trellis("plan", "invision.yaml")
    assert planned.stdout == "Nothing to do: the community matches the document.\n"
    assert "redirect" not in Path("invision.yaml").read_text(encoding="utf-8").split("Shop")[0]


@translation
def test_permissions_are_translated_by_position(bring: Import, read: Read, old: OldCommunity) -> None:
    old.lists["forums/forums"] = [forum(1, "News", who=("*", "2,3", "3, 6", "", None))]
    old.lists["calendar/calendars"] = [calendar(1, "Meetings", who=("*", "3", "4", "6", "9", "2", "3"))]
    old.lists["downloads/categories"] = [category(1, "Plans", who=("*", "3", "4", "6", "9", "2"))]
    bring()
    document = read()
    mods, patrons = "invision:group:6", "invision:group:4"
    assert document["forums"][0]["permissions"] == {
        "view": "*",
        "read": ["guests", "members"],
        "add": [mods, "members"],
        "reply": [],
        "attachments": [],
    }
    assert document["calendars"][0]["permissions"] == {
        "view": "*",
        "read": ["members"],
        "add": [patrons],
        "reply": [mods],
        "review": ["administrators"],
        "askrsvp": ["guests"],
        "rsvp": ["members"],
    }
    assert document["categories"][0]["permissions"] == {
        "view": "*",
        "read": ["members"],
        "add": [patrons],
        "download": [mods],
        "reply": ["administrators"],
        "review": ["guests"],
    }


@translation
def test_clubs_are_left_out_unless_they_are_asked_for(bring: Import, read: Read) -> None:
    brought = bring("--report", "report.txt")
    assert "/Walkers" not in names(read()["forums"])
    told = Path("report.txt").read_text(encoding="utf-8")
    assert "Walkers\n          - Left out: It belongs to a club. --clubs" in told
    assert "Walkers > Walks\n          - Left out: It is below a node that is left out." in told
    assert "need a look: see report.txt" in brought.stdout
    assert bring("--clubs").exit_code == 0
    assert {"/Walkers", "/Walkers/Walks"} <= set(names(read()["forums"]))


def test_groups_of_the_same_name_are_the_same(bring: Import, trellis: Trellis, run: Run, read: Read) -> None:
    run("groups.create", name="Moderators", externalId="mods")
    run("groups.create", name="Patrons")
    bring("--report", "report.txt")
    told = Path("report.txt").read_text(encoding="utf-8")
    assert "It was matched to 'mods' by its name." in told
    assert "A group of this name exists here. --adopt takes it over" in told
    assert [one["externalId"] for one in read()["groups"]] == [*("guests", "members", "invision:group:4", "mods", "administrators")]
    assert read()["forums"][0]["permissions"]["view"] == ["administrators", "mods"]
    settle(trellis, "--adopt")
    assert run("groups.list")["totalResults"] == 5


def test_a_name_that_is_sent_with_entities_is_the_same_name(bring: Import, run: Run, read: Read, old: OldCommunity) -> None:
    run("groups.create", name="Staff & Friends", externalId="staff")
    (moderators,) = [one for one in old.lists["core/groups"] if one["name"] == "Moderators"]
    moderators["name"] = "Staff &amp; Friends"
    bring()
    assert "staff" in [one["externalId"] for one in read()["groups"]]


def test_a_group_that_was_found_by_its_name_and_is_renamed_there_is_told(
    bring: Import, trellis: Trellis, run: Run, read: Read, old: OldCommunity
) -> None:
    run("groups.create", name="Moderators", externalId="mods")
    assert "any more" not in bring().stderr
    settle(trellis)
    (renamed,) = [one for one in old.lists["core/groups"] if one["name"] == "Moderators"]
    renamed["name"] = "Crew"
    told = bring().stderr
    assert "No old group matches 'Moderators' any more." in told
    assert "--group OLD=mods" in told
    assert "any more" not in bring("--group", f"{renamed['id']}=mods").stderr
    assert "mods" in [one["externalId"] for one in read()["groups"]]
    settle(trellis)
    assert run("groups.list")["totalResults"] == 5


def test_a_group_of_another_document_is_named_and_left_to_it(bring: Import, trellis: Trellis, read: Read) -> None:
    Path("own.yaml").write_text("format: trellis/1\nname: own\ngroups: [{externalId: mods, name: Moderators}]\n", encoding="utf-8")
    assert trellis("apply", "own.yaml", "--yes").exit_code == 0
    bring()
    assert "mods" not in [one["externalId"] for one in read()["groups"]]
    assert "mods" in read()["forums"][0]["permissions"]["view"]
    settle(trellis, "--prune", kept="1 node is not in the document and stays: Moderators (groups 5).\n")


def test_the_report_names_a_group_whose_own_was_chosen_for_another(bring: Import) -> None:
    bring("--group", "4=members", "--report", "report.txt")
    assert "To make them one, also pass --group 3=members." in Path("report.txt").read_text(encoding="utf-8")


def test_groups_are_chosen_by_the_operator(bring: Import, trellis: Trellis, run: Run, read: Read) -> None:
    assert bring("--group", "4=members", "--group", "3=members").exit_code == 0
    assert [one["externalId"] for one in read()["groups"]] == ["guests", "members", "invision:group:6", "administrators"]
    assert read()["calendars"][0]["permissions"]["add"] == ["members"]
    settle(trellis)
    assert run("groups.get", 3)["name"] == "Members"

    refused = bring("--group", "77=members")
    assert (refused.exit_code, "the old community has no group 77" in refused.stderr) == (1, True)
    refused = bring("--group", "4=nobodies")
    assert (refused.exit_code, "there is no 'nobodies' here" in refused.stderr) == (1, True)
    assert bring("--group", "members").exit_code == 1


@translation
def test_sections_are_chosen(bring: Import, old: OldCommunity, read: Read) -> None:
    assert bring("--section", "calendars").exit_code == 0
    assert [*read()] == ["format", "name", "calendars"]
    assert not any("forums" in asked for asked in old.requests)
    assert bring("--section", "topics").exit_code == 1


@translation
def test_the_report_tells_node_by_node_what_is_lost(bring: Import, old: OldCommunity) -> None:
    old.lists["forums/forums"].append(forum(30, "<b>Bold</b> &amp; <script>alert(1)</script>", url="javascript:alert(1)"))
    old.lists["forums/forums"].append(forum(31, "Articles", kind="articles", who=("*", "3,77")))
    assert bring("--report", "report.txt", "--report", "report.html").exit_code == 0
    text, page = (Path(f"report.{kind}").read_text(encoding="utf-8") for kind in ("txt", "html"))
    assert text.startswith("Moving in from Green Fingers (http://127.0.0.1")
    lost = "order, description, password, theme, sitemapPriority, minContent, canSeeOthers, redirectUrl"
    assert f"  Not reported by the old community: {lost}.\n  These members get their defaults, or keep the values" in text
    for told in (
        "       7  Shop\n          - It is a redirect whose address the old community does not report.",
        "      30  <b>Bold</b> & <script>alert(1)</script>\n          - Its name contains HTML",
        "          - perm_2 (read) names '77': not among the groups that were sent",
        "      31  Articles\n          - Its type 'articles' is not allowed here: 'discussions' is used instead.",
        "No API key can apply blogs",
        "The formatting of its name was simplified",
    ):
        assert told in text
    for told in ("Its type &#39;articles&#39;", "&lt;script&gt;alert(1)&lt;/script&gt;", 'href="https://old.example/forum/7-x/"'):
        assert told in page
    assert "<script" not in page
    assert "javascript:" not in page


@translation
def test_the_name_of_the_community_adds_no_lines_to_the_report(bring: Import, old: OldCommunity) -> None:
    hello = {"communityName": "Green\n! Fingers\u2028", "communityUrl": "", "ipsVersion": "4.7\n20"}
    old.instead = {"/api/core/hello": Interruption(200, {}, json.dumps(hello).encode())}
    assert bring("--report", "report.txt").exit_code == 0
    first = Path("report.txt").read_text(encoding="utf-8").partition("\n")[0]
    assert (first.startswith("Moving in from Green ! Fingers ("), first.endswith(", release 4.7 20)")) == (True, True)


@translation
def test_without_a_report_the_terminal_tells_what_needs_a_look(bring: Import, old: OldCommunity) -> None:
    old.lists["forums/forums"] += [forum(number, "Shop", kind="redirect") for number in range(100, 130)]
    told = bring().stdout
    assert "forums 11 Walkers: Left out: It belongs to a club." in told
    assert "more need a look. --report FILE writes what is lost, node by node.\n" in told


@translation
@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ([forum(1, "A", 2), forum(2, "B", 3), forum(3, "C", 1), forum(4, "D", 3)], "Its parents lead back to itself."),
        ([forum(1, "A", 1), forum(4, "D", 1)], "Its parents lead back to itself."),
        ([forum(1, "A", 99), forum(4, "D", 1)], "Its parent 99 is not among the forums that were sent."),
        ([forum(1, "A") | {"parentId": {"id": 5}}, forum(4, "D", 1)], "is not among the forums that were sent."),
    ],
)
def test_nodes_without_a_place_come_to_the_top_and_are_closed(
    bring: Import, trellis: Trellis, read: Read, old: OldCommunity, broken: list[dict[str, Any]], told: str
) -> None:
    old.lists["forums/forums"] = broken
    brought = bring()
    assert brought.exit_code == 0
    assert told in brought.stdout
    document = read()
    assert [one["name"] for one in document["forums"]] == ["A"]
    assert set(map(str, document["forums"][0]["permissions"].values())) == {"[]"}
    assert "/D" in "".join(names(document["forums"]))
    settle(trellis)


@pytest.mark.either_engine
def test_what_is_deeper_than_a_document_can_be_is_brought_up(bring: Import, trellis: Trellis, old: OldCommunity) -> None:
    old.lists["forums/forums"] = [forum(number, f"Level {number}", number - 1 or -1) for number in range(1, 104)]
    assert "It is more than 100 levels deep" in bring().stdout
    settle(trellis)


@translation
def test_a_redirect_with_forums_below_it_becomes_a_category(bring: Import, trellis: Trellis, read: Read, old: OldCommunity) -> None:
    old.lists["forums/forums"] = [
        forum(1, "Shop", kind="redirect"),
        forum(2, "Offers", 1),
        forum(3, "Elsewhere", kind="redirect", url="/x"),
    ]
    brought = bring()
    assert "it becomes a category" in brought.stdout
    assert "Left out: It is a redirect whose address the old community does not report. Create it here by hand." in brought.stdout
    assert [(one["name"], one["type"]) for one in read()["forums"]] == [("Shop", "category")]
    settle(trellis)


@translation
@pytest.mark.parametrize(
    ("told", "name"), [("", "Forum 1"), (None, "Forum 1"), ("a\nb\u200b", "a b"), ("x" * 300, "x" * 255), ({}, "Forum 1")]
)
def test_names_that_are_not_allowed_here_are_mended(
    bring: Import, trellis: Trellis, read: Read, old: OldCommunity, told: Any, name: str
) -> None:
    old.lists["forums/forums"] = [forum(1, told)]
    assert "which is not allowed here, so it was changed: check it." in bring().stdout
    assert [one["name"] for one in read()["forums"]] == [name]
    settle(trellis)


@translation
@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Q&amp;A &#039;24 &quot;live&quot; &lt;3", 'Q&A \'24 "live" <3'),
        ("Q&A, R&D;, AT&T &copy", "Q&A, R&D;, AT&T &copy"),
        ("Caf&eacute; &#x1F33F; &amp;amp;", "Café \U0001f33f &amp;"),
    ],
)
def test_entities_in_names_are_the_characters_that_the_old_community_showed(
    bring: Import, trellis: Trellis, read: Read, old: OldCommunity, told: str, name: str
) -> None:
    old.lists["forums/forums"] = [forum(1, told)]
    old.lists["core/groups"].append({"id": 40, "name": told, "formattedName": f"<b>{told}</b>"})
    assert "taken apart" not in bring().stdout
    assert [one["name"] for one in read()["forums"]] == [name]
    (group,) = (one for one in read()["groups"] if one["externalId"] == "invision:group:40")
    assert (group["name"], group["prefix"], group["suffix"]) == (name, "<b>", "</b>")
    settle(trellis)


@translation
def test_permissions_that_are_not_understood_allow_nobody(bring: Import, trellis: Trellis, read: Read, old: OldCommunity) -> None:
    told: tuple[Any, ...] = (None, [], "none", {}, {"perm_view": [3, "x"], "perm_2": {"a": 1}, "perm_3": 3.5})
    old.lists["forums/forums"] = [forum(number, f"News {number}") | {"permissions": sent} for number, sent in enumerate(told, 1)]
    bring()
    forums = read()["forums"]
    assert len(forums) == len(told)
    for who in (one["permissions"] for one in forums):
        assert who.pop("view") in ([], ["members"])
        assert set(map(str, who.values())) == {"[]"}
    settle(trellis)


def test_permissions_that_are_not_told_stay_as_they_are_here(bring: Import, trellis: Trellis, run: Run, old: OldCommunity) -> None:
    told: tuple[Any, ...] = (None, [], {"perm_id": 7})
    old.lists["downloads/categories"] += [
        category(number, f"Plans {number}") | {"permissions": sent} for number, sent in enumerate(told, 101)
    ]
    bring()
    settle(trellis)
    for number in range(101, 101 + len(told)):
        plans = run("categories.list", externalIds=f"invision:category:{number}")["results"][0]
        assert plans["permissions"]["view"] == []
        run("categories.update", plans["id"], permissions={"view": [3]})
    bring()
    assert trellis("plan", "invision.yaml").exit_code == 0


@translation
def test_groups_whose_names_are_not_those_of_the_roles_are_known_by_their_ids(bring: Import, read: Read, old: OldCommunity) -> None:
    old.lists["core/groups"] = [
        group(2, "Visitors"),
        group(3, "Gardeners"),
        group(4, "VIP"),
        group(5, "Admins"),
        group(6, "Members"),
    ]
    brought = bring("--section", "groups")
    assert "groups 2 Visitors: It was matched to 'guests' by its id, not by its name." in brought.stdout
    assert {one["name"]: one["externalId"] for one in read()["groups"]} == {
        "Visitors": "guests",
        "Gardeners": "invision:group:3",
        "VIP": "invision:group:4",
        "Admins": "administrators",
        "Members": "members",
    }


@translation
@pytest.mark.parametrize(("number", "name", "expected"), [(5, "Admins", "Administrators"), (4, "Admins", "Admins")])
def test_no_third_group_gets_the_role_that_two_are_called_like(
    bring: Import, read: Read, old: OldCommunity, number: int, name: str, expected: str
) -> None:
    old.lists["core/groups"] = [group(4, "Patrons"), group(9, "Administrators"), group(number, name)]
    if number == 4:
        del old.lists["core/groups"][0]
    assert bring("--section", "groups").exit_code == 0
    assert [one["name"] for one in read()["groups"] if one["externalId"] == "administrators"] == [expected]


@translation
@pytest.mark.parametrize("renamed", [{9: "Crew"}, {9: "Crew", 6: "Admins"}, {6: "Admins"}, {4: "Admins"}])
def test_a_group_that_is_here_is_never_taken_for_another_one(
    bring: Import, trellis: Trellis, read: Read, old: OldCommunity, renamed: dict[int, str]
) -> None:
    assert bring("--section", "groups").exit_code == 0
    settle(trellis)
    for one in old.lists["core/groups"]:
        one["name"] = renamed.get(one["id"], one["name"])
    brought = bring("--section", "groups")
    assert brought.exit_code == 0
    assert ("No old group matches 'Administrators', so it gets no permissions" in brought.stderr) == (9 in renamed)
    found = {one["name"]: one["externalId"] for one in read()["groups"]}
    assert found[renamed.get(4, "Patrons")] == "invision:group:4"
    assert found[renamed.get(6, "Moderators")] == "invision:group:6"


@translation
def test_a_group_that_gets_the_name_that_another_one_had_is_not_merged_with_it(
    bring: Import, trellis: Trellis, run: Run, read: Read, old: OldCommunity
) -> None:
    run("groups.create", name="Patrons", externalId="patrons")
    assert bring("--section", "groups").exit_code == 0
    settle(trellis)
    patrons, moderators = (one for one in old.lists["core/groups"] if one["id"] in {4, 6})
    patrons["name"], moderators["name"] = "Moderators", "Crew"
    assert bring().exit_code == 0
    found = {one["name"]: one["externalId"] for one in read()["groups"]}
    assert (found["Moderators"], found["Crew"]) == ("invision:group:4", "invision:group:6")
    assert read()["forums"][0]["permissions"]["view"] == ["administrators", "invision:group:6"]


@translation
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--rate", "nan"), "Invalid value for '--rate': give a number."),
        (("--timeout", "nan"), "Invalid value for '--timeout': give a number."),
        (("--report", "./invision.yaml"), "The document and each report need their own file"),
        (("--report", "a.txt", "--report", "a.txt"), "The document and each report need their own file"),
        (("--group", "4=members", "--group", "04=guests"), "--group 04=guests: members was chosen for this group as well"),
        (("--output", "nowhere/a.yaml"), "nowhere/a.yaml cannot be written: there is no folder"),
        (("--report", "nowhere/a.txt"), "nowhere/a.txt cannot be written: there is no folder"),
        (("--save", "new/a", "--report", "new/b/c.txt"), "new/b/c.txt cannot be written: there is no folder"),
        (("--output", "."), ". is a folder: name a file in it."),
        (("--save", "a", "--output", "a"), "a is also named by another option, and would be overwritten"),
        (("--output", "old.key"), "old.key is also named by another option, and would be overwritten"),
        (("--report", "./old.key"), "old.key is also named by another option, and would be overwritten"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_before_anything_is_asked(
    bring: Import, old: OldCommunity, key_file: Path, options: tuple[str, ...], told: str
) -> None:
    Path("old.key").symlink_to(key_file)
    refused = bring(*options)
    assert refused.exit_code != 0
    assert "Traceback" not in refused.output
    assert told in " ".join(refused.stderr.split())
    assert old.requests == []
    assert key_file.read_text(encoding="utf-8") == f"{KEY}\n"
    assert not Path("invision.yaml").exists()


@translation
def test_the_document_may_be_in_the_folder_of_the_answers(bring: Import, read: Read) -> None:
    brought = bring("--save", "all/answers", "--output", "all/answers/site.yaml", "--report", "all/report.txt")
    assert brought.exit_code == 0, brought.output
    assert "forums" in read("all/answers/site.yaml")


def fill_with_forums(old: OldCommunity, total: int) -> int:
    """Give a community that many nodes; return how many forums it has. The last of them has all the others below it."""
    count = total - sum(len(records) for path, records in old.lists.items() if path != "forums/forums")
    old.lists["forums/forums"] = [
        forum(number, f"Forum {number % 700}", count if number < count else -1) for number in range(1, count + 1)
    ]
    return count


def connect_for_fewer_values(file: str, **options: Any) -> apsw.Connection:
    """Open a database that takes a 25th of the values in a statement that SQLite takes, which are fewer than PostgreSQL's."""
    connection: apsw.Connection = connect(file, **options)
    connection.limit(apsw.SQLITE_LIMIT_VARIABLE_NUMBER, connection.limit(apsw.SQLITE_LIMIT_VARIABLE_NUMBER) // 25)
    return connection


@pytest.mark.slow
def test_as_many_nodes_as_a_document_has_at_most(
    bring: Import, trellis: Trellis, run: Run, old: OldCommunity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a 25th of them, for which there is a 25th of the room."""
    assert MOST_ENTRIES == 10_000
    monkeypatch.setattr("trellis.store.engine.apsw_dialect.connect", connect_for_fewer_values)
    for module in ("trellis.invision.translate", "trellis.core.structure.document", "trellis.core.structure.text.lined"):
        monkeypatch.setattr(import_module(module), "MOST_ENTRIES", 400)
    count = fill_with_forums(old, 400)
    assert f"{count:,} forums" in bring("--per-page", "100").stdout
    assert Path("invision.yaml").stat().st_size < LARGEST_DOCUMENT / 25
    settle(trellis)
    assert run("forums.list", perPage=1)["totalResults"] == count

    assert bring("--per-page", "100").exit_code == 0
    assert trellis("plan", "invision.yaml").exit_code == 0
    old.lists["forums/forums"].append(forum(count + 1, "One more"))
    refused = bring("--per-page", "100")
    assert (refused.exit_code, "401 nodes" in refused.stderr, "--section groups first" in refused.stderr) == (1, True, True)

    old.lists["forums/forums"] += [forum(count + more, "One more") for more in range(2, 20)]
    refused = bring("--per-page", "100", "--section", "forums")
    assert "--section groups first" not in refused.stderr
    assert "One section is not written in parts" in refused.stderr


@translation
def test_the_key_lands_nowhere(bring: Import, old: OldCommunity) -> None:
    token = base64.b64encode(f"{KEY}:".encode()).decode()
    old.lists["forums/forums"][0]["name"] = f"Staff {KEY}"
    old.lists["forums/forums"][1]["name"] = f"Basic {token}"
    brought = bring("--save", "saved", "--report", "report.txt", "--report", "report.html")
    assert brought.exit_code == 0
    told = [brought.output, *(file.read_text(encoding="utf-8") for file in Path().rglob("*") if file.is_file())]
    assert not any(secret in text for secret in (KEY, token.rstrip("=")) for text in told)
    assert not any(KEY in asked for asked in old.requests)
    assert set(old.keys) == {old.keys[0]}


def test_nothing_is_written_where_the_database_is_not_there(cli: Trellis, key_file: Path, old: OldCommunity) -> None:
    refused = cli("import", "invision", old.url, "--key-file", key_file)
    assert (refused.exit_code, "trellis migrate" in refused.output) == (1, True)
    assert old.requests == []


@translation
@pytest.mark.parametrize("sent", [[], [group(2, "Guests")], [group(4, "Administrators")]])
def test_all_groups_of_a_part_are_not_everybody(bring: Import, read: Read, old: OldCommunity, sent: list[dict[str, Any]]) -> None:
    old.lists["core/groups"] = sent
    old.lists["blog/blogs"] = [blog(1, "Greenhouse", "Mira Holm", [*sent, group(70, "Staff")]), blog(2, "Workshop", "Jon", sent)]
    assert bring("--section", "blogs").exit_code == 0
    assert not any(one.get("groups") == "*" for one in read()["blogs"])


def test_a_blog_of_groups_is_theirs_and_stays_open_to_those_who_were_let_in(
    bring: Import, trellis: Trellis, run: Run, read: Read, old: OldCommunity
) -> None:
    old.lists["blog/blogs"].append(blog(3, "Press", None, [group(6, "Moderators"), group(9, "Administrators")]))
    brought = bring("--report", "report.txt")
    assert "It belongs to groups in common." in " ".join(Path("report.txt").read_text(encoding="utf-8").split())
    assert brought.exit_code == 0
    settle(trellis)
    moderators = next(one["id"] for one in run("groups.list")["results"] if one["name"] == "Moderators")
    blogs = {one["name"]: one for one in run("blogs.list")["results"]}
    assert {name: (one["owner"], one["groups"]) for name, one in blogs.items()} == {
        "Greenhouse": ("Mira Holm", []),  # the suite does not report who may read it
        "Workshop": ("Moderators", [moderators]),
        "Press": ("Moderators, Administrators", [4, moderators]),
    }
    for name in ("Greenhouse", "Press"):
        run("blogs.update", blogs[name]["id"], groups="*")
    assert bring().exit_code == 0
    assert trellis("plan", "invision.yaml").exit_code == 0
    assert run("blogs.get", blogs["Press"]["id"])["groups"] == "*"
