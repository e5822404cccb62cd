"""Finds what is not sound in the HTML of a page: browsers mend it, each in silence and after rules that nobody has in mind.

Every page is judged in languages/test_pages.py, where all are visited.
"""

from html.parser import HTMLParser
from typing import Final

import pytest

# From the HTML standard, 13.1.2 and 4.
_VOID: Final = "area base br col embed hr img input link meta param source track wbr"
_BLOCKS: Final = """address article aside blockquote details dialog div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr
    main menu nav ol p pre section table ul"""
VOID: Final = set(_VOID.split())
BLOCKS: Final = set(_BLOCKS.split())
PHRASES: Final = {"p", "span", "button", "a", "label", "h1", "h2", "h3", "h4", "strong", "em", "code", "small", "summary", "legend"}
HEADED: Final = {"summary", "legend"}  # but for headings in these
NO_LINKS: Final = {"a", "button"}  # nothing to press within what is pressed
PRESSED: Final = {"a", "button", "input", "select", "textarea"}
OWN: Final = {"svg", "math"}  # not HTML


class Judge(HTMLParser):
    """Reads a page, and notes what is not sound."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._open: list[str] = []
        self._ids: set[str] = set()
        self._marks: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        self.faults += [f"<{tag}> has {name} twice" for name in set(names) if names.count(name) > 1]
        if (id := dict(attrs).get("id")) is not None:
            self.faults += [f"two have the id {id}"] if id in self._ids else []
            self._ids.add(id)
        self._marks |= {name for name in names if name.startswith("data-")} | {
            f"role={role}" for role in [dict(attrs).get("role")] if role
        }
        if not OWN & set(self._open):
            self._judge(tag)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if not OWN & {tag, *self._open}:
            self.faults.append(f"<{tag}/> is not closed by its slash")

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()
            return
        self.faults.append(f"</{tag}> within {self._where()}")
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def _judge(self, tag: str) -> None:
        phrase = next((one for one in reversed(self._open) if one in PHRASES), None)
        if tag in BLOCKS and phrase is not None and not (phrase in HEADED and tag[0] == "h"):
            self.faults.append(f"<{tag}> within {self._where()}")
        if tag in PRESSED and NO_LINKS & set(self._open):
            self.faults.append(f"<{tag}> within {self._where()}")
        if tag == "form" and "form" in self._open:
            self.faults.append(f"<form> within {self._where()}")

    def _where(self) -> str:
        return " ".join(f"<{tag}>" for tag in self._open[-3:])

    def close(self) -> None:
        super().close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]
        if {"data-typed", "role=alert"} <= self._marks and "data-focus" not in self._marks:
            self.faults.append("what is wrong with a form that was sent does not get the focus")


def judge(page: str) -> list[str]:
    """Return what is not sound in a page."""
    reader = Judge()
    reader.feed(page)
    reader.close()
    return reader.faults


@pytest.mark.parametrize(
    "unsound",
    [
        "<p><form></form></p>",
        "<div><span></div></span>",
        "<div>",
        '<p id="a"></p><b id="a"></b>',
        "<a><button></button></a>",
        "<form><div><form></form></div></form>",
        '<p class="a" class="b"></p>',
        "<div/>",
        "<main data-typed><p role=alert></p></main>",
    ],
)
def test_what_is_unsound_is_found(unsound: str) -> None:
    assert judge(unsound)
