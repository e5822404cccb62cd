"""Nodes addressed by their external ids over REST."""

from tests.api_client import BASE_URL, ApiClient, read_refusal
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey

PATH = "/forums/forums/external"


def test_a_put_answers_201_then_200(api: ApiClient) -> None:
    made = api("PUT", f"{PATH}/news", json={"name": "News"})
    number = made.json()["id"]
    assert (made.status_code, made.headers["location"]) == (201, f"{BASE_URL}/api/forums/forums/{number}")
    changed = api("PUT", f"{PATH}/news", json={"name": "Bulletin"})
    assert (changed.status_code, changed.json()["id"], "location" in changed.headers) == (200, number, False)
    again = api("PUT", f"{PATH}/news", data={"name": "Bulletin"})
    assert (again.status_code, again.headers["etag"]) == (200, changed.headers["etag"])
    assert api.get(f"/forums/forums/{number}").headers["etag"] == again.headers["etag"]


def test_what_is_read_can_be_put_back(api: ApiClient, database: DatabaseState) -> None:
    api("PUT", f"{PATH}/news", json={"name": "News"})
    read = api.get(f"{PATH}/news")
    with database.unchanged():
        assert api("PUT", f"{PATH}/news", json=read.json(), headers={"If-Match": read.headers["etag"]}).json() == read.json()


def test_an_external_id_in_the_path_may_hold_anything_visible(api: ApiClient) -> None:
    for sent, external_id in (("a%2Fb", "a/b"), ("%C3%BCber", "über"), ("copy", "copy"), ("7", "7"), ("a%3Fb%23", "a?b#")):
        assert api("PUT", f"{PATH}/{sent}", json={"name": "News"}).json()["externalId"] == external_id
        assert api.get(f"{PATH}/{sent}").json()["externalId"] == external_id
    for dots in (".", ".."):
        read_refusal(api.post("/forums/forums", {"name": "News", "externalId": dots}), 400, "INVALID_VALUE")
    longest = "\N{GRINNING FACE}" * 255
    assert api("PUT", f"{PATH}/{longest}", json={"name": "News"}).status_code == 201
    assert api.get(f"{PATH}/{longest}").json()["externalId"] == longest
    read_refusal(api("PUT", f"{PATH}/a%20b", json={"name": "News"}), 400, "INVALID_VALUE")
    read_refusal(api("PUT", f"{PATH}/{'x' * 256}", json={"name": "News"}), 400, "INVALID_VALUE")


def test_an_external_id_in_the_path_that_is_no_text_is_refused_by_every_method(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for collection in ("/forums/forums", "/calendar/calendar", "/downloads/category"):
            for method, body in (("GET", {}), ("PUT", {"json": {"name": "News"}}), ("DELETE", {})):
                problem = read_refusal(api(method, f"{collection}/external/%FF", **body), 400, "INVALID_VALUE")
                assert problem["detail"] == "externalId in the path must be UTF-8, percent-encoded, not '%FF'."


def test_a_number_is_refused_as_a_number(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for name in ("externalId", "parentExternalId"):
            problem = read_refusal(api.post("/forums/forums", {"name": "News", name: 17}), 400, "INVALID_VALUE")
            assert problem["detail"] == f"{name} must be text of 1 to 255 visible characters without spaces, not 17."


def test_the_body_may_repeat_it_but_not_contradict_it(api: ApiClient, database: DatabaseState) -> None:
    assert api("PUT", f"{PATH}/news", json={"name": "News", "externalId": "news"}).status_code == 201
    with database.unchanged():
        read_refusal(api("PUT", f"{PATH}/news", json={"name": "News", "externalId": "other"}), 400, "INVALID_VALUE")
        read_refusal(api.get(f"{PATH}/news?externalId=other"), 400, "INVALID_VALUE")


def test_a_precondition_holds_for_a_put(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        read_refusal(api("PUT", f"{PATH}/news", json={"name": "News"}, headers={"If-Match": "*"}), 412, "PRECONDITION_FAILED")
    old = api("PUT", f"{PATH}/news", json={"name": "News"}).headers["etag"]
    api("PUT", f"{PATH}/news", json={"name": "Bulletin"})
    with database.unchanged():
        read_refusal(api("PUT", f"{PATH}/news", json={"name": "Olds"}, headers={"If-Match": old}), 412, "PRECONDITION_FAILED")


def test_a_put_that_is_to_create_only_changes_nothing(api: ApiClient, database: DatabaseState) -> None:
    etag = api("PUT", f"{PATH}/news", json={"name": "News"}).headers["etag"]
    with database.unchanged():
        for condition in ("*", etag, '"other"'):
            for name in ("news", "other"):
                answer = api("PUT", f"{PATH}/{name}", json={"name": "Olds"}, headers={"If-None-Match": condition})
                assert "externalId" in read_refusal(answer, 400, "INVALID_HEADER")["detail"]
        read_refusal(api.post("/forums/forums", {"name": "Olds", "externalId": "news"}), 409, "EXTERNAL_ID_TAKEN")
    assert api.get(f"{PATH}/news", headers={"If-None-Match": etag}).status_code == 304


def test_a_delete_by_external_id(api: ApiClient) -> None:
    api("PUT", f"{PATH}/news", json={"name": "News"})
    assert api.delete(f"{PATH}/news").status_code == 200
    read_refusal(api.delete(f"{PATH}/news"), 404, "INVALID_ID")
    refused = read_refusal(api.get(f"{PATH}/news"), 404, "INVALID_ID")
    assert refused["detail"] == "There is no forum with the external id news."


def test_a_read_by_external_id_is_never_stale(api: ApiClient) -> None:
    api("PUT", f"{PATH}/news", json={"name": "News"})
    for name in ("One", "Two"):
        api("PUT", f"{PATH}/news", json={"name": name})
        assert api.get(f"{PATH}/news").json()["name"] == name
        assert api.get(f"{PATH}/news").json()["name"] == name


def test_another_node_with_the_same_external_id_is_a_conflict(api: ApiClient) -> None:
    number = api("PUT", f"{PATH}/news", json={"name": "News"}).json()["id"]
    answer = api.post("/forums/forums", {"name": "Other", "externalId": "news"})
    read_refusal(answer, 409, "EXTERNAL_ID_TAKEN")
    assert answer.json()["id"] == number


def test_each_needs_the_grants_of_what_it_does(api: ApiClient, key: MakeKey) -> None:
    api("PUT", f"{PATH}/news", json={"name": "News"})
    reader, writer = key(["forums.get"]), key(["forums.create"])
    assert api.get(f"{PATH}/news", key=reader).status_code == 200
    assert api("PUT", f"{PATH}/news", json={"name": "N"}, key=reader).json()["missingOperation"] == "forums.create"
    assert api("PUT", f"{PATH}/other", json={"name": "N"}, key=writer).json()["missingOperation"] == "forums.update"
    assert api.get(f"{PATH}/news", key=writer).json()["missingOperation"] == "forums.get"
    assert api.delete(f"{PATH}/news", key=reader).json()["missingOperation"] == "forums.delete"
