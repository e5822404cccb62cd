"""The reference: whole, sound, safe to open, and about this service."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.api_client import BASE_URL, ApiClient
from tests.api_fixtures import MakeApiClient
from tests.community import ENDPOINTS
from tests.rest.documented import GALLERIES
from trellis.compose import catalogue_of
from trellis.core.kind import NodeKind
from trellis.http.design import STATIC as SHARED
from trellis.http.routes import build_routes, find_in_reference
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS
from trellis.rest.docs import document, reference
from trellis.rest.docs.pages import page_paths, render_pages
from trellis.rest.docs.reference import POLICY, Reference
from trellis.settings import Settings

SERVED = build_routes(catalogue_of(KINDS))
STATIC: Final = tuple(file for folder in (Path(reference.__file__).parent / "static", SHARED) for file in folder.iterdir())
ROOT: Final = Path(__file__).parents[3]
PACKAGE: Final = ROOT / "src" / "trellis"
sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

_VOID: Final = {"meta", "link", "img", "input", "br"}


class Reading(HTMLParser):
    """Reads a page: its text, ids, links, and what it loads; refuses tags that do not pair."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.labelled: set[str] = set()
        self.controls: set[str] = set()
        self.moved: dict[str, str] = {}  # what an address of the one page leads to
        self.marks = 0
        self._moving = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.marks += given.get("class") == "mark"
        if "data-moved" in given:
            self._moving = given["id"]
        elif self._moving and tag == "a":
            self.moved[self._moving], self._moving = given["href"], ""
        self.attributes |= set(given)
        self.ids.update([given["id"]] if "id" in given else [])
        self.links |= {given["href"]} if tag == "a" else set()
        self.loads |= {given[name] for name in ("src", "href") if name in given and tag != "a"}
        self.labelled |= {given["for"]} if tag == "label" and "for" in given else set()
        if tag in {"input", "select", "textarea"} and given.get("type") != "checkbox":
            self.controls.add(given.get("id", ""))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        """What a person reads."""
        return " ".join(" ".join(self.words).split())


def read_pages(*kinds: NodeKind, base: str = BASE_URL, paths: Iterable[str] = (), **settings: str) -> dict[str, Reading]:
    """Read the pages at some paths, or all, for the kinds of the package and these."""
    house = Settings.load({f"TRELLIS_{name.upper()}": value for name, value in settings.items()}, None)
    catalogue = catalogue_of((*KINDS, *kinds))
    pages = Reference(catalogue, house)

    async def find() -> dict[str, Reading]:
        return {path: Reading((await pages.find(path, base)).body.decode()) for path in paths or page_paths(catalogue)}

    return asyncio.run(find())


@pytest.fixture(scope="module")
def pages() -> dict[str, Reading]:
    """Every page, read."""
    return read_pages()


@pytest.fixture(scope="module")
def words(pages: dict[str, Reading]) -> list[str]:
    """All words of all pages."""
    return [word for page in pages.values() for word in page.words]


def test_every_operation_has_its_entry(pages: dict[str, Reading]) -> None:
    visited = 0
    index = pages["/docs"]
    for route in SERVED:
        operation = route.operation
        page = pages[f"/docs/{operation.resource}"]
        assert page.ids[operation.name] == 1
        assert {f"#{operation.name}"} <= page.links, "in the menu and among the endpoints of its page"
        assert find_in_reference(operation) in index.links
        assert operation.summary in page.text
        assert operation.summary in index.text
        if operation.is_grantable:
            assert f"Needs the grant {operation.name} ." in page.text
        if operation.fork is not None:
            assert all(name in page.text for name in operation.fork.to)
        for path in (route.path, *route.also):
            assert path in page.text
        visited += 1
    assert visited == len(SERVED) == ENDPOINTS


