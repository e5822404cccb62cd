"""Deleting over REST: children, groups, what is built in, and dry runs of every write."""

import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.community import ADMINISTRATORS, GUESTS, MEMBERS, Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey
from tests.rest.test_app_writes import order

FORUMS = "/forums/forums"


def test_a_node_with_children_is_not_deleted_without_a_word_on_them(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.unchanged():
        document = read_refusal(api.delete(f"{FORUMS}/{community.news}"), 409, "HAS_CHILDREN")
    assert document["errorCode"] == "1S359/3"
    assert (document["children"], document["descendants"]) == (2, 3)
    for part in ("2 children", "3", "deleteChildrenOrMove=-1", "deleteChildrenOrMove=ID"):
        assert part in document["detail"]


def test_minus_one_deletes_the_whole_subtree(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.new_events() as new_events:
        assert api.delete(f"{FORUMS}/{community.news}?deleteChildrenOrMove=-1").json() is None
    assert order(api) == ["Help", "Wiki", "Staff"]
    assert api.get(FORUMS).json()["totalResults"] == 3
    (event,) = new_events()
    assert sorted(touched["id"] for touched in event["touched"]) == [community.releases, community.betas, community.interviews]
    assert {(touched["resource"], touched["how"]) for touched in event["touched"]} == {("forums", "deleted")}


@pytest.mark.parametrize("how", ["query", "json", "form"])
def test_an_id_moves_the_children_behind_those_of_that_node(
    api: ApiClient, community: Community, database: DatabaseState, how: str
) -> None:
    api.post(FORUMS, {"name": "Questions", "parentId": community.help})
    said = {"deleteChildrenOrMove": community.help}
    path = f"{FORUMS}/{community.news}"
    with database.new_events() as new_events:
        answer = {
            "query": lambda: api.delete(path, params=said),
            "json": lambda: api.delete(path, json=said),
            "form": lambda: api.delete(path, data=said),
        }[how]()
    assert answer.json() is None
    assert order(api) == ["Help", "Wiki", "Staff"]
    assert order(api, community.help) == ["Questions", "Releases", "Interviews"]
    assert api.get(f"{FORUMS}/{community.betas}").json()["path"] == "Help > Releases > Betas"
    (event,) = new_events()
    assert event["touched"] == [
        {"resource": "forums", "id": number, "how": "moved"} for number in (community.releases, community.interviews)
    ]


def test_children_cannot_go_where_they_cannot_be(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        for target in (999, community.news, community.releases, community.betas, community.wiki, "x", 0, -2, 2**64, "1.5", ""):
            answer = api.delete(f"{FORUMS}/{community.news}?deleteChildrenOrMove={target}")
            assert read_refusal(answer, 400, "INVALID_TARGET")["errorCode"] == "1S359/2", target
            assert read_field_errors(answer) == {"deleteChildrenOrMove": "INVALID_TARGET"}


def test_the_word_on_children_does_no_harm_where_there_are_none(api: ApiClient, community: Community) -> None:
    assert api.delete(f"{FORUMS}/{community.betas}?deleteChildrenOrMove=-1").json() is None
    assert api.delete(f"{FORUMS}/{community.staff}?deleteChildrenOrMove={community.help}").json() is None
    assert api.delete(f"/calendar/calendar/{community.meetups}?deleteChildrenOrMove=-1").json() is None


def test_the_siblings_of_what_is_gone_close_up(api: ApiClient, community: Community) -> None:
    api.delete(f"{FORUMS}/{community.help}")
    assert order(api) == ["News", "Wiki", "Staff"]
    api.delete(f"/calendar/calendar/{community.meetups}")
    assert [(c["name"], c["position"]) for c in api.get("/calendar/calendar").json()["results"]] == [("Holidays", 0)]


@pytest.mark.parametrize("group", [GUESTS, MEMBERS, ADMINISTRATORS])
def test_a_built_in_group_stays(api: ApiClient, database: DatabaseState, group: int) -> None:
    with database.unchanged():
        for query in ("", "?dryRun=1"):
            assert read_refusal(api.delete(f"/core/groups/{group}{query}"), 403, "CANNOT_DELETE")["errorCode"] == "2C358/3"
    assert api.get(f"/core/groups/{group}").json()["builtIn"] is True


def test_a_deleted_group_is_taken_out_of_every_permission_in_the_same_event(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.new_events() as new_events:
        assert api.delete(f"/core/groups/{community.patrons}").json() is None
    (event,) = new_events()
    touched = {
        ("forums", community.betas),
        ("categories", community.skins),
        ("categories", community.dark_skins),
        ("blogs", community.notebook),
    }
    assert {(one["resource"], one["id"]) for one in event["touched"]} == touched
    assert {one["how"] for one in event["touched"]} == {"changed"}
    assert api.get(f"{FORUMS}/{community.betas}").json()["permissions"]["read"] == []
    assert api.get(f"/downloads/category/{community.skins}").json()["permissions"]["download"] == [MEMBERS]
    answer = api.post(f"{FORUMS}/{community.betas}", {"permissions": {"read": [community.patrons]}})
    assert read_field_errors(answer) == {"permissions.read": "INVALID_GROUP"}


def test_a_blog_is_deleted_over_rest_and_nothing_else_is_done_to_it(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.new_events() as new_events:
        assert api.delete(f"/blog/blogs/{community.notebook}").json() is None
    assert [(event["operation"], event["before"]["owner"]) for event in new_events()] == [("blogs.delete", "Mira Holm")]
    read_refusal(api.delete(f"/blog/blogs/{community.notebook}"), 404, "INVALID_ID")


# --- dry runs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("yes", ["1", "true"])
def test_a_dry_create_shows_what_would_be_made_and_uses_up_no_id(
    api: ApiClient, community: Community, database: DatabaseState, yes: str
) -> None:
    body = {"name": "Perhaps", "parentId": community.news, "position": 0}
    with database.unchanged():
        answers = [api.post(f"{FORUMS}?dryRun={yes}", body), api.post(FORUMS, body | {"dryRun": True})]
    for dry in answers:
        assert (dry.status_code, dry.headers["dry-run"]) == (200, "true")
        assert "location" not in dry.headers
    made = api.post(FORUMS, body)
    assert "dry-run" not in made.headers
    assert [dry.json() for dry in answers] == [made.json()] * 2


def test_a_dry_update_shows_what_would_become_of_it(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"{FORUMS}/{community.staff}"
    with database.unchanged():
        dry = api.post(f"{path}?dryRun=1", {"name": "Team", "position": 0})
    assert (dry.status_code, dry.headers["dry-run"]) == (200, "true")
    assert dry.json() == api.post(path, {"name": "Team", "position": 0}).json()


def test_a_dry_delete_counts_what_would_go_move_and_change(api: ApiClient, community: Community, database: DatabaseState) -> None:
    below = [community.releases, community.interviews, community.betas]
    none_moved = {"count": 0, "ids": [], "to": None}
    with database.unchanged():
        whole = api.delete(f"{FORUMS}/{community.news}?deleteChildrenOrMove=-1&dryRun=1")
        moving = api.delete(f"{FORUMS}/{community.news}", json={"deleteChildrenOrMove": community.help, "dryRun": 1})
        group = api.delete(f"/core/groups/{community.patrons}?dryRun=true")
    assert {answer.status_code for answer in (whole, moving, group)} == {200}
    assert {answer.headers["dry-run"] for answer in (whole, moving, group)} == {"true"}
    assert whole.json()["deleted"] == {"count": 4, "ids": [community.news, *below]}
    assert whole.json()["moved"] == none_moved
    assert moving.json()["deleted"] == {"count": 1, "ids": [community.news]}
    assert moving.json()["moved"] == {"count": 2, "ids": [community.releases, community.interviews], "to": community.help}
    assert group.json()["changed"]["count"] == 4


def test_a_dry_run_is_refused_as_the_real_one_would_be(
    api: ApiClient, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    reader = key("*.list")
    with database.unchanged():
        read_refusal(api.post(f"{FORUMS}?dryRun=1", {"name": ""}), 400, "NO_TITLE")
        read_refusal(api.post(f"{FORUMS}/{community.news}?dryRun=1", {"parentId": community.betas}), 400, "INVALID_PARENT")
        read_refusal(api.delete(f"{FORUMS}/{community.news}?dryRun=1"), 409, "HAS_CHILDREN")
        read_refusal(api.delete(f"{FORUMS}/999?dryRun=1"), 404, "INVALID_ID")
        read_refusal(api.post(f"{FORUMS}?dryRun=1", {"name": "x"}, key=reader), 403, "NO_PERMISSION")
        assert read_field_errors(api.post(f"{FORUMS}?dryRun=maybe", {"name": "x"})) == {"dryRun": "INVALID_VALUE"}
        assert read_field_errors(api.get(f"{FORUMS}?dryRun=1")) == {"dryRun": "UNKNOWN_PARAMETER"}


def test_dry_run_no_is_no_dry_run(api: ApiClient) -> None:
    for body in ({"dryRun": False}, {"dryRun": "0"}):
        assert api.post(FORUMS, {"name": "Real"} | body).status_code == 201
