"""What the five verbs answer: status, body, headers, and what they leave behind."""

import re

import pytest

from tests.api_client import BASE_URL, ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import COMMUNITY_URL, Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock

TAG = re.compile(r'"[0-9a-f]{24}"')


def test_a_create_answers_the_record_and_where_it_is(api: ApiClient, database: DatabaseState, clock: Clock) -> None:
    with database.new_events() as new_events:
        made = api.post("/forums/forums", {"name": "  News & more "}, headers={"X-Request-Id": "create-1"})
    assert made.status_code == 201
    assert made.headers["content-type"] == "application/json"
    record = made.json()
    number = record["id"]
    assert made.headers["location"] == f"{BASE_URL}/api/forums/forums/{number}"
    assert TAG.fullmatch(made.headers["etag"])
    assert record == {
        "id": number,
        "name": "News & more",
        "url": f"{COMMUNITY_URL}/forums/{number}-news-more/",
        "externalId": None,
        "managedBy": None,
        "parentId": None,
        "position": 0,
        "path": "News & more",
        "description": "",
        "type": "discussions",
        "theme": None,
        "sitemapPriority": None,
        "minContent": 0,
        "canSeeOthers": True,
        "redirectUrl": None,
        "passwordProtected": False,
        "permissions": {"view": [], "read": [], "add": [], "reply": [], "attachments": []},
        "createdAt": clock.text,
        "updatedAt": clock.text,
    }
    (event,) = new_events()
    assert (event["operation"], event["requestId"], event["at"]) == ("forums.create", "create-1", clock.text)
    assert (event["resource"], event["resourceId"], event["before"], event["after"]) == ("forums", number, None, record)
    assert event["actor"]["type"] == "key"
    assert event["actor"]["name"] == "Everything"
    assert event["touched"] == []
    found = api.get(f"/forums/forums/{number}")
    assert (found.status_code, found.content, found.headers["etag"]) == (200, made.content, made.headers["etag"])


def test_an_update_answers_the_record_as_it_is_now(
    api: ApiClient, community: Community, database: DatabaseState, clock: Clock
) -> None:
    path = f"/calendar/calendar/{community.meetups}"
    before = api.get(path).json()
    clock.move(minutes=5)
    with database.new_events() as new_events:
        answer = api.post(path, {"color": "#ff0000"})
    after = before | {"color": "#FF0000", "updatedAt": clock.text}
    assert (answer.status_code, answer.json()) == (200, after)
    assert "location" not in answer.headers
    assert api.get(path).headers["etag"] == answer.headers["etag"]
    (event,) = new_events()
    assert (event["operation"], event["changed"], event["before"], event["after"]) == ("calendars.update", ["color"], before, after)


def test_an_update_that_changes_nothing_answers_200_and_records_nothing(
    api: ApiClient, community: Community, database: DatabaseState, clock: Clock
) -> None:
    path = f"/forums/forums/{community.news}"
    got = api.get(path)
    clock.move(minutes=5)
    with database.unchanged():
        for body in ({}, {"name": "News"}, {"name": " News "}, {"position": 0}, {"permissions": {"view": "*"}}, got.json()):
            answer = api.post(path, body)
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (200, got.content, got.headers["etag"])


def test_a_delete_answers_null(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"/downloads/category/{community.tools}"
    before = api.get(path).json()
    with database.new_events() as new_events:
        answer = api.delete(path)
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"null\n", "application/json")
    (event,) = new_events()
    assert (event["operation"], event["resourceId"], event["before"], event["after"]) == (
        "categories.delete",
        community.tools,
        before,
        None,
    )
    with database.unchanged():
        read_refusal(api.get(path), 404, "INVALID_ID")
        read_refusal(api.post(path, {"name": "Tools"}), 404, "INVALID_ID")
        read_refusal(api.delete(path), 404, "INVALID_ID")