def test_every_field_is_explained(words: list[str]) -> None:
    fields = {field.name: field for route in SERVED for field in (*route.operation.takes, *route.operation.response_fields)}
    closed_up = _closed_up("".join(words))
    for field in fields.values():
        assert _closed_up(field.doc.replace("`", "")) in closed_up
        assert {field.name, *field.also} <= set(words)


def _closed_up(text: str) -> str:
    return "".join(text.split())


def test_every_refusal_has_its_place(pages: dict[str, Reading]) -> None:
    page = pages["/docs/guide/errors"]
    closed_up = _closed_up(page.text)
    for refusal in REFUSALS.values():
        assert page.ids[refusal.message] == 1
        assert refusal.code in page.words
        assert _closed_up(refusal.when.replace("`", "")) in closed_up


def test_every_link_leads_somewhere(pages: dict[str, Reading]) -> None:
    inside = {(path, link) for path, page in pages.items() for link in page.links}
    assert len(inside) > 1000
    elsewhere = {"/admin", "/admin/keys/try", "/api/openapi.json", "/api/structure.schema.json"}
    assert [(path, link) for path, link in inside if link not in elsewhere and not _is_there(pages, link, path)] == []
    assert [name for page in pages.values() for name, count in page.ids.items() if count > 1] == []


