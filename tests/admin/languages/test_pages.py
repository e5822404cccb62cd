"""Every page is in the language that was chosen, whole: what a page says and no catalogue has is found here.

The language of this test has each text of the code with accents on its vowels, and the community is in Greek: a word of plain Latin
letters on a page is one that nobody can translate.
"""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from scripts.catalogues import find_texts
from tests.admin.conftest import Visitor
from tests.fixture_types import MakeKey, Run
from trellis.admin.languages import catalogues

_ACCENTS: Final = str.maketrans("aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ")
_FIXED: Final = re.compile(r"(%\(\w+\)s|%[sd%]|\{[^{}]*\}|<[^<>]*>|&\w+;)")
_WORD: Final = re.compile(r"[^\s\u2068\u2069]+")
_LATIN: Final = re.compile(r"[A-Za-z]*[aeiouy][A-Za-z]*")
_NOT_READ: Final = {"code", "pre", "kbd", "script", "style", "time", "textarea", "samp"}
_SHOWN: Final = ("aria-label", "title", "placeholder", "alt")
_PROPER: Final = re.compile("The Lantern|Mira Holm|Claude (Code|Desktop)|VS Code|Cursor|curl|testclient|Trellis|Deutsch|English")
_MOST: Final = 400  # pages


def _accent(text: str) -> str:
    return "".join(part if _FIXED.fullmatch(part) else part.translate(_ACCENTS) for part in _FIXED.split(text))


@pytest.fixture(scope="module")
def accented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the catalogue of the language."""
    folder = tmp_path_factory.mktemp("languages")
    for area, texts in find_texts().items():
        catalogue = Catalog("de", fuzzy=False)
        for text in texts:
            catalogue.add(text, _accent(text) if isinstance(text, str) else tuple(_accent(one) for one in text))
        (folder / "de").mkdir(exist_ok=True)
        with (folder / "de" / f"{area}.po").open("wb") as file:
            write_po(file, catalogue)
    return folder


@pytest.fixture
def offered(accented: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Offer the language, under a code for which there are dates."""
    monkeypatch.setattr(catalogues, "FOLDER", accented)
    monkeypatch.setattr(catalogues, "OFFERED", {"en": "English", "de": "Deutsch"})
    catalogues.load_language.cache_clear()
    yield
    catalogues.load_language.cache_clear()
    catalogues.list_script_texts.cache_clear()


class _Reader(HTMLParser):
    """Reads what a page says, and where it leads."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.links: list[str] = []
        self._closed: list[str] = []
        self._value = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(has.get("href", ""))
        if tag in _NOT_READ or has.get("translate") == "no":
            self._closed.append(tag)
        if tag == "option":
            self._value = has.get("value", "")
        if not self._closed:
            self.said += [has[name] for name in _SHOWN if name in has]

    def handle_endtag(self, tag: str) -> None:
        if self._closed and self._closed[-1] == tag:
            self._closed.pop()

    def handle_data(self, data: str) -> None:
        if not self._closed and data.strip() != self._value:  # options such as time zones are what they are sent as
            self.said.append(data)


def _find_latin(said: list[str]) -> set[str]:
    """Return what has a word of plain letters that is no name of the API: those have dots, underscores or capitals inside."""
    return {
        " ".join(text.split())
        for text in said
        for word in _WORD.findall(_PROPER.sub("", text))
        if len(bare := word.strip("().,:;…“”\"'?!+–→·×*")) > 2 and _LATIN.fullmatch(bare) and not bare.isupper()
    }


def _visit(admin: Visitor, first: str) -> Iterator[tuple[str, _Reader]]:
    """Open all pages that links lead to, one of each kind of address."""
    waiting, seen = [first], set[str]()
    while waiting and len(seen) < _MOST:
        address = waiting.pop(0)
        parts = urlsplit(address)
        shape = re.sub(r"\d+", "N", parts.path) + "?" + re.sub(r"=[^&]*", "", parts.query)
        if shape in seen:
            continue
        seen.add(shape)
        response: Any = admin.client.get(address, follow_redirects=True)
        if not response.headers["content-type"].startswith("text/html"):
            continue
        reader = _Reader()
        reader.feed(response.text)
        yield f"{response.status_code} {address}", reader
        waiting += [link for link in reader.links if link.startswith("/admin") and "sign-out" not in link]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_no_page_says_anything_in_another_language(offered: None, admin: Visitor, run: Run, key: MakeKey) -> None:
    for number, name in {2: "Ξένοι", 3: "Μέλη", 4: "Διαχειριστές"}.items():
        run("groups.update", number, name=name)
    group = run("groups.create", name="Ομάδα")["id"]
    top = run("forums.create", name="Αγορά", description="<p>Γεια</p>", permissions={"view": "*", "reply": [group]})["id"]
    below = run(
        "forums.create", name="Κάτω", parentId=top, type="redirect", redirectUrl="https://example.com/", password="μυστικό μου"
    )["id"]
    run("calendars.create", name="Ημέρες", color="#3B82F6")
    run("categories.create", name="Αρχεία")
    run("forums.update", top, name="Νέα")
    run("forums.copy", top, name="Αντίγραφο", withChildren=True)
    run("forums.delete", below)
    key(["forums.list", "forums.create"], name="Κλειδί", note="Σημείωση")
    run("webhooks.create", url="https://example.com/", description="Άγκιστρο", events=["forum.created"])
    admin.post("/language", {"language": "de", "next": "/admin"})
    found: dict[str, set[str]] = {}
    for address, page in _visit(admin, "/admin"):
        for text in _find_latin(page.said):
            found.setdefault(text, set()).add(address)
    lines = [f"{text!r} on {min(addresses)}" for text, addresses in sorted(found.items())]
    assert not lines, "\n".join(lines)
