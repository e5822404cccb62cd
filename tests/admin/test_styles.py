"""Style sheets hold in both directions of writing, and in the dark."""

import re
from pathlib import Path

import trellis

_SHEETS = sorted(Path(trellis.__file__).parent.glob("*/**/static/*.css"))
_PHYSICAL = re.compile(
    r"(?:margin|padding|border|scroll-margin|scroll-padding)-(?:left|right)|(?<![\w-])(?:left|right)\s*:|text-align:\s*(?:left|right)|"
    r"(?:float|clear):\s*(?:left|right)|border-(?:top|bottom)-(?:left|right)-radius"
)


def test_no_property_is_of_the_left_or_the_right() -> None:
    assert len(_SHEETS) > 5
    found = {sheet.name: sides for sheet in _SHEETS if (sides := _PHYSICAL.findall(sheet.read_text("utf-8")))}
    assert found == {}


def test_the_dark_replaces_tokens_that_there_are() -> None:
    sheets = {sheet.name: sheet.read_text("utf-8") for sheet in _SHEETS}
    light, dark = (set(re.findall(r"(--[\w-]+):", sheets[name])) for name in ("base.css", "dark.css"))
    assert dark
    assert dark <= light
    assert "prefers-color-scheme" not in sheets["base.css"] + sheets["panel.css"]
