"""Copying over HTTP: status, headers, repeated and conditional requests."""

from tests.caller import Caller, refusal
from tests.cast import Cast
from tests.witness import Witness


def test_a_copy_is_answered_like_a_create(api: Caller, cast: Cast) -> None:
    answer = api.post(f"/forums/forums/{cast.news}/copy", {"name": "Bulletin"})
    assert answer.status_code == 201
    made = answer.json()
    assert answer.headers["location"].endswith(f"/api/forums/forums/{made['id']}")
    got = api.get(f"/forums/forums/{made['id']}")
    assert (got.json(), got.headers["etag"]) == (made, answer.headers["etag"])


def test_the_body_may_be_left_out_or_be_a_form(api: Caller, cast: Cast) -> None:
    assert api.post(f"/calendar/calendars/{cast.meetups}/copy").json()["name"] == "Meetups"
    answer = api(
        "POST", f"/downloads/category/{cast.skins}/copy", data={"title": "Themes", "parent": str(cast.tools), "withChildren": "1"}
    )
    assert answer.json()["path"] == "Tools > Themes"
    assert api.get(f"/downloads/category?parentId={answer.json()['id']}").json()["totalResults"] == 1


def test_a_repeated_copy_with_the_same_key_is_made_once(api: Caller, cast: Cast, witness: Witness) -> None:
    path, asked = f"/forums/forums/{cast.news}/copy", {"Idempotency-Key": "once"}
    with witness.news() as news:
        first = api.post(path, {"withChildren": True}, headers=asked)
        again = api.post(path, {"withChildren": True}, headers=asked)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert len(news()) == 1
    refusal(api.post(path, headers=asked), 422, "IDEMPOTENCY_KEY_REUSED")
    refusal(api.post(f"/forums/forums/{cast.help}/copy", {"withChildren": True}, headers=asked), 422, "IDEMPOTENCY_KEY_REUSED")


def test_an_original_that_has_changed_is_not_copied_unseen(api: Caller, cast: Cast, witness: Witness) -> None:
    etag = api.get(f"/forums/forums/{cast.help}").headers["etag"]
    assert api.post(f"/forums/forums/{cast.help}/copy", headers={"If-Match": etag}).status_code == 201
    api.post(f"/forums/forums/{cast.help}", {"name": "Questions"})
    with witness.nothing():
        refusal(api.post(f"/forums/forums/{cast.help}/copy", headers={"If-Match": etag}), 412, "PRECONDITION_FAILED")


def test_a_dry_run_keeps_nothing(api: Caller, cast: Cast, witness: Witness) -> None:
    with witness.nothing():
        answer = api.post(f"/forums/forums/{cast.news}/copy?dryRun=1", {"withChildren": True})
    assert (answer.status_code, answer.headers["dry-run"], answer.json()["name"]) == (200, "true", "News")
