"""Reading a form off a page as a browser would send it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, Final

from trellis.admin.submitted import CSRF

_FORM: Final = re.compile(r"<form\b.*?</form>", re.DOTALL)  # a page escapes what is not its own, and a form contains no other


@dataclass
class HtmlForm:
    """One form: where it goes, and its pairs of names and values as they stand. `buttons` are those that have a name."""

    action: str
    pairs: list[tuple[str, str]] = field(default_factory=list)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    offered: list[tuple[str, str]] = field(default_factory=list)  # boxes and choices, ticked or not

    def filled(self, *more: tuple[str, str], without: Iterable[str] = (), **changes: str) -> dict[str, list[str]]:
        """Return what is sent after some changes, without the token. `more` are added, names `without` left out."""
        gone = {*changes, *without, CSRF}
        sent: dict[str, list[str]] = {}
        for name, value in (*(pair for pair in self.pairs if pair[0] not in gone), *changes.items(), *more):
            sent.setdefault(name, []).append(value)
        return sent

    def __getitem__(self, name: str) -> str:
        return next(value for key, value in reversed(self.pairs) if key == name)

    def all(self, name: str) -> list[str]:
        """Return every value of a name."""
        return [value for key, value in self.pairs if key == name]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self._at: HtmlForm | None = None
        self._text: list[str] | None = None
        self._name = ""
        self._first = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._at = HtmlForm(has.get("action", ""))
            self.forms.append(self._at)
        if self._at is None:
            return
        if tag == "textarea":
            self._name, self._text = has.get("name", ""), []
        elif tag == "select":
            self._name, self._first = has.get("name", ""), True
        elif tag == "option":
            self._option(self._at, has)
        elif tag in {"button", "input"} and has.get("name"):
            self._control(self._at, tag, has)

    def _option(self, at: HtmlForm, has: dict[str, str]) -> None:
        chosen = (self._name, has.get("value", ""))
        at.offered.append(chosen)
        if self._first or "selected" in has:
            at.pairs = [*(pair for pair in at.pairs if pair[0] != self._name), chosen]
            self._first = False

    @staticmethod
    def _control(at: HtmlForm, tag: str, has: dict[str, str]) -> None:
        pair = (has["name"], has.get("value", ""))
        boxed = has.get("type") in {"checkbox", "radio"}
        if tag == "button":
            at.buttons.append(pair)
            return
        if boxed:
            at.offered.append(pair)
        if not boxed or "checked" in has:
            at.pairs.append(pair)

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._at = None
        if tag == "textarea" and self._at is not None and self._text is not None:
            self._at.pairs.append((self._name, "".join(self._text).removeprefix("\n")))
            self._text = None


def read_forms(response: Any) -> Iterator[HtmlForm]:
    """Return the forms of a page. They are read as they are asked for, and the rest of the page is not."""
    for written in _FORM.findall(response.text):
        reader = _Reader()
        reader.feed(written)
        (form,) = reader.forms
        yield form


def find_form(response: Any, ending: str) -> HtmlForm:
    """Return the form whose action ends so."""
    return next(drawn for drawn in read_forms(response) if drawn.action.endswith(ending))