def test_every_link_that_the_program_or_a_document_prints_leads_somewhere(pages: dict[str, Reading]) -> None:
    described = orjson.dumps(document(catalogue_of(KINDS), BASE_URL)).decode()
    panel, cli = PACKAGE / "admin", PACKAGE / "cli"
    texts = [*panel.rglob("*.html"), *panel.rglob("*.py"), *cli.rglob("*.py"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    printed = {link for text in (described, *(file.read_text() for file in texts)) for link in _PRINTED.findall(text)}
    printed |= {f"/api/docs#{message}" for message in REFUSALS}  # the `type` of a problem
    printed |= {f"/api/docs#{route.operation.name}" for route in SERVED}  # of the time when all was on one page
    printed |= {f"/api/docs#{name}" for name in ("start", *OLD_CHAPTERS, *(kind.name for kind in KINDS), "header-If-Match")}
    assert len(printed) > 200
    assert [link for link in printed if not _is_there(pages, link)] == []


OLD_CHAPTERS: Final = (
    *("keys", "requests", "lists", "places", "dry-run", "versions"),
    *("idempotency", "limits", "errors", "names", "dialects", "dialect-invision", "dialect-invision-forums"),
)
_PRINTED: Final = re.compile(r"/api/docs(?:/[a-z/-]+)?(?:#[\w.-]+)?(?![\w/{-]|\.\w)")


def _is_there(pages: dict[str, Reading], link: str, path: str = "") -> bool:
    address, _, anchor = link.partition("#")
    page = pages.get(address.removeprefix("/api").rstrip("/") if address else path)
    return page is not None and (not anchor or page.ids[anchor.rstrip(".")] == 1)


def test_what_stood_on_the_one_page_is_led_to_from_the_index(pages: dict[str, Reading]) -> None:
    moved = pages["/docs"].moved
    for name, link in moved.items():
        assert _is_there(pages, link), name
    assert moved["forums.create"] == "/api/docs/forums#forums.create"
    assert moved["NO_TITLE"] == "/api/docs/guide/errors#NO_TITLE"
    assert moved["forums"] == "/api/docs/forums"
    assert moved["lists"] == "/api/docs/guide/lists"


def test_every_control_has_a_label(pages: dict[str, Reading]) -> None:
    assert sum(len(page.controls) for page in pages.values()) > 100
    assert [path for path, page in pages.items() if not page.controls <= page.labelled] == []


def test_nothing_in_it_needs_an_exception_from_the_policy(pages: dict[str, Reading]) -> None:
    for path, page in pages.items():
        assert page.tags["style"] == page.tags["iframe"] == page.tags["base"] == 0
        assert page.tags["script"] == (1 if path == "/docs" or "/guide/" in path else 2)
        assert "style" not in page.attributes
        assert [name for name in page.attributes if name.startswith("on")] == []


def test_it_loads_nothing_from_elsewhere(pages: dict[str, Reading]) -> None:
    assert set().union(*(page.loads for page in pages.values())) == {f"/api/docs/{file.name}" for file in STATIC}
    assert [link for page in pages.values() for link in page.links if not link.startswith(("#", "/api/", "/admin"))] == []
    for file in STATIC:
        addresses = set(re.findall(r"https?://[^\s\"')]+", file.read_text()))
        assert addresses <= {"http://www.w3.org/2000/svg"}


def test_it_has_the_mark_and_the_look_of_the_panel(pages: dict[str, Reading]) -> None:
    page = pages["/docs"]
    assert {name.rpartition("/")[2] for name in page.loads} >= {"base.css", "mark.svg"}
    assert page.marks == 1
    (own,) = (file.read_text() for file in STATIC if file.name == "reference.css")
    assert "--ground:" not in own, "the colours are stated once"
    assert "/admin" in pages["/docs/forums"].links


def test_it_speaks_of_this_service_and_finds_its_files_below_a_path() -> None:
    read = read_pages(base="https://api.example:8443/community", paths=["/docs/forums", "/docs/guide/start"])
    assert "https://api.example:8443/community/api/forums/forums" in read["/docs/forums"].text
    assert ".invalid" not in read["/docs/forums"].text
    start = read["/docs/guide/start"]
    assert {"/community/api/docs/reference.css", "/community/api/docs/base.css"} <= start.loads
    assert {"/community/api/openapi.json", "/community/api/docs/forums", "/community/admin"} <= start.links
    assert "https://api.example:8443/community/api/core/hello" in start.text


def test_an_address_with_markup_stays_text() -> None:
    read = read_pages(base="https://example.org/<script>alert(1)</script>\"'", paths=["/docs/forums"])["/docs/forums"]
    assert read.tags["script"] == 2


def test_it_tells_the_settings_that_hold_here() -> None:
    limits, requests, keys = "/docs/guide/limits", "/docs/guide/requests", "/docs/guide/keys"
    read = read_pages(rate_limit="120", body_limit="2048", key_in_url="1", paths=[limits, requests, keys])
    assert "120 requests per minute" in read[limits].text
    assert "2,048 bytes" in read[requests].text
    assert "which this service allows" in read[keys].text
    assert "The number of requests is unlimited" in read_pages(rate_limit="0", paths=[limits])[limits].text


def test_a_kind_declared_here_is_in_it() -> None:
    read = read_pages(GALLERIES, paths=["/docs/galleries"])["/docs/galleries"]
    assert {*(f"galleries.{verb}" for verb in ("list", "get", "create", "update", "delete"))} <= set(read.ids)
    for words in (
        "Photo galleries",
        "Where pictures hang.",
        "As they fit.",
        "See the pictures.",
        "is_lit",
        "/pictures/galleries/{id}",
    ):
        assert words in read.text


def test_a_catalogue_without_any_kind_has_a_reference_all_the_same() -> None:
    page = asyncio.run(Reference(catalogue_of(()), Settings.load({}, None)).find("/docs", BASE_URL))
    assert "Say hello" in Reading(page.body.decode()).text


_TOKENS: Final = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")
_PAIRS: Final = [
    *[
        (ink, paper)
        for ink in ("ink", "quiet", "accent", "warn", "bad", "note", "violet", *(f"hue{number}" for number in range(1, 7)))
        for paper in ("ground", "paper", "sunken")
    ],
    *[(ink, f"{ink}-wash") for ink in ("good", "warn", "bad", "note")],
    *[("accent", "wash"), ("on-accent", "accent"), ("on-accent", "bad")],
]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_colours_can_be_told_apart(theme: int) -> None:
    sheets = {file.name: re.findall(r":root \{(.*?)\}", file.read_text(), re.DOTALL) for file in STATIC if file.suffix == ".css"}
    own = sheets["reference.css"]
    tokens = dict(_TOKENS.findall(sheets["base.css"][0] + own[0] + (sheets["dark.css"][0] + own[1] if theme else "")))
    assert [pair for pair in _PAIRS if _contrast(tokens[pair[0]], tokens[pair[1]]) < 4.5] == []  # WCAG 2.2, 1.4.3
    assert _contrast(tokens["edge"], tokens["paper"]) >= 3  # WCAG 2.2, 1.4.11


def _contrast(one: str, other: str) -> float:
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- as it is served ----------------------------------------------------------------------------------------------


@sqlite
def test_it_is_served_without_a_key_and_with_a_strict_policy(api: ApiClient) -> None:
    paths = {"/docs": "text/html; charset=utf-8", "/docs/": "text/html; charset=utf-8"}
    types = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
    paths |= {f"/docs/{name}": "text/html; charset=utf-8" for name in ("forums", "core", "guide/errors")}
    paths |= {f"/docs/{file.name}": types[file.suffix] for file in STATIC}
    for path, content_type in paths.items():
        answer = api.get(path, key=None)
        assert (answer.status_code, answer.headers["content-type"]) == (200, content_type)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert api.get(path, key=None, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; ")
    assert "unsafe" not in POLICY


@sqlite
def test_what_is_not_there_asks_for_a_key_like_any_path(api: ApiClient) -> None:
    missing = ("/docs/forums/create", "/docs/guide", "/docs/guide/nothing", "/docs/nothing.css", "/docs/reference.css/more")
    for path in (*missing, "/docs/%2e%2e/app.py"):
        assert api.get(path, key=None).status_code == 401
        assert api.get(path).json()["errorMessage"] == "NO_ENDPOINT"


@sqlite
def test_it_names_the_public_address_where_there_is_one(make_api: MakeApiClient) -> None:
    answer = make_api(public_url="https://api.example").get("/docs/core", key=None)
    assert "https://api.example/api/core/hello" in Reading(answer.text).text


@sqlite
def test_the_page_that_a_problem_names_has_the_problem(api: ApiClient) -> None:
    kind = api.get("/forums/forums/999").json()["type"]
    address, _, anchor = kind.partition("#")
    assert address == f"{BASE_URL}/api/docs"
    assert Reading(api.get("/docs", key=None).text).ids[anchor] == 1


def test_the_pages_are_rendered_once_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def noted(honest: Callable[..., Any]) -> Callable[..., Any]:
        def render(*given: Any) -> Any:
            threads.append(threading.current_thread())
            return honest(*given)

        return render

    monkeypatch.setattr(reference, "document", noted(document))  # of the document
    monkeypatch.setattr(reference, "render_pages", noted(render_pages))

    async def read() -> None:
        pages = Reference(catalogue_of(KINDS), Settings.load({}, None))
        for path in ("/docs", "/docs/forums", "/openapi.json"):
            found = await asyncio.gather(*(pages.find(path, BASE_URL) for _ in range(5)))
            assert len({id(page) for page in found}) == 1, "all have the same bytes"
            await pages.find(path, "http://other.example")

    asyncio.run(read())
    assert len(threads) == 2
    assert threading.main_thread() not in threads


def test_the_pages_of_a_few_addresses_are_kept() -> None:
    async def read() -> None:
        pages = Reference(catalogue_of(()), Settings.load({}, None))
        first = await pages.find("/docs", BASE_URL)
        assert await pages.find("/docs", BASE_URL) is first
        for host in (f"{number}.example" for number in range(100)):  # whatever callers send as Host
            other = await pages.find("/docs", f"http://{host}")
            assert f"http://{host}/api" in other.body.decode()
        for path in ("/docs/nothing", "/docs/guide/nothing"):
            with pytest.raises(KeyError):
                await pages.find(path, BASE_URL)
        assert len(pages._kept) == 4  # what a caller without a key must not let grow
        assert (await pages.find("/docs", BASE_URL)).body == first.body

    asyncio.run(read())
