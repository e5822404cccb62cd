"""Style sheets hold in both directions of writing, and in the dark."""

import re
from pathlib import Path

import trellis

_SHEETS = sorted(Path(trellis.__file__).parent.glob("*/**/static/*.css"))
_TEMPLATES = Path(trellis.__file__).parent / "admin" / "templates"
_PHYSICAL = re.compile(
    r"(?:margin|padding|border|scroll-margin|scroll-padding)-(?:left|right)|(?<![\w-])(?:left|right)\s*:|text-align:\s*(?:left|right)|"
    r"(?:float|clear):\s*(?:left|right)|border-(?:top|bottom)-(?:left|right)-radius"
)


def test_no_property_is_of_the_left_or_the_right() -> None:
    assert len(_SHEETS) > 5
    found = {sheet.name: sides for sheet in _SHEETS if (sides := _PHYSICAL.findall(sheet.read_text("utf-8")))}
    assert found == {}


def test_what_stands_before_a_link_is_not_underlined_with_it() -> None:
    rules = [rule for sheet in _SHEETS for rule in re.findall(r"a::before \{([^}]*)\}", sheet.read_text("utf-8"))]
    assert [rule for rule in rules if re.search(r'content: "[^"]', rule) and "inline-block" not in rule] == []


def test_each_page_with_something_to_copy_has_the_style_sheet_for_it() -> None:
    templates = {path.relative_to(_TEMPLATES).as_posix(): path.read_text("utf-8") for path in _TEMPLATES.rglob("*.html")}
    found = {name for name, text in templates.items() if "ui.copyable(" in text and "{% extends" in text}
    assert len(found) > 4
    assert {name for name in found if "programs.css" not in _with_parents(name, templates)} == set()


def _with_parents(name: str, templates: dict[str, str]) -> str:
    """Return a template with those that it extends."""
    above = re.search(r'{% extends "([^"]+)"', templates[name])
    return templates[name] + (_with_parents(above[1], templates) if above else "")


def test_the_dark_replaces_tokens_that_there_are() -> None:
    sheets = {sheet.name: sheet.read_text("utf-8") for sheet in _SHEETS}
    light, dark = (set(re.findall(r"(--[\w-]+):", sheets[name])) for name in ("base.css", "dark.css"))
    assert dark
    assert dark <= light
    assert "prefers-color-scheme" not in sheets["base.css"] + sheets["panel.css"]