def test_an_id_is_never_used_again(api: ApiClient, community: Community) -> None:
    last = api.post("/calendar/calendar", {"name": "Last"}).json()["id"]
    api.delete(f"/calendar/calendar/{last}")
    assert api.post("/calendar/calendar", {"name": "Next"}).json()["id"] == last + 1
    assert api.post("/downloads/category", {"name": "Own sequence"}).json()["id"] == community.tools + 1


def test_a_list_is_a_page_with_links(api: ApiClient, community: Community) -> None:
    answer = api.get("/forums/forums")
    assert answer.status_code == 200
    page = answer.json()
    assert list(page) == ["page", "perPage", "totalResults", "totalPages", "results"]
    assert [page[name] for name in ("page", "perPage", "totalResults", "totalPages")] == [1, 25, 7, 1]
    assert page["results"] == [api.get(f"/forums/forums/{number}").json() for number in range(1, 8)]
    assert (
        answer.headers["link"]
        == f'<{BASE_URL}/api/forums/forums?page=1>; rel="first", <{BASE_URL}/api/forums/forums?page=1>; rel="last"'
    )


def links(make_api: ApiClient, path: str) -> dict[str, str]:
    return {name: link["url"].removeprefix(f"{BASE_URL}/api") for name, link in make_api.get(path).links.items() if name}


def test_the_links_of_a_list_lead_through_it_and_keep_what_was_asked_for(api: ApiClient, community: Community) -> None:
    def at(number: int) -> str:
        return f"/forums/forums?perPage=3&sortBy=name&page={number}"

    asked = "/forums/forums?perPage=3&sortBy=name"
    assert links(api, asked) == {"first": at(1), "next": at(2), "last": at(3)}
    assert links(api, at(2)) == {"first": at(1), "prev": at(1), "next": at(3), "last": at(3)}
    assert links(api, at(3)) == {"first": at(1), "prev": at(2), "last": at(3)}
    assert links(api, at(99)) == {"first": at(1), "prev": at(3), "last": at(3)}, (
        "from behind the end, the last page is the one before"
    )
    names: list[str] = []
    way: str | None = asked
    while way:
        names += [forum["name"] for forum in api.get(way).json()["results"]]
        way = links(api, way).get("next")
    assert names == ["Betas", "Help", "Interviews", "News", "Releases", "Staff", "Wiki"]


def test_of_a_long_query_only_the_link_to_the_next_page_is_sent(api: ApiClient, community: Community) -> None:
    """Proxies and clients refuse a response whose headers are long, and a list may be of a thousand ids."""
    ids = ",".join(str(number) for number in [*range(1, 8), *range(1000, 1990)])
    asked = f"/forums/forums?ids={ids}&perPage=4"
    first = api.get(asked)
    assert list(first.links) == ["next"]
    assert len(first.headers["link"]) < 10_000
    second = api.get(first.links["next"]["url"].removeprefix(f"{BASE_URL}/api"))
    assert [len(page.json()["results"]) for page in (first, second)] == [4, 3]
    assert "link" not in second.headers


@pytest.mark.either_engine
def test_links_hold_what_was_asked_for_percent_encoded_and_no_key(make_api: MakeApiClient, community: Community) -> None:
    api = make_api(key_in_url=True)
    answer = api.get(f"/forums/forums?search=%C3%A9%22%3E&key={api.key}&perPage=1", key=None)
    assert answer.status_code == 200
    assert (
        links(api, "/forums/forums?search=%C3%A9%22%3E&perPage=1")["first"] == "/forums/forums?search=%C3%A9%22%3E&perPage=1&page=1"
    )
    assert api.key not in answer.headers["link"]


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("forum.example:8443", "http://forum.example:8443"),
        ("[2001:db8::1]:80", "http://[2001:db8::1]:80"),
        ("a b>;rel=x", BASE_URL),
        ("[", BASE_URL),
    ],
)
def test_addresses_begin_with_the_host_that_the_caller_named(api: ApiClient, host: str, base: str) -> None:
    made = api.post("/calendar/calendar", {"name": "Here"}, headers={"Host": host})
    assert made.headers["location"] == f"{base}/api/calendar/calendar/1"
    assert api.get("/calendar/calendar", headers={"Host": host}).links["first"]["url"].startswith(f"{base}/api/calendar/calendar?")
    assert api.get("/calendar/calendar/9", headers={"Host": host}).json()["type"].startswith(base)
    assert f"{base}/api" in api.get("/docs", headers={"Host": host}).text


