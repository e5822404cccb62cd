"""The running API under the addresses of older clients: the same endpoints, limits, log and memory, for every key."""

import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import MakeKey, Run

FORMS = (
    "/forums/forums{id}{mark}",
    "/forums/forums{id}/{mark}",
    "//forums//forums{id}{mark}",
    "/index.php?/forums/forums{id}{and_}",
    "/index.php?/forums/forums{id}/{and_}",
    "/index.php?/forums/forums{id}{mark}",
    "/index.php?%2Fforums%2Fforums{id}{and_}",
    "/index.php/forums/forums{id}{mark}",
    "/index.php//forums//forums{id}/{mark}",
)


def address(form: str, number: int | None = None, query: str = "") -> str:
    """Write an address in one of the forms."""
    return form.format(
        id="" if number is None else f"/{number}", mark=f"?{query}" if query else "", and_=f"&{query}" if query else ""
    )


@pytest.fixture(params=["trellis", "invision"])
def client(request: pytest.FixtureRequest, make_api: MakeApiClient, key: MakeKey) -> ApiClient:
    return make_api(key("*", name="Client", dialect=request.param))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # addresses are rewritten before there is a database
@pytest.mark.parametrize("form", FORMS)
def test_every_method_reaches_what_it_reaches_otherwise(client: ApiClient, community: Community, run: Run, form: str) -> None:
    plain = client.get("/forums/forums?perPage=2&page=2")
    listed = client.get(address(form, query="perPage=2&page=2"))
    assert (listed.status_code, listed.json(), listed.headers["link"]) == (200, plain.json(), plain.headers["link"])
    assert "index.php" not in listed.headers["link"]
    head = client("HEAD", address(form, community.news))
    assert (head.status_code, head.content) == (200, b"")
    options = client("OPTIONS", address(form, community.news))
    assert (options.status_code, options.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS, POST")
    assert client("PUT", address(form)).status_code == 405
    created = client.post(address(form, query="title=By+query&permissions[view]=*"))
    assert created.status_code == 201, created.text
    number = created.json()["id"]
    assert created.headers["location"].endswith(f"/api/forums/forums/{number}")
    assert client.post(address(form, number), data={"title": "By form"}).json()["name"] == "By form"
    assert run("forums.get", number)["permissions"]["view"] == "*"
    assert client.get(address(form, number)).json()["name"] == "By form"
    assert client.delete(address(form, number)).json() is None
    assert client.get(address(form, number)).status_code == 404
    assert client.get(address(form, query="page=1?perPage=3")).json()["perPage"] == 3


def test_the_log_has_the_address_that_it_stands_for(client: ApiClient, community: Community, run: Run) -> None:
    for form in FORMS:
        assert client.get(address(form, community.news)).status_code == 200
    client.do(client.application.service.log.flush())
    logged = run("requests.list")["results"]
    assert {(one["path"], one["operation"], one["status"]) for one in logged} == {
        (f"/api/forums/forums/{community.news}", "forums.get", 200)
    }
    assert len(logged) == len(FORMS)


@pytest.mark.either_engine
def test_the_limit_of_a_key_counts_every_form(make_api: MakeApiClient, community: Community, key: MakeKey) -> None:
    client = make_api(key("*", rateLimit=len(FORMS)))
    for form in FORMS:
        assert client.get(address(form)).status_code == 200
    read_refusal(client.get(address(FORMS[3])), 429, "RATE_LIMITED")


@pytest.mark.either_engine
def test_a_key_is_asked_for_and_judged_in_every_form(api: ApiClient, community: Community, key: MakeKey) -> None:
    nobody = key([])
    for place, form in enumerate(FORMS):
        read_refusal(api.get(address(form), key=None, address=f"192.0.2.{place}"), 401, "NO_API_KEY")
        read_refusal(api.get(address(form), key=nobody), 403, "NO_PERMISSION")
        hidden = api.get(address(form, query=f"key={nobody}"), key=None, address=f"192.0.2.{place}")
        read_refusal(hidden, 403, "CANNOT_USE_KEY_AS_URL_PARAM")


@pytest.mark.either_engine
def test_no_form_reaches_what_is_not_of_the_api(api: ApiClient, community: Community) -> None:
    for path in (
        "/index.php",
        "/index.php?",
        "/index.php?page=1",
        "/index.php?/",
        "/index.php?/admin",
        "/index.php?/../admin/keys",
        "/index.php/%2e%2e/%2e%2e/admin",
        "/index.php?/%2e%2e/admin",
        "/index.php?//admin/keys",
        "/index.php?/healthz",
        "/index.php?/index.php?/forums/forums",
        "/forums/index.php?/forums/forums",
        "/INDEX.PHP?/forums/forums",
    ):
        read_refusal(api.get(path), 404, "NO_ENDPOINT")
    assert api.application._panel is None, "the panel is never asked"
