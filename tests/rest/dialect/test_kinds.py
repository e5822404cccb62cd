"""Kinds in the dialect: blogs, whatever operation answers them, and a kind of which the dialect knows nothing."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.api_client import ApiClient
from tests.community import ADMINISTRATORS, COMMUNITY_URL, GUESTS, MEMBERS, Community
from tests.conftest import runner
from tests.fixture_types import Clock, MakeKey, Run
from tests.sweeps.galleries import GALLERIES
from trellis.compose import compose
from trellis.core.dialect import DIALECTS, TRELLIS
from trellis.core.gate import Gate
from trellis.core.keys import SETTINGS
from trellis.core.verbs import DELETE, GET, LIST
from trellis.kinds import KINDS
from trellis.kinds.blogs import BLOGS
from trellis.kinds.invision import INVISION
from trellis.rest.dialect import TRANSLATORS
from trellis.settings import Settings

BLOG = ("id", "name", "description", "owner", "groups", "pinned", "entries", "comments", "url", "category")
OWNER = (
    *("id", "name", "title", "timeZone", "formattedName", "primaryGroup", "secondaryGroups", "email", "joined"),
    *("registrationIpAddress", "warningPoints", "reputationPoints", "photoUrl", "photoUrlIsDefault", "coverPhotoUrl"),
    *("profileUrl", "validating", "posts", "lastActivity", "lastVisit", "lastPost", "birthday", "profileViews"),
    *("customFields", "rank", "achievements_points", "allowAdminEmails", "completed"),
)
NULL = {"title", "profileUrl", "lastActivity", "lastVisit", "lastPost", "birthday", "rank"}  # where its typed clients accept null


@pytest.fixture
def gate(settings: Settings, clock: Clock) -> Iterator[Gate]:
    """The application with blogs that can be read over REST, and with one kind more."""
    readable = replace(BLOGS, over_rest=(LIST, GET, DELETE))
    kinds = (*(readable if kind.name == readable.name else kind for kind in KINDS), GALLERIES)
    gate = compose(settings, kinds, clock)
    yield gate
    gate.store.close()


@pytest.fixture
def run(gate: Gate) -> Run:
    return runner(gate)


def test_a_blog_has_the_members_that_were_recorded(invision: ApiClient, community: Community) -> None:
    answer = invision.get(f"/blog/blogs/{community.notebook}")
    blog = answer.json()
    assert tuple(blog) == BLOG
    owner = blog.pop("owner")
    assert tuple(owner) == OWNER
    assert (owner["id"], owner["name"], owner["formattedName"], owner["secondaryGroups"]) == (0, "Mira Holm", "Mira Holm", [])
    assert owner["primaryGroup"] == {"id": GUESTS, "name": "Guests", "formattedName": "Guests"}
    assert {name for name, value in owner.items() if value is None} == NULL
    assert blog == {
        "id": community.notebook,
        "name": "Notebook",
        "description": "",
        "groups": [
            {"id": MEMBERS, "name": "Members", "formattedName": "Members"},
            {"id": community.patrons, "name": "Patrons", "formattedName": "Patrons"},
        ],
        "pinned": False,
        "entries": 0,
        "comments": 0,
        "url": f"{COMMUNITY_URL}/blogs/{community.notebook}-notebook/",
        "category": None,
    }
    assert invision.get("/blog/blogs").json()["results"] == [answer.json()]


def test_the_groups_of_a_blog_are_those_that_there_are(invision: ApiClient, community: Community, run: Run) -> None:
    first = invision.get(f"/blog/blogs/{community.notebook}")
    run("groups.update", community.patrons, name="Sponsors")
    renamed = invision.get(f"/blog/blogs/{community.notebook}", headers={"If-None-Match": first.headers["etag"]})
    assert [group["name"] for group in renamed.json()["groups"]] == ["Members", "Sponsors"]
    run("blogs.update", community.notebook, groups="*", owner="A <b>")
    blog = invision.get(f"/blog/blogs/{community.notebook}").json()
    everyone = [GUESTS, MEMBERS, ADMINISTRATORS, community.moderators, community.patrons]
    assert [group["id"] for group in blog["groups"]] == everyone
    assert blog["owner"]["formattedName"] == "A &lt;b&gt;"
    run("blogs.update", community.notebook, groups=[])
    assert invision.get(f"/blog/blogs/{community.notebook}").json()["groups"] == []


def test_a_blog_shows_its_groups_to_a_key_that_may_read_blogs_alone(
    invision: ApiClient, community: Community, key: MakeKey
) -> None:
    reader = key("blogs.get", dialect="invision")
    assert len(invision.get(f"/blog/blogs/{community.notebook}", key=reader).json()["groups"]) == 2
    refused = invision.get("/core/groups", key=reader)
    assert (refused.status_code, refused.json()["errorMessage"]) == (403, "NO_PERMISSION")


def test_a_blog_shows_no_group_outside_of_the_bound_of_a_key(
    invision: ApiClient, community: Community, key: MakeKey, run: Run
) -> None:
    run("groups.update", GUESTS, name="Strangers")
    run("blogs.create", name="Open", owner="Mira", groups="*")
    bounds = {"groups.list": {"under": [f"groups:{community.patrons}"]}}
    reader = key(["blogs.list", "groups.list"], dialect="invision", bounds=bounds)
    patrons = invision.get("/core/groups", key=reader).json()["results"]
    assert [group["name"] for group in patrons] == ["Patrons"]
    blogs = invision.get("/blog/blogs", key=reader).json()["results"]
    assert [blog["groups"] for blog in blogs] == [patrons, patrons]
    assert blogs[0]["owner"]["primaryGroup"] == {"id": GUESTS, "name": "Guests", "formattedName": "Guests"}


def test_a_page_of_blogs_that_would_repeat_very_much_of_groups_is_refused(
    invision: ApiClient, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here more than 2 MiB."""
    monkeypatch.setattr("trellis.store.nodes.bounded.MOST_BYTES", 2**21)
    emoji = "\N{SEEDLING}" * 1000
    for number in range(9):
        run("groups.create", name=f"Group {number}", prefix=emoji, suffix=emoji)
    for number in range(31):  # each with 72 KB of groups
        run("blogs.create", name=f"Blog {number}")
    refused = invision.get("/blog/blogs?perPage=1000")
    assert (refused.status_code, refused.json()) == (400, {"errorCode": "1T109/3", "errorMessage": "PAGE_TOO_LARGE"})
    page = invision.get("/blog/blogs?perPage=5").json()["results"]
    assert [len(blog["groups"]) for blog in page] == [12] * 5


