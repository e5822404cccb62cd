"""A community of the other product, on this machine: it answers over its REST API as recorded answers of a live one do."""

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

from tests.local_server import LocalServer, QuietHandler

KEY: Final = "1f0c2a55e3d94b7f86a1c9e02b7d4411"
SINGULAR: Final = {"calendar/calendars": "calendar/calendar", "downloads/categories": "downloads/category"}
HELLO: Final = "core/hello"
_NUMBERS: Final = ("perm_view", *(f"perm_{number}" for number in range(2, 8)))

Record = dict[str, Any]


def group(number: int, name: str, formatted: str | None = None) -> Record:
    return {"id": number, "name": name, "formattedName": formatted or name}


def permissions(number: int, *who: str | None) -> Record:
    """Give permissions by position: `*`, ids joined by commas, or nobody."""
    told: Record = {"perm_id": number} | dict.fromkeys(_NUMBERS)
    return told | {"perm_view": ""} | dict(zip(_NUMBERS, who, strict=False))


def forum(
    number: int, name: str, parent: int = -1, *, kind: str = "discussions", who: Iterable[str | None] = ("*", "*"), **more: Any
) -> Record:
    return {
        "id": number,
        "name": name,
        "path": name,
        "type": kind,
        "topics": 3,
        "url": f"https://old.example/forum/{number}-x/",
        "parentId": parent,
        "permissions": permissions(number, *who),
        "club": 0,
    } | more


def calendar(number: int, name: str, *, who: Iterable[str | None] = ("*", "*", "3,4"), **more: Any) -> Record:
    return {
        "id": number,
        "name": name,
        "url": f"https://old.example/calendar/{number}-x/",
        "class": "IPS\\calendar\\Calendar",
        "parentId": None,
        "permissions": permissions(1000 + number, *who),
        "club": 0,
    } | more


def category(number: int, name: str, parent: int | None = None, *, who: Iterable[str | None] = ("*", "*"), **more: Any) -> Record:
    return calendar(number, name, who=who) | {"class": "IPS\\downloads\\Category", "parentId": parent} | more


def blog(number: int, name: str, owner: str | None, groups: list[Record], **more: Any) -> Record:
    """Make a blog of a member, or of groups if `owner` is None."""
    member = {"id": 1, "name": owner, "title": None, "timeZone": "UTC", "formattedName": owner, "primaryGroup": None}
    return {
        "id": number,
        "name": name,
        "description": "<p>Notes.</p>",
        "owner": None if owner is None else member,
        "groups": groups,
        "pinned": False,
        "entries": 4,
        "comments": 9,
        "url": f"https://old.example/blog/{number}-x/",
        "category": {"id": 1, "name": "General", "url": "https://old.example/blogs/1-x/", "class": "IPS\\blog\\Category"},
    } | more


def make_lists() -> dict[str, list[Record]]:
    """Make a community with all that is awkward: late parents, clubs, names that repeat, a group whose id differs."""
    groups = [
        group(2, "Guests"),
        group(3, "Members"),
        group(4, "Patrons", "<b>Patrons</b>"),
        group(6, "Moderators", "<span style='color:#c00'>Moderators</span>"),
        group(9, "Administrators"),
    ]
    return {
        "core/groups": groups,
        "forums/forums": [
            forum(1, "Staff", kind="category", who=("6,9", "6,9", "9", "6,9", "*")),
            forum(2, "Betas", 20, who=("*", "3,4,6", "3")),
            forum(3, "News", 20, kind="questions"),
            forum(5, "News", 20),
            forum(7, "Shop", kind="redirect"),
            forum(8, "Salt > Pepper", 1),
            forum(11, "Walkers", club=4),
            forum(12, "Walks", 11, club=0),
            forum(20, "Projects", kind="category"),
        ],
        "calendar/calendars": [calendar(1, "Meetings"), calendar(2, "Meetings", who=("", None))],
        "downloads/categories": [category(1, "Plans", 4), category(4, "Garden", who=("*", "*", "6", "3", None, "4"))],
        "blog/blogs": [blog(1, "Greenhouse", "Mira Holm", []), blog(2, "Workshop", None, [groups[3]])],
    }