@pytest.mark.either_engine
def test_addresses_begin_with_the_public_url_where_one_is_set(make_api: MakeApiClient) -> None:
    api = make_api(public_url="https://api.forum.example/trellis")
    made = api.post("/calendar/calendars", {"name": "Here"})
    assert made.headers["location"] == "https://api.forum.example/trellis/api/calendar/calendar/1"
    assert api.get("/calendar/calendar").links["last"]["url"] == "https://api.forum.example/trellis/api/calendar/calendar?page=1"
    assert read_refusal(api.get("/calendar/calendar/9"), 404, "INVALID_ID")["type"].startswith(
        "https://api.forum.example/trellis/api/docs#"
    )


# --- conditional requests -----------------------------------------------------------------------------------------


def test_what_the_caller_has_already_is_not_sent_again(api: ApiClient, community: Community) -> None:
    for path in (f"/forums/forums/{community.news}", "/forums/forums", "/core/groups?perPage=1"):
        tag = api.get(path).headers["etag"]
        for match in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            for method in ("GET", "HEAD"):
                answer = api(method, path, headers={"If-None-Match": match})
                assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
                assert "content-type" not in answer.headers
        for match in ('"other"', "", "nonsense", '"*"', "garbage*", f"garbage {tag}", f"{tag} garbage", f"*, {tag}"):
            assert api.get(path, headers={"If-None-Match": match}).status_code == 200


