"""Every page is in the language that was chosen, whole: what a page says and no catalogue has is found here.

The language of this test has each text of the code with accents on its vowels, and the community is in Greek: a word of plain Latin
letters on a page is one that nobody can translate. The same pages are judged as HTML; see test_markup.py.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from tests.admin.conftest import Visitor, page_text
from tests.admin.everything import fill, see_everything
from tests.admin.structure.documents import apply, plan
from tests.admin.test_markup import Judge
from tests.fixture_types import Events, MakeKey, Run
from tests.languages.texts_of_code import find_all_texts
from trellis.compose import catalogue_of
from trellis.core.fields import Choice, Nullable
from trellis.core.gate import Gate
from trellis.kinds import KINDS
from trellis.languages import catalogues

_ACCENTS: Final = str.maketrans("aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ")
_FIXED: Final = re.compile(r"(%\(\w+\)s|%[sd%]|\{[^{}]*\}|<[^<>]*>|&\w+;)")
_WORD: Final = re.compile(r"[^\s\u2068\u2069]+")
_LATIN: Final = re.compile(r"[A-Za-z]*[aeiouy][A-Za-z]*")
_NOT_READ: Final = {"code", "pre", "kbd", "script", "style", "time", "textarea", "samp"}
_SHOWN: Final = ("aria-label", "title", "placeholder", "alt")
_PROPER: Final = re.compile(
    r"\(copy\)|Calendar sync|The Lantern|Mira Holm|Claude (Code|Desktop)|VS Code|Cursor|curl|testclient|Trellis|Deutsch|English"
)


def _accent(text: str) -> str:
    return "".join(part if _FIXED.fullmatch(part) else part.translate(_ACCENTS) for part in _FIXED.split(text))


@pytest.fixture(scope="module")
def accented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the catalogue of the language."""
    folder = tmp_path_factory.mktemp("languages")
    for area, texts in find_all_texts().items():
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


class _Reader(Judge):
    """Reads what a page says, and judges it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._closed: list[str] = []
        self._value = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        self._enter(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_startendtag(tag, attrs)
        self._enter(tag, attrs)
        self._leave(tag)

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        self._leave(tag)

    def _enter(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag in _NOT_READ or has.get("translate") == "no" or tag in self._closed:
            self._closed.append(tag)
        if tag == "option":
            self._value = has.get("value", "")
        if not self._closed:
            self.said += [has[name] for name in _SHOWN if name in has]

    def _leave(self, tag: str) -> None:
        if self._closed and self._closed[-1] == tag:
            self._closed.pop()

    def handle_data(self, data: str) -> None:
        if not self._closed and data.strip() != self._value:  # options such as time zones are what they are sent as
            self.said.append(data)


@cache
def _names_of_the_api() -> frozenset[str]:
    """Return the names of fields, of resources, and of the values of choices, which are the same in every language."""
    operations = catalogue_of(KINDS).values()
    fields = [field for operation in operations for field in operation.fields]
    kept = (field.type.type if isinstance(field.type, Nullable) else field.type for field in fields)
    words = {word for one in kept if isinstance(one, Choice) for word in one.words}
    resources = {operation.resource for operation in operations}
    return frozenset({field.name for field in fields} | resources | {one.removesuffix("s") for one in resources} | words | {"mods"})


def _find_latin(said: list[str]) -> set[str]:
    """Return what has a word of plain letters that is no name of the API: those have dots, underscores or capitals inside."""
    return {" ".join(text.split()) for text in said if any(map(_is_latin, _WORD.findall(_PROPER.sub("", text))))}


def _is_latin(word: str) -> bool:
    bare = word.strip("().,:;…“”\"'?!+–→·×*[]{}")
    return (
        "'" not in word
        and '"' not in word
        and bool(_LATIN.fullmatch(bare))
        and len(bare) > 2
        and not bare.isupper()
        and bare not in _names_of_the_api()
    )


def _read(response: Any) -> _Reader:
    reader = _Reader()
    reader.feed(response.text)
    reader.close()
    return reader


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_page_is_sound_and_says_nothing_in_another_language(
    offered: None, admin: Visitor, run: Run, key: MakeKey, gate: Gate
) -> None:
    fill(gate, run, key)
    admin.post("/language", {"language": "de", "next": "/admin"})
    found: dict[str, str] = {}
    faults: dict[str, str] = {}
    pages = 0
    for address, response in see_everything(admin):
        pages += 1
        read = _read(response)
        for text in _find_latin(read.said):
            found.setdefault(text, f"{response.status_code} {address}")
        for fault in read.faults:
            faults.setdefault(fault, address)
    assert pages > 100
    assert not found, "\n".join(f"{text!r} on {place}" for text, place in sorted(found.items()))
    assert not faults, "\n".join(f"{fault} on {address}" for fault, address in faults.items())


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_is_seldom_said_is_in_the_language_too(
    offered: None, admin: Visitor, run: Run, key: MakeKey, gate: Gate, events: Events
) -> None:
    fill(gate, run, key)
    for number in range(12):
        run("groups.create", name=f"Ομάδα {number}")
    run("filters.create", name="Δικά", list="deliveries", query="state=failed", shared=True)
    admin.post("/language", {"language": "de", "next": "/admin"})
    copied = next(event["seq"] for event in events() if event["operation"] == "forums.copy")
    document = "format: trellis/1\nname: δ\nforums:\n  - {externalId: β, name: Δρόμος}\n"
    applied = apply(admin, plan(admin, document)).headers["location"].removeprefix("/admin")
    pages = {
        "was applied: 1 created.": admin.get(applied),
        "of another forum: line 4.": plan(admin, document + "  - {externalId: β, name: Γ}\n"),
        "and 10 more": admin.get("/forums/1"),
        ", paused": admin.get("/search?text=Κλειδί"),
        "event 5,": admin.get("/search?text=5"),
        ", The terminal": admin.get("/search?text=5"),
        "filter of deliveries": admin.get("/search?text=Δικά"),
        "the terminal": admin.get("/filters"),
        "Created:": admin.get(f"/events/{copied}"),
        "(another": admin.get("/proposals/2"),
        "no key with the id 999": admin.get("/keys/999"),
        "no webhook with the id 999": admin.get("/webhooks/999"),
    }
    said = {text: page_text(page).translate(dict.fromkeys((0x2068, 0x2069))) for text, page in pages.items()}
    assert [text for text in said if _accent(text) not in said[text]] == []
    assert _accent("key|keys") in admin.get("/keys").text  # scripts count the ticked rows with these words


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_heading_runs_in_the_direction_of_its_language_whatever_name_it_begins_with(admin: Visitor, run: Run) -> None:
    forum = run("forums.create", name="מנהלים")["id"]
    german = {"accept-language": "de"}
    (sentence,) = re.findall(r"<h1.*?</h1>", admin.get(f"/forums/{forum}/delete", headers=german).text)
    assert ">מנהלים löschen<" in sentence
    (name,) = re.findall(r"<h1.*?</h1>", admin.get(f"/forums/{forum}", headers=german).text)
    assert "<bdi>מנהלים</bdi>" in name