def test_refusals_of_blogs_have_their_own_codes(invision: ApiClient) -> None:
    for method, code in (("GET", "2B302/1"), ("DELETE", "2B302/2")):
        refused = invision(method, "/blog/blogs/999")
        assert (refused.status_code, refused.json()) == (404, {"errorCode": code, "errorMessage": "INVALID_ID"})


def test_a_kind_without_a_declaration_is_as_ours(api: ApiClient, invision: ApiClient) -> None:
    made = invision.post(GALLERIES.path, {"title": "Summer", "cols": 5})
    assert made.status_code == 201
    number = made.json()["id"]
    assert made.json() == api.get(f"{GALLERIES.path}/{number}").json() == invision.get(f"{GALLERIES.path}/{number}").json()
    refused = invision.post(GALLERIES.path, {"title": "Summer", "colour": "red"})
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/problem+json")


def test_each_dialect_that_a_key_may_have_is_declared() -> None:
    assert set(DIALECTS) == {TRELLIS, *TRANSLATORS}
    assert next(field for field in SETTINGS if field.name == "dialect").type.schema()["enum"] == list(DIALECTS)


def test_a_declaration_speaks_of_what_there_is() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    for name, dialect_kind in INVISION.kinds.items():
        kind = kinds[name]
        assert set(dialect_kind.options.values()) == set(kind.options)
        assert dialect_kind.defaults.keys() <= {kind.name_field.name, *(field.name for field in kind.fields)}
        codes = {kind.missing_code(verb) for verb in (GET, DELETE)}
        assert dialect_kind.codes.keys() <= codes
