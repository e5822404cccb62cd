"""Answers in the dialect of Invision Community: the members that its clients read, in their order, as recorded from a community."""

from typing import Any

import httpx
import pytest

from tests.api_client import ApiClient
from tests.community import COMMUNITY_URL, Community
from tests.fixture_types import MakeKey, Run
from trellis import __version__
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.kinds.invision import INVISION
from trellis.rest.dialect.groups import AllGroups

PERMISSIONS = ("perm_id", "perm_view", *(f"perm_{number}" for number in range(2, 8)))
PAGE = ("page", "perPage", "totalResults", "totalPages", "results")
FORUM = ("id", "name", "path", "type", "topics", "url", "parentId", "permissions", "club")
FLAT = ("id", "name", "url", "class", "parentId", "permissions", "club")
GROUP = ("id", "name", "formattedName")

Json = dict[str, Any]


def read(answer: httpx.Response, status: int = 200) -> Json:
    """Return the document of an answer."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json"), answer.text
    document: Json = answer.json()
    return document


def permissions(number: int, *who: str | None) -> Json:
    """Return permissions: who may view, and what perm_2, perm_3 … hold; the rest is nobody."""
    return dict(zip(PERMISSIONS, (number, *who, *(None,) * (7 - len(who))), strict=True))


@pytest.mark.either_engine
def test_a_forum_has_the_members_that_were_recorded(invision: ApiClient, community: Community) -> None:
    news = read(invision.get(f"/forums/forums/{community.news}"))
    assert tuple(news) == FORUM
    assert tuple(news["permissions"]) == PERMISSIONS
    assert news == {
        "id": community.news,
        "name": "News",
        "path": "News",
        "type": "discussions",
        "topics": 0,
        "url": f"{COMMUNITY_URL}/forums/{community.news}-news/",
        "parentId": -1,
        "permissions": permissions(news["permissions"]["perm_id"], "*", "*", f"4,{community.moderators}", "3"),
        "club": 0,
    }
    betas = read(invision.get(f"/forums/forums/{community.betas}"))
    assert (betas["path"], betas["parentId"]) == ("News > Releases > Betas", community.releases)
    kinds = [read(invision.get(f"/forums/forums/{number}"))["type"] for number in (community.help, community.wiki)]
    assert kinds == ["questions", "redirect"]


@pytest.mark.either_engine
def test_nobody_is_an_empty_text_in_the_first_permission_and_null_in_the_others(invision: ApiClient, community: Community) -> None:
    wiki = read(invision.get(f"/forums/forums/{community.wiki}"))
    assert wiki["permissions"] == permissions(wiki["permissions"]["perm_id"], "")


@pytest.mark.either_engine
def test_a_calendar_has_the_members_that_were_recorded(invision: ApiClient, community: Community) -> None:
    meetups = read(invision.get(f"/calendar/calendar/{community.meetups}"))
    assert tuple(meetups) == FLAT
    assert meetups == {
        "id": community.meetups,
        "name": "Meetups",
        "url": f"{COMMUNITY_URL}/calendars/{community.meetups}-meetups/",
        "class": "IPS\\calendar\\Calendar",
        "parentId": None,
        "permissions": permissions(meetups["permissions"]["perm_id"], "*", None, None, None, None, None, "3"),
        "club": 0,
    }


@pytest.mark.either_engine
def test_a_category_has_the_members_that_were_recorded(invision: ApiClient, community: Community) -> None:
    skins = read(invision.get(f"/downloads/category/{community.skins}"))
    assert tuple(skins) == FLAT
    assert skins == {
        "id": community.skins,
        "name": "Skins",
        "url": f"{COMMUNITY_URL}/categories/{community.skins}-skins/",
        "class": "IPS\\downloads\\Category",
        "parentId": None,
        "permissions": permissions(skins["permissions"]["perm_id"], "*", None, None, f"3,{community.patrons}"),
        "club": 0,
    }
    assert read(invision.get(f"/downloads/category/{community.dark_skins}"))["parentId"] == community.skins


@pytest.mark.either_engine
def test_a_group_has_the_members_that_were_recorded(invision: ApiClient, community: Community) -> None:
    group = read(invision.get(f"/core/groups/{community.patrons}"))
    assert group == {"id": community.patrons, "name": "Patrons", "formattedName": "Patrons"}
    assert tuple(group) == GROUP


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("/forums/forums", FORUM),
        ("/calendar/calendar", FLAT),
        ("/calendar/calendars", FLAT),
        ("/downloads/category", FLAT),
        ("/downloads/categories", FLAT),
        ("/core/groups", GROUP),
    ],
)
def test_a_list_has_five_members_and_the_same_records(
    invision: ApiClient, community: Community, path: str, members: tuple[str, ...]
) -> None:
    page = read(invision.get(path))
    assert tuple(page) == PAGE
    assert (page["page"], page["perPage"], page["totalPages"]) == (1, 25, 1)
    assert page["totalResults"] == len(page["results"]) > 0
    assert {tuple(record) for record in page["results"]} == {members}
    for record in page["results"]:
        assert read(invision.get(f"{path}/{record['id']}")) == record


def test_an_empty_list_has_one_page(invision: ApiClient) -> None:
    assert read(invision.get("/forums/forums")) == {"page": 1, "perPage": 25, "totalResults": 0, "totalPages": 1, "results": []}


def test_no_two_nodes_have_one_number_of_permissions_and_it_stays(invision: ApiClient, community: Community) -> None:
    def numbers() -> list[int]:
        paths = ("/forums/forums", "/calendar/calendar", "/downloads/category")
        return [record["permissions"]["perm_id"] for path in paths for record in read(invision.get(path))["results"]]

    before = numbers()
    assert len(set(before)) == len(before) > 0
    read(invision.post(f"/forums/forums/{community.news}", data={"permissions[read]": "3"}))
    assert numbers() == before


def test_what_is_created_and_changed_is_shown_likewise(invision: ApiClient, community: Community) -> None:
    for path, members in (("/forums/forums", FORUM), ("/calendar/calendar", FLAT), ("/downloads/category", FLAT)):
        created = invision.post(path, data={"title": "New", "permissions[view]": "*"})
        record = read(created, 201)
        assert tuple(record) == members
        assert created.headers["location"].endswith(f"{path}/{record['id']}")
        changed = read(invision.post(f"{path}/{record['id']}", data={"title": "Newer"}))
        assert tuple(changed) == members
        assert changed["name"] == "Newer"
        deleted = invision.delete(f"{path}/{record['id']}")
        assert (deleted.status_code, deleted.json()) == (200, None)


def test_a_dry_run_shows_what_would_be(invision: ApiClient, community: Community) -> None:
    dry = invision.post("/forums/forums?dryRun=1", data={"title": "Perhaps"})
    assert (dry.status_code, dry.headers["dry-run"], tuple(dry.json())) == (200, "true", FORUM)
    plan = invision.delete(f"/forums/forums/{community.betas}?dryRun=1").json()
    assert plan["deleted"] == {"count": 1, "ids": [community.betas]}


@pytest.mark.either_engine
def test_hello_tells_the_release_of_the_suite_beside_what_is_ours(make_api: Any, key: MakeKey) -> None:
    client = make_api(key("forums.list", name="Old", dialect="invision"))
    hello = read(client.get("/core/hello"))
    assert tuple(hello) == ("communityName", "communityUrl", "ipsVersion", "version", "key")
    assert (hello["communityName"], hello["communityUrl"], hello["version"]) == ("The Lantern", COMMUNITY_URL, __version__)
    assert hello["ipsVersion"].startswith("4.2")
    mine: dict[str, object] = {"name": "Old", "dialect": "invision", "expiresAt": None, "operations": ["forums.list"]}
    assert hello["key"] == mine | {"bounds": {}, "perDay": None}


def test_both_dialects_are_answered_beside_each_other(api: ApiClient, invision: ApiClient, community: Community) -> None:
    for path in (f"/forums/forums/{community.news}", "/forums/forums", "/core/hello"):
        for _ in range(2):  # from the database, and from memory
            ours, theirs = api.get(path), invision.get(path)
            assert list(ours.json()) != list(theirs.json()) or "results" in ours.json()
            assert ours.headers["etag"] != theirs.headers["etag"]
            assert "ipsVersion" not in ours.text
            assert "perm_view" not in ours.text
            assert "updatedAt" not in theirs.text


def test_a_key_that_changes_its_dialect_is_answered_in_it_at_once(
    make_api: Any, key: MakeKey, run: Run, community: Community
) -> None:
    client = make_api(key("*"))
    path = f"/forums/forums/{community.news}"
    first = client.get(path)
    assert "createdAt" in first.json()
    run("keys.update", 1, dialect="invision")
    second = client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert tuple(read(second)) == FORUM
    run("keys.update", 1, dialect="trellis")
    assert client.get(path).json() == first.json()


def test_a_record_can_be_changed_on_condition_that_it_is_the_one_that_was_read(invision: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    read_first = invision.get(path)
    assert invision.get(path, headers={"If-None-Match": read_first.headers["etag"]}).status_code == 304
    condition = {"If-Match": read_first.headers["etag"]}
    changed = invision.post(path, data={"title": "Newer"}, headers=condition)
    assert read(changed)["name"] == "Newer"
    assert changed.headers["etag"] == invision.get(path).headers["etag"] != read_first.headers["etag"]
    assert invision.post(path, data={"title": "Newest"}, headers=condition).status_code == 412
    for tag in ('"*.x"', '"*."', '".x"', '"."'):
        assert invision.post(path, data={"title": "Newest"}, headers={"If-Match": tag}).status_code == 412
    assert read(invision.post(path, data={"title": "Newest"}, headers={"If-Match": changed.headers["etag"]}))["name"] == "Newest"
    assert read(invision.post(path, data={"title": "Newer"}, headers={"If-Match": "*"}))["name"] == "Newer"


def test_a_batch_can_have_that_condition_too(invision: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    read_first = invision.get(path).headers["etag"]

    def rename(name: str, tag: str) -> int:
        step = {"operation": "forums.update", "id": community.news, "ifMatch": tag, "body": {"name": name}}
        return invision.post("/core/batch", {"operations": [step]}).status_code

    assert rename("Newer", read_first) == 200
    assert [rename("Newest", tag) for tag in (read_first, '"*.x"', ".x", ".")] == [409] * 4
    assert rename("Newest", invision.get(path).headers["etag"]) == 200
    assert invision.get(path).json()["name"] == "Newest"


def test_what_the_dialect_does_not_have_is_answered_as_ours(invision: ApiClient, api: ApiClient, community: Community) -> None:
    copy = invision.post(f"/forums/forums/{community.help}/copy", {"name": "Help too"})
    assert copy.json()["permissions"] == dict.fromkeys(("view", "read", "add", "reply", "attachments"), "*")
    assert invision.get("/forums/forums/tree").json() == api.get("/forums/forums/tree").json()
    refused = invision.post("/core/batch", {"operations": [{"operation": "forums.get", "id": 999}]})
    assert refused.headers["content-type"] == "application/problem+json"


def test_no_group_is_left_out_where_another_is_deleted_meanwhile(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.rest.dialect.groups.MOST_PER_PAGE", 2)
    made = [run("groups.create", name=name)["id"] for name in ("First", "Second", "Third", "Fourth")]
    doomed, ask = made[:], gate.run

    def delete_another(call: Call) -> Result:
        result = ask(call)
        if call.actor.type == "service" and len(doomed) > 2:
            run("groups.delete", doomed.pop(0))
        return result

    monkeypatch.setattr(gate, "run", delete_another)
    found = [one["id"] for one in AllGroups(gate, INVISION, TERMINAL).find("*")]
    assert found == sorted(found)
    assert set(made[2:]) <= set(found)
