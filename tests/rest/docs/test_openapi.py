"""The OpenAPI document: valid, complete, current, and served to anybody."""

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from openapi_spec_validator import validate as validate_document

from tests.api_client import BASE_URL, ApiClient
from tests.api_fixtures import MakeApiClient
from tests.community import ENDPOINTS
from tests.rest.documented import GALLERIES, Json, documented_operations, resolve_reference, validate, validate_additions
from trellis.compose import catalogue_of
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Field, NodeId
from trellis.core.nodes.crud import build_operation
from trellis.core.operation import Outcome
from trellis.core.verbs import Body, Response, Verb
from trellis.http.routes import build_routes
from trellis.kinds import KINDS
from trellis.kinds.forums import FORUMS
from trellis.refusals import REFUSALS
from trellis.rest.docs.openapi import document
from trellis.rest.docs.refusals import refusals_of

CATALOGUE = catalogue_of(KINDS)
SERVED = build_routes(CATALOGUE)
SNAPSHOT = Path(__file__).parents[3] / "docs" / "openapi.json"

sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def openapi() -> Json:
    """The OpenAPI document, as a program reads it."""
    read: Json = orjson.loads(orjson.dumps(document(CATALOGUE)))
    return read


def test_it_is_valid(openapi: Json) -> None:
    validate_document(openapi)


def test_it_is_the_one_in_the_repository() -> None:
    written = orjson.dumps(document(CATALOGUE), option=orjson.OPT_INDENT_2) + b"\n"
    assert SNAPSHOT.read_bytes() == written, "The API has changed: run `make snapshot`, and look at the difference."


@sqlite
def test_a_colour_is_accepted_and_kept_as_it_says(openapi: Json, api: ApiClient) -> None:
    taken, kept = (openapi["components"]["schemas"][name]["properties"]["color"] for name in ("CalendarInput", "Calendar"))
    for number, sent in enumerate(("#10b981", "#10B981", "#10b98", "red")):
        answer = api.post("/calendar/calendar", {"name": f"{number}", "color": sent})
        assert (answer.status_code == 201) == bool(re.search(taken["pattern"], sent))
        if answer.status_code == 201:
            assert answer.json()["color"] == sent.upper()
            validate(openapi, kept, answer.json()["color"])
    assert not re.search(kept["pattern"], "#10b981")


def test_it_has_every_operation_that_is_served(openapi: Json) -> None:
    told = {promise.name: promise for promise in documented_operations(openapi)}
    assert list(told) == [name for name in told if name in CATALOGUE]
    assert len(told) == len(SERVED) == ENDPOINTS
    for route in SERVED:
        promise = told[route.operation.name]
        assert (promise.method, promise.path) == (route.method, route.path)
        grant = route.operation.name if route.operation.is_grantable else None
        assert promise.told["x-required-grant"] == grant
        assert promise.told.get("x-also-served-at", []) == list(route.also)


def test_it_tells_every_field_that_an_operation_takes(openapi: Json) -> None:
    told = {promise.name: promise for promise in documented_operations(openapi)}
    for route in SERVED:
        promise = told[route.operation.name]
        named = {resolve_reference(openapi, parameter)["name"] for parameter in promise.told["parameters"]}
        if "requestBody" in promise.told:
            schema = promise.told["requestBody"]["content"]["application/json"]["schema"]
            named |= set(resolve_reference(openapi, schema)["properties"])
        taken = {field.name for field in route.operation.takes if not field.read_only}
        assert taken <= named


def test_read_only_and_write_only_members_are_told_apart(openapi: Json) -> None:
    schemas = openapi["components"]["schemas"]
    for kind in KINDS:
        for name, schema in schemas.items():
            if schema.get("description") == kind.doc:
                assert [member for member in schema["properties"] if member != "childCount"] == [
                    field.name for field in kind.response_fields
                ]
                read_only = {field.name for field in kind.response_fields if field.read_only}
                assert {member for member, told in schema["properties"].items() if told.get("readOnly")} == read_only, name
    assert schemas["ForumInput"]["properties"]["password"]["writeOnly"] is True
    assert "password" not in schemas["Forum"]["properties"]


def test_every_refusal_in_it_is_one_of_the_closed_set(openapi: Json) -> None:
    count = 0
    for promise in documented_operations(openapi):
        for status in promise.told["responses"]:
            told = promise.answer(int(status))
            for name, example in told.get("content", {}).get("application/problem+json", {}).get("examples", {}).items():
                value = resolve_reference(openapi, example)["value"]
                validate(openapi, {"$ref": "#/components/schemas/Problem"}, value)
                row = REFUSALS[name]
                assert (value["errorMessage"], value["status"], value["title"]) == (name, row.status, row.title)
                assert int(status) == row.status
                assert {"errorCode": value["errorCode"], "errorMessage": name} in told["x-errors"]
                count += 1
    assert count > 300


