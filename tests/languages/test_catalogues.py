"""A language that is offered is whole: each text of the code is translated, with the same values and the same HTML."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from babel.messages.catalog import Catalog

from scripts.catalogues import Text, find_area, format_area, read_texts, update
from tests.languages.texts_of_code import find_all_texts
from trellis.languages.catalogues import FOLDER, OFFERED, list_script_texts, load_language, read_catalogue

TRANSLATED: Final = sorted(code for code in OFFERED if code != "en")
_PLACEHOLDERS: Final = re.compile(r"%\(\w+\)s|%s|%d|(?<!\{)\{\w+[^}]*\}(?!\})")
_TAGS: Final = re.compile(r"<[^<>]+>")
_NUMBER: Final = frozenset({"%(num)s", "{count}", "{count:,}"})  # a form for one may do without


@pytest.mark.parametrize("code", TRANSLATED)
def test_an_offered_language_is_whole(code: str) -> None:
    catalogue = read_catalogue(sorted((FOLDER / code).glob("*.po")), code)
    texts: set[Text] = {text for those in find_known_texts(code).values() for text in those}
    faults = {text: fault for text in texts if (fault := find_fault(text, catalogue))}
    assert faults == {}


@pytest.mark.parametrize("code", TRANSLATED)
def test_the_catalogues_of_an_offered_language_are_up_to_date(code: str) -> None:
    assert update(FOLDER / code, find_known_texts(code), writes=False) == [], "Run `make catalogues`."


def find_known_texts(code: str) -> dict[str, set[Text]]:
    """Return all texts but those of tables that no catalogue lists.

    A new kind or operation is in English until `make catalogues` was run; a release is not made before that.
    """
    known = read_catalogue(sorted((FOLDER / code).glob("*.po")), code)
    texts = find_all_texts()
    return {
        **{area: set(those) for area, those in texts.items()},
        "tables": {one for one in texts["tables"] if known.get(one) is not None},
    }


def find_fault(text: Text, catalogue: Catalog) -> str:
    """Return what is wrong with the translation of a text, "" for nothing."""
    message = catalogue.get(text)
    if message is None or isinstance(message.id, str) != isinstance(text, str):
        return "missing"
    if message.fuzzy:
        return "fuzzy"
    forms = [str(form) for form in ((message.string,) if isinstance(text, str) else message.string or ())]
    if len(forms) != (1 if isinstance(text, str) else catalogue.num_plurals) or not all(forms):
        return "not translated"
    english = text if isinstance(text, str) else text[1]
    for form in forms:
        for pattern in (_PLACEHOLDERS, _TAGS):
            wanted, found = (Counter(pattern.findall(one)) for one in (english, form))
            if {*(wanted - found), *(found - wanted)} - (set() if isinstance(text, str) else _NUMBER):
                return f"other values or tags: {form}"
    return ""


# --- how catalogues are made ----------------------------------------------------------------------------------------------

SAVE: Final = 'msgid "Save"\nmsgstr "Speichern"\n'


def test_what_is_translated_is_kept_and_what_has_gone_is_dropped(tmp_path: Path) -> None:
    folder = tmp_path / "de"
    folder.mkdir()
    (folder / "keys.po").write_text(f'{SAVE}\nmsgid "Gone"\nmsgstr "Weg"\n', encoding="utf-8")
    texts: dict[str, set[Text]] = {"panel": {"Save", ("%(num)s key", "%(num)s keys")}, "keys": set()}
    assert [path.name for path in update(folder, texts, writes=False)] == ["panel.po", "keys.po"]
    update(folder, texts)
    assert [path.name for path in folder.iterdir()] == ["panel.po"]
    written = (folder / "panel.po").read_text(encoding="utf-8")
    assert SAVE in written
    assert 'msgid_plural "%(num)s keys"\nmsgstr[0] ""\nmsgstr[1] ""\n' in written
    assert "Gone" not in written
    assert update(folder, texts) == []


@pytest.mark.parametrize(
    ("text", "translated", "fault"),
    [
        ("{count:,} of {name}", "{name}: {count:,}", ""),
        ("Hello <b>%(name)s</b>", "Hallo <b>%(name)s</b>", ""),
        ("Hello <b>%(name)s</b>", "Hallo %(name)s", "other values or tags: Hallo %(name)s"),
        ("Hello {name}", "Hallo {nmae}", "other values or tags: Hallo {nmae}"),
        ("Hello", "", "not translated"),
        (("%(num)s key", "%(num)s keys"), ("ein Schlüssel", "%(num)s Schlüssel"), ""),
        (("%(num)s key", "%(num)s keys"), ("ein Schlüssel", ""), "not translated"),
    ],
)
def test_what_a_translation_has_to_keep(text: Text, translated: str | tuple[str, str], fault: str) -> None:
    catalogue = Catalog("de", fuzzy=False)
    catalogue.add(text, translated)
    assert find_fault(text, catalogue) == fault
    assert find_fault("Another", catalogue) == "missing"
    assert format_area("de", catalogue, {text}).startswith(b'msgid ""\nmsgstr ""\n"Language: de\\n"\n')


def test_a_language_has_its_texts_its_separators_and_those_of_its_scripts(tmp_path: Path) -> None:
    (tmp_path / "de").mkdir()
    (tmp_path / "de" / "panel.po").write_text(SAVE, encoding="utf-8")
    (tmp_path / "de" / "scripts.po").write_text(
        'msgid "Copied."\nmsgstr "Kopiert."\n\nmsgid "{count} node"\nmsgid_plural "{count} nodes"\n'
        'msgstr[0] "{count} Knoten"\nmsgstr[1] "{count} Knoten zusammen"\n',
        encoding="utf-8",
    )
    german = load_language("de", tmp_path)
    assert (german.text("Save"), german.text("Copied."), german.text("Unknown"), german.text("")) == (
        "Speichern",
        "Kopiert.",
        "Unknown",
        "",
    )
    assert (german.name, german.number(1234567)) == ("Deutsch", "1.234.567")
    assert list_script_texts("de", tmp_path) == {
        "Copied.": "Kopiert.",
        "{count} nodes": {"one": "{count} Knoten", "other": "{count} Knoten zusammen"},
    }


def test_no_line_ends_within_a_short_word_with_a_hyphen() -> None:
    german = load_language("de")
    told = german.text("Email"), german.text("No more mail goes to this address")
    assert told == ("E\N{NON-BREAKING HYPHEN}Mail", "An diese Adresse gehen keine E\N{NON-BREAKING HYPHEN}Mails mehr")


def test_what_a_script_says_within_another_text_is_found(tmp_path: Path) -> None:
    script = tmp_path / "palette.js"
    script.write_text('const help = `${t("choose")} · ${many(count, "{count} result", "{count} results")}`;\n', encoding="utf-8")
    assert set(read_texts(script)) == {"choose", ("{count} result", "{count} results")}


def test_each_text_is_found_and_is_in_one_area() -> None:
    texts = find_all_texts()
    assert "{count:,} fields are invalid: {faults}" in texts["core"]
    assert ("%(num)s forum", "%(num)s forums") in texts["tables"]
    assert "Page not found" in texts["panel"]
    everything = [text for those in texts.values() for text in those]
    assert len(everything) == len(set(everything))
    assert find_area("admin/templates/keys/show.html") == "keys"
    assert find_area("core/keys/crud.py") == "core"