def test_a_changed_record_has_another_tag(api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    tag, listed = api.get(path).headers["etag"], api.get("/forums/forums").headers["etag"]
    api.post(path, {"name": "Newer"})
    for asked, old in ((path, tag), ("/forums/forums", listed), (f"/forums/forums/{community.releases}", tag)):
        answer = api.get(asked, headers={"If-None-Match": old})
        assert (answer.status_code, answer.headers["etag"] == old) == (200, False)


def test_if_none_match_stops_no_write(api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    tag = api.get(path).headers["etag"]
    assert api.post(path, {"name": "Newer"}, headers={"If-None-Match": tag}).json()["name"] == "Newer"


def test_a_write_meant_for_another_version_is_refused(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"/forums/forums/{community.betas}"
    stale = api.get(path).headers["etag"]
    current = api.post(path, {"name": "Previews"}).headers["etag"]
    with database.unchanged():
        for match in (stale, f"W/{current}", '"other"', '"*"', 'W/"*"', f'{stale}, "other"'):
            for answer in (
                api.post(path, {"name": "Alphas"}, headers={"If-Match": match}),
                api.post(path, {}, headers={"If-Match": match}),
                api.delete(path, headers={"If-Match": match}),
                api.delete(f"{path}?dryRun=1", headers={"If-Match": match}),
            ):
                read_refusal(answer, 412, "PRECONDITION_FAILED")
    renamed = api.post(path, {"name": "Alphas"}, headers={"If-Match": f"{stale}, {current}"})
    assert renamed.json()["name"] == "Alphas"
    assert api.post(path, {"name": "Gammas"}, headers={"If-Match": "*"}).status_code == 200
    assert api.delete(path, headers={"If-Match": api.get(path).headers["etag"]}).status_code == 200


def test_a_condition_that_is_never_met_is_refused_with_the_reason(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    path = f"/forums/forums/{community.betas}"
    weak = f"W/{api.get(path).headers['etag']}"  # as a proxy that compresses responses passes it on
    step = {"operation": "forums.update", "id": community.betas, "body": {"name": "Alphas"}, "ifMatch": weak}
    with database.unchanged():
        for match in (weak, f'{weak}, W/"other"', '"*"'):
            for answer in (
                api.post(path, {"name": "Alphas"}, headers={"If-Match": match}),
                api.delete(path, headers={"If-Match": match}),
            ):
                problem = read_refusal(answer, 412, "PRECONDITION_FAILED")
                assert problem["detail"].startswith("Nothing in If-Match can match")
                assert "Leave out W/" in problem["detail"]
        batch = read_refusal(api.post("/core/batch", {"operations": [step]}), 400, "INVALID_VALUE")
        assert "without W/" in batch["detail"]


@pytest.mark.either_engine
def test_an_if_match_that_is_no_list_of_tags_is_refused(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"/forums/forums/{community.betas}"
    tag = api.get(path).headers["etag"]
    malformed = (
        "",
        ",",
        "nonsense",
        "garbage*",
        "**",
        f"*, {tag}",
        f"{tag} x",
        f"x {tag}",
        f"w/{tag}",
        f"W/ {tag}",
        tag[1:],
        tag[:-1],
    )
    with database.unchanged():
        for match in (*malformed, tag.strip('"'), f"{tag}{tag}", '"a b"', '"a"b"'):
            for answer in (
                api.post(path, {"name": "x"}, headers={"If-Match": match}),
                api.delete(path, headers={"If-Match": match}),
            ):
                assert "If-Match" in read_refusal(answer, 400, "INVALID_HEADER")["detail"], match
    for match in (f", {tag} ,,", f'"é","other",{tag}', f"\t{tag}\t", " * "):
        assert api.post(path, {}, headers={"If-Match": match}).status_code == 200, match


def test_if_match_does_not_hide_that_a_record_is_gone(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for match in ("*", '"other"'):
            read_refusal(api.post("/forums/forums/99", {"name": "x"}, headers={"If-Match": match}), 404, "INVALID_ID")
            read_refusal(api.delete("/forums/forums/99", headers={"If-Match": match}), 404, "INVALID_ID")


# --- the request's id and reason ----------------------------------------------------------------------------------


def test_a_request_id_is_taken_echoed_and_kept_with_the_event(api: ApiClient, database: DatabaseState) -> None:
    for sent in ("a", "7f000001-0001", "A.b_c~d+e/f=g:h", "x" * 128):
        with database.new_events() as new_events:
            assert api.post("/calendar/calendar", {"name": "Told"}, headers={"X-Request-Id": sent}).headers["x-request-id"] == sent
        assert [event["requestId"] for event in new_events()] == [sent]


@pytest.mark.either_engine
def test_an_unsuitable_request_id_is_replaced(api: ApiClient, database: DatabaseState) -> None:
    for sent in ("", "two words", "x" * 129, "tab\there", "é", '"quoted"', api.key, f"x-{api.key}"):
        with database.new_events() as new_events:
            given = api.post("/calendar/calendar", {"name": "Told"}, headers={"X-Request-Id": sent}).headers["x-request-id"]
        assert re.fullmatch(r"[0-9a-f]{24}", given)
        assert [event["requestId"] for event in new_events()] == [given]


def test_the_reason_for_a_write_stands_in_its_event(api: ApiClient, community: Community, database: DatabaseState) -> None:
    plain = (
        "Spring cleaning",
        "Aufräumen ✓",
        "x" * 500,
        "Tri\u00a0: été",
        "整理\u3000する",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\U0001f469\u200d\U0001f33e",
    )
    for sent, kept in (*zip(plain, plain, strict=True), ("", None), ("\u00a0", None)):
        with database.new_events() as new_events:
            api.post("/calendar/calendar", {"name": "Told"}, headers={"X-Audit-Log-Reason": sent})
        assert [event["reason"] for event in new_events()] == [kept]


@pytest.mark.either_engine
def test_a_reason_that_is_too_long_or_holds_controls_is_refused(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for sent in ("x" * 501, "tab\there", "bell\x07", "two\u2028lines"):
            answer = api.post("/calendar/calendar", {"name": "Told"}, headers={"X-Audit-Log-Reason": sent})
            assert "X-Audit-Log-Reason" in read_refusal(answer, 400, "INVALID_HEADER")["detail"]