def test_it_tells_every_refusal_of_an_operation_and_no_other(openapi: Json) -> None:
    for promise in documented_operations(openapi):
        told = {
            (int(status), error["errorCode"], error["errorMessage"])
            for status in promise.told["responses"]
            for error in promise.answer(int(status)).get("x-errors", ())
        }
        refusals = refusals_of(CATALOGUE.find(promise.name))
        assert told == {(refused.status, refused.code, refused.message) for refused in refusals}, promise.name


def test_a_kind_declared_here_is_in_it() -> None:
    told = document(catalogue_of((*KINDS, GALLERIES)))
    validate_additions(told, document(CATALOGUE))
    names = {promise.name for promise in documented_operations(told)}
    assert names >= {f"galleries.{verb}" for verb in ("list", "get", "create", "update", "delete")}
    assert {"PhotoGallery", "PhotoGalleryInput", "PhotoGalleryChanges", "PhotoGalleryPage"} <= set(told["components"]["schemas"])
    assert "Pictures" in {group["name"] for group in told["x-tagGroups"]}


def with_operations(*verbs: Verb, fields: tuple[Field, ...] = ()) -> Catalogue:
    """Return a catalogue with more operations on forums."""
    more = [build_operation(FORUMS, verb, "Do it", "Does it.", lambda *_: Outcome(None), fields) for verb in verbs]
    return Catalogue({"all": lambda: [*CATALOGUE.values(), *more]})


def test_the_body_of_an_operation_declared_here_has_a_schema_of_its_own(openapi: Json) -> None:
    verbs = {
        f"Forum{name.title()}{number}{ending}": Verb(
            name=f"{name}{number}", method="POST", tail=f"{tail}/{name}{number}", body=body, answer="The record.", code="77"
        )
        for number, (body, ending) in enumerate(((Body.NEW, "Input"), (Body.CHANGES, "Changes"), (Body.OPTIONS, "Input")))
        for name, tail in (("merge", "/{id}"), ("gather", ""))
    }
    into = Field("into", NodeId(), "Where to.", required=True)
    told = document(with_operations(*verbs.values(), fields=(into,)))
    schemas = orjson.loads(orjson.dumps(told))["components"]["schemas"]
    for name in verbs:
        assert list(schemas[name]["properties"]) == ["into"]
        assert "description" not in schemas[name]
    for body_of_another in ("ForumInput", "ForumChanges"):
        assert schemas[body_of_another] == openapi["components"]["schemas"][body_of_another]


def test_two_schemas_of_one_name_are_an_error() -> None:
    look = Verb(name="input", method="GET", tail="/input", response=Response.ANSWER, answer="It.")
    other = replace(
        with_operations(look)["forums.input"], name="forum.input", response_fields=(Field("into", NodeId(), "Where to."),)
    )
    with pytest.raises(ValueError, match=r"^the schema ForumInput of forum\.input is already that of another operation"):
        document(Catalogue({"all": lambda: [*CATALOGUE.values(), other]}))


# --- as it is served ----------------------------------------------------------------------------------------------


@sqlite
def test_it_is_served_without_a_key_and_names_this_service(api: ApiClient) -> None:
    answer = api.get("/openapi.json", key=None)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == orjson.loads(orjson.dumps(document(CATALOGUE, BASE_URL)))
    assert answer.json()["servers"] == [{"url": f"{BASE_URL}/api"}]


@sqlite
def test_it_names_the_public_address_where_there_is_one(make_api: MakeApiClient) -> None:
    told = make_api(public_url="https://api.example/\"here'").get("/openapi.json", key=None).json()
    assert told["servers"] == [{"url": "https://api.example/\"here'/api"}]


@sqlite
def test_an_address_from_elsewhere_stays_inside_its_text(api: ApiClient) -> None:
    for host in ('a"b', "a b", "x" * 300, "a\\u0022"):
        assert api.get("/openapi.json", key=None, headers={"Host": host}).json()["servers"][0]["url"].startswith("http://")


@sqlite
def test_it_is_not_sent_again_when_it_is_known(api: ApiClient) -> None:
    tag = api.get("/openapi.json", key=None).headers["etag"]
    again = api.get("/openapi.json", key=None, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    elsewhere = api.get("/openapi.json", key=None, headers={"If-None-Match": tag, "Host": "other.example"})
    assert elsewhere.status_code == 200


@sqlite
def test_other_methods(api: ApiClient) -> None:
    head = api("HEAD", "/openapi.json", key=None)
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 100_000
    options = api("OPTIONS", "/openapi.json", key=None)
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    refused = api.post("/openapi.json", key=None)
    assert (refused.status_code, refused.json()["errorMessage"]) == (405, "BAD_METHOD")


@sqlite
def test_pages_of_other_origins_may_read_it_like_the_rest_of_the_api(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=("https://tool.example",))
    origin = {"Origin": "https://tool.example"}
    assert api.get("/openapi.json", key=None, headers=origin).headers["access-control-allow-origin"] == "https://tool.example"
    other = {"Origin": "https://other.example"}
    assert "access-control-allow-origin" not in api.get("/openapi.json", key=None, headers=other).headers
