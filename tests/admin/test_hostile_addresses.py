"""Addresses that nobody is led to: each page of the panel with values in its query that mean nothing, or that are at an end."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

import pytest

from tests.admin.conftest import Visitor
from tests.admin.everything import KIND, fill, spread
from tests.admin.html_forms import read_forms
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from trellis.admin.app import Panel
from trellis.admin.page import PageRequest
from trellis.admin.submitted import CSRF
from trellis.core.gate import Gate
from trellis.settings import Settings

pytestmark = pytest.mark.slow

# What a database may take for something else, or refuse: numbers, also where nothing else gets so far, and texts.
_NUMBERS: Final = ("\x00", "-1", "0", "9" * 400, str(2**63), str(-(2**63) - 1))
_ALMOST_NUMBERS: Final = ("²", "٣", "1e9", "NaN", "null")  # are none to the program, whatever the database
_TEXTS: Final = ("😀" * 50, "x" * 600)
_READ: Final = ("[]", "[" * 200, "{", "{{ 7 * 7 }}%s%(x)s{x}", "\\\\evil.example")  # by the program, whatever the database
_SHOWN: Final = (  # what a browser may
    *("<script>alert(1)</script>\"'>", "\u202eRTL\u2066\u200b", "\x1b[31m\r\nSet-Cookie: a=b", "//evil.example"),
    *("javascript:alert(1)", "%00"),
)
_TEXT: Final = "{{x"  # what nothing but a text can be
_VALUES: Final = {  # for what takes any text, and for what refuses some before a database is asked
    "sqlite": (_NUMBERS + _ALMOST_NUMBERS + _TEXTS + _READ + _SHOWN, _NUMBERS + _ALMOST_NUMBERS + _SHOWN),
    "postgresql": (_NUMBERS + _TEXTS, _NUMBERS),
}
_TIMES: Final = frozenset(("from", "to", "since", "after", "failedSince", "until"))
_ENDS: Final = {  # by the zone in which they are beyond what there is
    "Pacific/Kiritimati": ("0001-01-01", "0001-01-01T00:00", "0001-01-01T00:00:00+14:00"),
    "America/New_York": ("9999-12-31", "9999-12-31T23:59", "9999-12-31T23:59:59-14:00"),
}


_PARTS: Final = tuple(range(6))  # of the values, for pages that several kinds of nodes have


def _hostile(names: list[str], values: Sequence[str], part: int) -> Iterator[list[tuple[str, str]]]:
    """Give each name each value of a part, with others beside it."""
    for number in range(part, len(values) if names else 0, len(_PARTS)):
        yield [(name, values[(number + 5 * index) % len(values)]) for index, name in enumerate(names)]


def _ends(names: list[str], ends: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """Give times alone: a list refuses what one of its filters refuses."""
    return ([(name, end)] for name in names if name in _TIMES for end in ends)


class _Query(dict[str, str]):
    """The parameters of an address, which note what is asked of them."""

    asked: Final = set[str]()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        return super().__contains__(name)


def _names(admin: Visitor, path: str) -> list[str]:
    """Return the parameters that a page looks for, and those that its forms send to an address."""
    _Query.asked.clear()
    forms = [{name for name, _ in form.pairs} for form in read_forms(admin.get(path))]
    return sorted(_Query.asked.union(*(names for names in forms if CSRF not in names)))


def _split_refused(admin: Visitor, path: str, names: list[str]) -> tuple[list[str], ...]:
    """Split names into those that take any text and those that refuse some, for which a page looks at none of the others."""
    refused = {name for name in names if len(names) > 1 and _ask(admin, path, [(name, _TEXT)])[1].status_code == 400}
    return [name for name in names if name not in refused], sorted(refused)


@pytest.fixture
def _noted(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = vars(PageRequest)["query"].func
    monkeypatch.setattr(PageRequest, "query", property(lambda request: _Query(parse(request))))


@pytest.mark.usefixtures("_noted")
def test_nothing_in_an_address_fails_or_comes_back_as_markup(
    engine: str, admin: Visitor, community: Community, gate: Gate, settings: Settings, run: Run, key: MakeKey
) -> None:
    fill(gate, run, key)
    paths = [page for page in Panel(gate, settings).pages if page.method == "GET" and "{" not in page.path.replace("{id:int}", "")]
    one_of_each = {KIND.sub("/", page.path): page.path for page in paths}  # kinds of nodes have the same names
    names = {shape: _names(admin, path.replace("{id:int}", "1")) for shape, path in one_of_each.items()}
    _choose_zone(admin, "UTC")
    split = {shape: _split_refused(admin, path, names[shape]) for shape, path in one_of_each.items()}
    for page, part in spread(paths, _PARTS):
        for those, values in zip(split[KIND.sub("/", page.path)], _VALUES[engine], strict=True):
            _check(admin, page.path, _hostile(those, values, part))
    for zone, ends in _ENDS.items():
        _choose_zone(admin, zone)
        for shape, path in one_of_each.items():
            _check(admin, path, _ends(names[shape], ends))


def _choose_zone(admin: Visitor, zone: str) -> None:
    assert admin.post("/account/view", {"zone": zone, "theme": "", "language": ""}).status_code == 303


def _check(admin: Visitor, path: str, queries: Iterable[list[tuple[str, str]]]) -> None:
    for query in queries:
        address, response = _ask(admin, path, query)
        assert response.status_code < 500, address
        assert "<script>alert" not in response.text, address
        assert response.headers.get("location", "/admin").startswith("/admin"), address
        assert not any(cookie.name == "a" for cookie in admin.client.cookies.jar), address


def _ask(admin: Visitor, path: str, query: list[tuple[str, str]]) -> tuple[str, Any]:
    """Open a page with a query; return the address, and what is answered."""
    address = path.replace("{id:int}", "1") + "?" + "&".join(f"{quote(name)}={quote(value)}" for name, value in query)
    return address, admin.get(address)


def test_nothing_in_a_path_fails(admin: Visitor, gate: Gate, settings: Settings) -> None:
    pages = [page for page in Panel(gate, settings).pages if "{" in page.path]
    asked = {  # a page with nothing but a number in its path is there once
        (page.method, re.sub(r"\{\w+\}", name, page.path.replace("{id:int}", str(2**63))))
        for page, name in spread(pages, ("a%00b", "%00", "%FF", "'", "x" * 900))
    }
    for method, path in sorted(asked):
        response = admin.get(path) if method == "GET" else admin.post(path)
        assert response.status_code < 500, path