@dataclass(frozen=True)
class Interruption:
    """What comes in place of an answer, once."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  # the standard library's name
        community: OldCommunity = self.server.owner
        community.requests.append(self.path)
        community.keys.append(self.headers.get("authorization", ""))
        for beginning, act in community.before.items():
            if self.path.startswith(beginning):
                act()
        stop = community.interruptions.pop(0) if community.interruptions else community.find_instead(self.path)
        if callable(stop):
            stop(self)
        elif stop is not None:
            self._send(stop.status, stop.body, stop.headers)
        else:
            status, answer = community.answer(self.path, self.headers.get("authorization"))
            is_page = isinstance(answer, str)
            body = answer.encode() if is_page else json.dumps(answer).encode()
            self._send(status, body, {"content-type": "text/html" if is_page else "application/json;charset=UTF-8"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@dataclass
class OldCommunity(LocalServer):
    """A live community; as a context it listens. What it is like may be changed at any time.

    `caches`: an answer is repeated for as long as the address that asked for it is the same. `rewrites`: paths work without
    index.php. `granted` are the paths that the key may read, by default all. `interruptions` are answered first, one each;
    `instead` always, where a path begins so; `before` is what happens before such a path is answered. `told` are the numbers of
    pages and results that lists tell, in place of the true ones.
    """

    handler: ClassVar[type[QuietHandler]] = _Handler
    lists: dict[str, list[Record]] = field(default_factory=make_lists)
    release: str | None = "4.7.20"
    singular: bool = False
    all_at_once: bool = False
    caches: bool = False
    rewrites: bool = True
    most_per_page: int = 1000
    granted: set[str] | None = None
    interruptions: list[Interruption | Callable[[BaseHTTPRequestHandler], object]] = field(default_factory=list)
    instead: dict[str, Interruption] = field(default_factory=dict)
    before: dict[str, Callable[[], None]] = field(default_factory=dict)
    told: Record | None = None
    requests: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    _cached: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/"

    def find_instead(self, path: str) -> Interruption | None:
        """Return what is always answered at a path in place of the truth."""
        return next((answer for beginning, answer in self.instead.items() if path.startswith(beginning)), None)

    def answer(self, address: str, authorization: str | None) -> tuple[int, Any]:
        """Answer as the suite does; a text is a page of HTML."""
        path, _, query = address.partition("?")
        if path == "/api/index.php":
            path, _, query = f"/api{query}".partition("&")
        elif not self.rewrites or not path.startswith("/api/"):
            return 404, "<!doctype html><title>Not found</title>"
        if authorization != f"Basic {base64.b64encode(f'{KEY}:'.encode()).decode()}":
            return 401, {"errorCode": "3S290/7", "errorMessage": "INVALID_API_KEY"}
        return self._answer_path(path.removeprefix("/api/"), query)

    def _answer_path(self, path: str, query: str) -> tuple[int, Any]:
        known = {SINGULAR.get(one, one) if self.singular else one: one for one in self.lists}
        if self.release is not None:
            known[HELLO] = HELLO
        if path not in known:
            return 404, {"errorCode": "2S291/1", "errorMessage": "NO_ENDPOINT"}
        if self.granted is not None and path not in self.granted:
            return 403, {"errorCode": "2S291/3", "errorMessage": "NO_PERMISSION"}
        if path == HELLO:
            return 200, {"communityName": "Green Fingers", "communityUrl": "https://old.example/", "ipsVersion": self.release}
        asked = f"{path}?{query}"
        if not self.caches or asked not in self._cached:
            self._cached[asked] = self._page(known[path], dict(parse_qsl(query)))
        return 200, self._cached[asked]

    def _page(self, path: str, query: dict[str, str]) -> Record:
        records = sorted(self.lists[path], key=lambda record: int(record["id"]))
        page, per_page = int(query.get("page", "1")), min(int(query.get("perPage", "25")), self.most_per_page)
        results = records if self.all_at_once else records[(page - 1) * per_page : page * per_page]
        counts = {"totalResults": len(records), "totalPages": max(1, -(-len(records) // per_page))}
        return {"page": page, "perPage": per_page} | (counts if self.told is None else self.told) | {"results": results}
