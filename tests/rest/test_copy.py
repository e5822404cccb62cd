"""Copying over HTTP: status, headers, repeated and conditional requests."""

from tests.api_client import ApiClient, read_refusal
from tests.community import Community
from tests.database_state import DatabaseState


def test_a_copy_is_answered_like_a_create(api: ApiClient, community: Community) -> None:
    answer = api.post(f"/forums/forums/{community.news}/copy", {"name": "Bulletin"})
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"].endswith(f"/api/forums/forums/{made['id']}")
    got = api.get(f"/forums/forums/{made['id']}")
    assert (got.json(), got.headers["etag"]) == (made, answer.headers["etag"])


def test_the_body_may_be_left_out_or_be_a_form(api: ApiClient, community: Community) -> None:
    assert api.post(f"/calendar/calendars/{community.meetups}/copy").json()["name"] == "Meetups"
    answer = api(
        "POST",
        f"/downloads/category/{community.skins}/copy",
        data={"title": "Themes", "parent": str(community.tools), "withChildren": "1"},
    )
    assert answer.json()["path"] == "Tools > Themes"
    assert api.get(f"/downloads/category?parentId={answer.json()['id']}").json()["totalResults"] == 1


def test_a_repeated_copy_with_the_same_key_is_made_once(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path, asked = f"/forums/forums/{community.news}/copy", {"Idempotency-Key": "once"}
    with database.new_events() as new_events:
        first = api.post(path, {"withChildren": True}, headers=asked)
        again = api.post(path, {"withChildren": True}, headers=asked)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert len(new_events()) == 1
    read_refusal(api.post(path, headers=asked), 422, "IDEMPOTENCY_KEY_REUSED")
    read_refusal(
        api.post(f"/forums/forums/{community.help}/copy", {"withChildren": True}, headers=asked), 422, "IDEMPOTENCY_KEY_REUSED"
    )


def test_an_original_that_has_changed_is_not_copied_unseen(api: ApiClient, community: Community, database: DatabaseState) -> None:
    etag = api.get(f"/forums/forums/{community.help}").headers["etag"]
    assert api.post(f"/forums/forums/{community.help}/copy", headers={"If-Match": etag}).status_code == 201
    api.post(f"/forums/forums/{community.help}", {"name": "Questions"})
    with database.unchanged():
        read_refusal(api.post(f"/forums/forums/{community.help}/copy", headers={"If-Match": etag}), 412, "PRECONDITION_FAILED")


def test_a_dry_run_keeps_nothing(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post(f"/forums/forums/{community.news}/copy?dryRun=1", {"withChildren": True})
    assert (answer.status_code, answer.headers["dry-run"], answer.json()["name"]) == (200, "true", "News")
