"""Types of text: plain text, HTML, passwords, colours, URLs and addresses."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from trellis.core.fields.type import CONTROLS, Invalid, Type, quote
from trellis.core.passwords import NODE, Plain
from trellis.invisible import find_invisible
from trellis.sentences import say

if TYPE_CHECKING:
    from nh3 import Cleaner

_CONTROLS_BUT_LINES: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_ASCII_CONTROLS_BUT_LINES: Final = bytes(number for number in range(0x80) if _CONTROLS_BUT_LINES.match(chr(number)))
_MOST_ROUNDS: Final = 10  # of sanitising; two or three are enough unless a text was written to take many
_MARKUP: Final = "<>&\u00a0"  # characters that HTML writes differently from plain text


@dataclass(frozen=True, slots=True)
class Text:
    """Text without control characters, trimmed: a line, or several with `lines`. `visible` text has no invisible ones either."""

    longest: int = 255
    shortest: int = 0
    lines: bool = False
    visible: bool = False
    missing: str = "INVALID_VALUE"

    @property
    def widget(self) -> str:
        return "textarea" if self.lines else "text"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str):
            raise Invalid(say("must be text, not {raw}.", raw=quote(raw)), self.missing if raw is None else "INVALID_VALUE")
        value = raw.strip()
        if found := _find_control_but_lines(value) if self.lines else CONTROLS.search(value):
            raise Invalid(
                say(
                    "must not contain control characters; there is U+{ord:04X} at offset {start}.",
                    ord=ord(found[0]),
                    start=found.start(),
                )
            )
        if self.visible:
            check_visible(value)
        if len(value) < self.shortest:
            raise Invalid(
                say(
                    "must not be empty: it needs {shortest} to {longest} characters.", shortest=self.shortest, longest=self.longest
                ),
                self.missing,
            )
        if len(value) > self.longest:
            raise Invalid(
                say("is {count:,} characters long; at most {longest:,} are allowed.", count=len(value), longest=self.longest)
            )
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest} | ({"minLength": self.shortest} if self.shortest else {})


def check_visible(value: str) -> None:
    """Refuse text in which people cannot see all characters, as names and external ids must not be. Raises Invalid."""
    if (at := find_invisible(value)) is not None:
        raise Invalid(say("must not contain invisible characters; there is U+{ord:04X} at offset {at}.", ord=ord(value[at]), at=at))


def _find_control_but_lines(text: str) -> re.Match[str] | None:
    """Find the first control character; most texts are in ASCII and have none, which takes a tenth of the time of a search."""
    if text.isascii() and len(text.encode().translate(None, _ASCII_CONTROLS_BUT_LINES)) == len(text):
        return None
    return _CONTROLS_BUT_LINES.search(text)


@dataclass(frozen=True, slots=True)
class Html:
    """HTML, sanitised by nh3 before it is stored: scripts, event handlers and unknown elements are removed."""

    longest: int = 100_000
    widget: str = "textarea"

    def parse(self, raw: Any) -> str:
        text = Text(self.longest, lines=True).parse(raw)
        if not any(character in text for character in _MARKUP):
            return text
        value = _sanitize(_clean_page, text, _CONTROLS_BUT_LINES)
        if len(value) > self.longest:
            raise Invalid(
                say(
                    "is {count:,} characters of HTML once it is escaped; at most {longest:,} are allowed.",
                    count=len(value),
                    longest=self.longest,
                )
            )
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest, "contentMediaType": "text/html"}


def sanitize_inline_html(html: str) -> str:
    """Sanitise HTML that is part of a line of text, and no longer than one."""
    return _sanitize(_load_cleaner(_INLINE_TAGS).clean, html, CONTROLS)


def _sanitize(clean: Callable[[str], str], html: str, controls: re.Pattern[str]) -> str:
    """Sanitise HTML until that changes nothing any more, so that the result can be sent back.

    Entities may have encoded control characters, without which an address may have another scheme. Removed elements may leave
    others in places that HTML does not allow, and spaces at the ends.
    """
    for _ in range(_MOST_ROUNDS):
        before, html = html, controls.sub("", clean(html)).strip()
        if html == before:
            break
    return html


def _clean_page(html: str) -> str:
    _check_cost(html)
    return _load_cleaner().clean(html)


def _check_cost(html: str) -> None:
    """Raise Invalid for HTML that would take much time and memory to sanitise."""
    from trellis.open_elements import find_cost  # noqa: PLC0415  # start-up time: most texts have no tags

    if (cost := find_cost(html)) is not None:
        raise Invalid(
            say(
                "has {tags:,} tags, and up to {opened:,} elements are open at once. Close each element before the next one "
                "begins, or use less HTML.",
                tags=cost[0],
                opened=cost[1],
            )
        )


@cache
def _load_cleaner(tags: frozenset[str] | None = None) -> "Cleaner":
    """Return a sanitiser that allows nh3's elements, or only these. Creating it takes longer than sanitising most texts."""
    from nh3 import Cleaner  # noqa: PLC0415  # start-up time: most texts have nothing to sanitise

    return Cleaner() if tags is None else Cleaner(tags=set(tags))


_INLINE_TAGS: Final = frozenset(
    {
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "cite",
        "code",
        "em",
        "i",
        "mark",
        "s",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "u",
    }
)


@dataclass(frozen=True, slots=True)
class Password:
    """A password that callers set and never read; null or "" removes it. The operation is given its digest."""

    longest: int = 255
    widget: str = "password"

    def parse(self, raw: Any) -> Plain | None:
        if raw in (None, ""):
            return None
        if not isinstance(raw, str) or len(raw) > self.longest or CONTROLS.search(raw):
            raise Invalid(say("must be text of at most {longest} characters without control characters.", longest=self.longest))
        return Plain(raw, NODE)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "maxLength": self.longest, "format": "password"}


@dataclass(frozen=True, slots=True)
class Color:
    """A colour as #RRGGBB, in upper or lower case. It is stored in upper case; `kept`: the schema is for a stored colour."""

    kept: bool = False
    widget: str = "color"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str) or not re.fullmatch(r"#[0-9a-fA-F]{6}", raw.strip()):
            raise Invalid(say("must be a colour as #RRGGBB, such as #3B82F6, not {raw}.", raw=quote(raw)))
        return raw.strip().upper()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^#[0-9A-F]{6}$" if self.kept else "^#[0-9A-Fa-f]{6}$"}


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http or https URL; null or "" means none."""

    longest: int = 2048
    widget: str = "url"

    def parse(self, raw: Any) -> str | None:
        if raw in (None, ""):
            return None
        value = Text(self.longest).parse(raw)
        try:
            parts = urlsplit(value)
            good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            good = False
        if not good or re.search(r"[\s<>\"\\]", value):
            raise Invalid(say("must be an http or https URL, such as https://example.com/, not {raw}.", raw=quote(raw)))
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "format": "uri", "maxLength": self.longest}


@dataclass(frozen=True, slots=True)
class IpAddress(Type):
    """An IPv4 or IPv6 address; null or "" means none."""

    def parse(self, raw: Any) -> str | None:
        if raw in (None, ""):
            return None
        try:
            return str(ip_address(Text(100).parse(raw)))  # anything may follow the % of an IPv6 address
        except ValueError:
            raise Invalid(say("must be an address such as 192.0.2.7 or 2001:db8::1, not {raw}.", raw=quote(raw))) from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["192.0.2.7"]}
