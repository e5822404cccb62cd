"""The dialect as the reference and the OpenAPI document describe it: what is described is what is sent."""

from typing import Any, Final

import pytest

from tests.api_client import ApiClient
from tests.community import Community
from tests.rest.docs.test_reference import Reading
from tests.rest.documented import Json, documented_operations, validate
from trellis.compose import catalogue_of
from trellis.core.verbs import STANDARD, Response
from trellis.http.routes import build_routes
from trellis.kinds import KINDS
from trellis.kinds.invision import INVISION
from trellis.rest.dialect.groups import AllGroups
from trellis.rest.docs import document
from trellis.rest.docs.dialects import show_dialects

CATALOGUE: Final = catalogue_of(KINDS)
ANSWERED: Final = {  # by a record, or a page of them
    route.operation.kind.name
    for route in build_routes(CATALOGUE)
    if route.operation.kind is not None and route.verb in STANDARD and route.verb.response is Response.RECORD
    if route.operation.kind.name in INVISION.kinds
}


def squeeze(text: str) -> str:
    """Return a text without spaces, and without the marks of code."""
    return "".join(text.replace("`", "").split())


@pytest.fixture(scope="module")
def openapi() -> Json:
    return document(CATALOGUE)


def test_the_answer_to_a_write_needs_no_read(invision: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: AllGroups) -> dict[int, dict[str, Any]]:
        raise OSError("the database has just gone")  # a client that is told so repeats what is done

    monkeypatch.setattr(AllGroups, "_read", fail)
    creating = [
        route
        for route in build_routes(CATALOGUE)
        if route.verb.creates and route.operation.kind is not None and route.verb.in_dialects
        if route.operation.kind.name in INVISION.kinds
    ]
    assert creating
    for route in creating:
        made = invision.post(route.path, data={"title": "New", "redirect_url": "https://example.org"})
        assert made.status_code == 201, (route.path, made.text)
        assert invision.post(f"{route.path}/{made.json()['id']}", data={"title": "Changed"}).json()["name"] == "Changed"


def test_every_answer_is_as_the_openapi_document_describes_it(openapi: Json, invision: ApiClient, community: Community) -> None:
    first = {
        "groups": 3,
        "forums": community.news,
        "calendars": community.meetups,
        "categories": community.skins,
        "blogs": community.notebook,
    }
    seen = set()
    for promise in documented_operations(openapi):
        if (described := promise.told.get("x-dialects", {}).get("invision")) is None:
            continue
        path = promise.path.replace("{id}", str(first.get(promise.name.partition(".")[0])))
        sent: dict[str, Any] = {"data": {"title": f"By {promise.name}"}} if promise.method == "POST" else {}
        answer = invision(promise.method, path, **sent)
        assert answer.status_code in {200, 201}, (promise.name, answer.text)
        records = answer.json()["results"] if promise.name.endswith(".list") else [answer.json()]
        for record in records:
            validate(openapi, described, record)
            assert list(record) == openapi["components"]["schemas"][described["$ref"].rpartition("/")[2]]["required"]
        seen.add(promise.name)
    named = {f"{kind}.{verb.name}" for kind in ANSWERED for verb in STANDARD if verb.response is not Response.NULL}
    assert seen == {name for name in named if name in CATALOGUE and CATALOGUE[name].path is not None} | {"core.hello"}


def test_every_error_is_as_the_openapi_document_describes_it(
    openapi: Json, invision: ApiClient, api: ApiClient, community: Community
) -> None:
    promised = openapi["x-dialects"]["invision"]["errors"]
    for method, path in (
        ("GET", "/forums/forums/999"),
        ("DELETE", f"/forums/forums/{community.news}"),
        ("DELETE", f"/forums/forums/{community.news}?deleteChildrenOrMove=999"),
        ("DELETE", "/calendar/calendar/999"),
        ("GET", "/blog/blogs/999"),
        ("GET", "/core/members"),
        ("PUT", "/forums/forums"),
    ):
        ours, theirs = api(method, path), invision(method, path)
        problem = ours.json()
        assert theirs.headers["content-type"] == promised["mediaType"]
        validate(openapi, promised["schema"], theirs.json())
        assert theirs.status_code == promised["statuses"].get(problem["errorMessage"], problem["status"])
        assert theirs.json()["errorCode"] == promised["codes"].get(problem["errorCode"], problem["errorCode"])
    assert "core.batch" not in promised["operations"]
    validate(openapi, {"$ref": "#/components/schemas/Problem"}, invision.post("/core/batch", {}).json())


def test_blogs_are_described_although_they_can_only_be_read_and_deleted(openapi: Json) -> None:
    told = {promise.name: promise.told for promise in documented_operations(openapi)}
    assert told["blogs.get"]["x-dialects"] == {"invision": {"$ref": "#/components/schemas/InvisionBlog"}}
    ((_, kinds),) = show_dialects(CATALOGUE)
    (blogs,) = [shown for shown in kinds if shown.kind.name == "blogs"]
    assert [member.name for member in blogs.members][-1] == "category"


def test_what_ours_alone_answers_has_no_other_dialect(openapi: Json) -> None:
    told = {promise.name: promise.told for promise in documented_operations(openapi)}
    for name in ("forums.copy", "forums.tree", "forums.get_external", "forums.delete", "core.batch", "events.list"):
        assert "x-dialects" not in told[name]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_reference_shows_its_records_and_says_what_it_cannot_do(api: ApiClient) -> None:
    page = Reading(api.get("/docs/guide/dialects", key=None).text)
    text = squeeze(page.text)
    for sentence in (*INVISION.rules, *INVISION.cannot):
        assert squeeze(sentence) in text
    for name, dialect_kind in INVISION.kinds.items():
        assert (f"dialect-invision-{name}" in page.ids) == (name in ANSWERED)
        if name in ANSWERED:
            assert all(squeeze(member.doc) in text for member in dialect_kind.members)
