"""Field types: what a value may be, how it is written in OpenAPI, which form control asks for it, in one place.

A type's `parse` turns what a caller sent (a JSON value, or the text of a form field) into the value that is kept, or raises
Invalid with a sentence that says what is allowed. `schema` is the JSON Schema (draft 2020-12) of that value.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import nh3
import orjson

from trellis.errors import Fault, Refused, refuse_faults

MAX_ID: Final = 2**63 - 1
MAX_INTEGER: Final = 2**31 - 1
EVERYONE: Final = "*"

# C0 and C1 controls, DEL, the Unicode line and paragraph separators, and surrogates, which UTF-8 cannot carry.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_CONTROLS_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKUP = re.compile("[<>&\u00a0]")  # what HTML writes otherwise than plain text does
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,20}\Z", re.ASCII)


class Invalid(Exception):
    """A value that its type does not allow; `message` is a key of REFUSALS."""

    def __init__(self, detail: str, message: str = "INVALID_VALUE") -> None:
        super().__init__(detail)
        self.detail = detail
        self.message = message


class Type(Protocol):
    """What a field's value may be."""

    @property
    def widget(self) -> str:
        """The form control that asks for it: text, textarea, number, checkbox, select, color, url, password, …."""

    def parse(self, raw: Any) -> Any:
        """Give the value to keep; raise Invalid."""

    def schema(self) -> dict[str, Any]:
        """Give its JSON Schema."""


def quote(raw: object) -> str:
    """Quote what was sent, short and safe to send back."""
    text = repr(raw) if not isinstance(raw, str) else f"'{raw}'"
    text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= 60 else text[:57] + "…" + text[-1]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text without control characters, trimmed."""

    longest: int = 255
    shortest: int = 0
    lines: bool = False
    missing: str = "INVALID_VALUE"

    @property
    def widget(self) -> str:
        return "textarea" if self.lines else "text"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str):
            raise Invalid(f"must be text, not {quote(raw)}.", self.missing if raw is None else "INVALID_VALUE")
        value = raw.strip()
        if found := (_CONTROLS_BUT_LINES if self.lines else _CONTROLS).search(value):
            raise Invalid(f"must not hold control characters; U+{ord(found[0]):04X} stands at {found.start()}.")
        if len(value) < self.shortest:
            raise Invalid(f"must not be empty: give {self.shortest} to {self.longest} characters.", self.missing)
        if len(value) > self.longest:
            raise Invalid(f"is {len(value):,} characters long; at most {self.longest:,} are allowed.")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest} | ({"minLength": self.shortest} if self.shortest else {})


@dataclass(frozen=True, slots=True)
class Html:
    """HTML, sanitised on the way in by nh3: scripts, event handlers and unknown elements do not reach the store."""

    longest: int = 100_000
    widget: str = "textarea"

    def parse(self, raw: Any) -> str:
        text = Text(self.longest, lines=True).parse(raw)
        if not _MARKUP.search(text):
            return text
        cleaned = nh3.clean(text)
        # Entities may have stood for control characters, and what fell away may have left spaces at the ends: what is
        # kept must read the same when it is sent back.
        value = _CONTROLS_BUT_LINES.sub("", cleaned).strip()
        if value != cleaned:
            value = nh3.clean(value).strip()
        if len(value) > self.longest:
            raise Invalid(f"is {len(value):,} characters of HTML once it is escaped; at most {self.longest:,} are allowed.")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest, "contentMediaType": "text/html"}


def sanitize_inline_html(html: str) -> str:
    """Sanitise HTML that stands within a line of text."""
    return _CONTROLS.sub("", nh3.clean(html, tags=_INLINE_TAGS))  # entities may have stood for control characters


_INLINE_TAGS = {
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


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false; 1, 0 and the strings of them too, as forms send them."""

    widget: str = "checkbox"

    def parse(self, raw: Any) -> bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, int | str) and (value := _BOOLEANS.get(str(raw).strip().lower())) is not None:
            return value
        raise Invalid(f"must be true or false (or 1 or 0), not {quote(raw)}.")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number between two bounds, both included; `nullable` takes null and the empty string as 'none'."""

    least: int = 0
    most: int = MAX_INTEGER
    nullable: bool = False
    widget: str = "number"

    def parse(self, raw: Any) -> int | None:
        if self.nullable and raw in (None, ""):
            return None
        number = parse_whole_number(raw)
        if number is None or not self.least <= number <= self.most:
            none = ", or null" if self.nullable else ""
            raise Invalid(f"must be a whole number from {self.least} to {self.most}{none}, not {quote(raw)}.")
        return number

    def schema(self) -> dict[str, Any]:
        kind = ["integer", "null"] if self.nullable else "integer"
        return {"type": kind, "minimum": self.least, "maximum": self.most}


def parse_whole_number(raw: object) -> int | None:
    """Read a whole number from a JSON number or its text; None if it is not one."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, float) and raw.is_integer() and abs(raw) <= MAX_INTEGER:
        return int(raw)
    if isinstance(raw, str) and _WHOLE_NUMBER.match(raw.strip()):
        return int(raw)
    return None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words; `also` are older spellings of them."""

    words: Mapping[str, str]
    also: Mapping[str, str] = field(default_factory=dict)
    message: str = "INVALID_VALUE"
    widget: str = "select"

    def parse(self, raw: Any) -> str:
        word = self.also.get(raw, raw) if isinstance(raw, str) else None
        if word not in self.words:
            raise Invalid(f"must be one of {', '.join(self.words)}, not {quote(raw)}.", self.message)
        return str(word)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Color:
    """A colour as #RRGGBB; kept in capitals."""

    widget: str = "color"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str) or not re.fullmatch(r"#[0-9a-fA-F]{6}", raw.strip()):
            raise Invalid(f"must be a colour as #RRGGBB, such as #3B82F6, not {quote(raw)}.")
        return raw.strip().upper()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"}


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http or https address; null or "" is none."""

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
            raise Invalid(f"must be an http or https address, such as https://example.com/, not {quote(raw)}.")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "format": "uri", "maxLength": self.longest}


@dataclass(frozen=True, slots=True)
class Password:
    """A password that callers set and never read; null or "" takes it away. The kind keeps a digest of it."""

    longest: int = 255
    widget: str = "password"

    def parse(self, raw: Any) -> str | None:
        if raw in (None, ""):
            return None
        if not isinstance(raw, str) or len(raw) > self.longest or _CONTROLS.search(raw):
            raise Invalid(f"must be text of at most {self.longest} characters without control characters.")
        return raw

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "maxLength": self.longest, "format": "password"}


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A moment as ISO 8601 with an offset; kept as UTC with milliseconds and Z, so that text order is time order."""

    nullable: bool = False
    widget: str = "datetime-local"

    def parse(self, raw: Any) -> str | None:
        if self.nullable and raw in (None, ""):
            return None
        try:
            # A '+' of an offset that was not percent-encoded in a URL arrives as a space.
            value = datetime.fromisoformat(re.sub(r" (?=\d\d:\d\d\Z)", "+", raw.strip()))
            return format_timestamp(value if value.tzinfo else value.replace(tzinfo=UTC))
        except (ValueError, AttributeError, TypeError, OverflowError):
            raise Invalid(f"must be a moment in ISO 8601, such as 2026-01-31T09:30:00Z, not {quote(raw)}.") from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"] if self.nullable else "string", "format": "date-time"}


def format_timestamp(when: datetime) -> str:
    """Write a moment as it is kept and sent: `2026-01-31T09:30:00.000Z`, always 24 characters."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class IpAddress:
    """An address of the network, IPv4 or IPv6; "" and null are none."""

    widget: str = "text"

    def parse(self, raw: Any) -> str | None:
        if raw in (None, ""):
            return None
        try:
            return str(ip_address(str(raw).strip()))
        except ValueError:
            raise Invalid(f"must be an address such as 192.0.2.7 or 2001:db8::1, not {quote(raw)}.") from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["192.0.2.7"]}


@dataclass(frozen=True, slots=True)
class NodeId:
    """The id of a node; which kind, the field's description says."""

    nullable: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if self.nullable and raw in (None, ""):
            return None
        number = parse_whole_number(raw)
        if number is None or not 1 <= number <= MAX_ID:
            raise Invalid(f"must be an id, a whole number from 1 up, not {quote(raw)}.")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "null"] if self.nullable else "integer", "minimum": 1, "maximum": MAX_ID}


@dataclass(frozen=True, slots=True)
class ParentId:
    """The id of a parent; null, "", 0 and -1 are the top level, and `root`, which is how a list's `filter` is written."""

    filter: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if raw is None or (isinstance(raw, str) and raw.strip().lower() in {"", "root", "null"}):
            return None
        number = parse_whole_number(raw)
        if number is None or not -1 <= number <= MAX_ID:
            raise Invalid(f"must be a parent's id, or null for the top level, not {quote(raw)}.", "INVALID_PARENT")
        return number if number > 0 else None

    def schema(self) -> dict[str, Any]:
        if self.filter:
            return {"anyOf": [{"type": "string", "const": "root"}, {"type": "integer", "minimum": 1, "maximum": MAX_ID}]}
        return {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_ID}


@dataclass(frozen=True, slots=True)
class ChildrenFate:
    """What happens to the children of a deleted node: -1 deletes them, an id is where they move."""

    widget: str = "node"

    def parse(self, raw: Any) -> int:
        number = parse_whole_number(raw)
        if number is None or number < -1 or number == 0 or number > MAX_ID:
            raise Invalid(f"must be -1 (delete the children) or the id of their new parent, not {quote(raw)}.", "INVALID_TARGET")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": -1, "maximum": MAX_ID, "not": {"const": 0}}


@dataclass(frozen=True, slots=True)
class Ids:
    """A list of ids: a JSON list, or `1,2,3`. Order and repetitions mean nothing; at most `most` of them."""

    most: int = 1000
    widget: str = "text"

    def parse(self, raw: Any) -> tuple[int, ...]:
        parts = split_list(raw)
        if parts is None or len(parts) > self.most:
            raise Invalid(f"must be at most {self.most} ids, such as 1,2,3, not {quote(raw)}.")
        return tuple(sorted({NodeId().parse(part) or 0 for part in parts}))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": MAX_ID}, "maxItems": self.most}


@dataclass(frozen=True, slots=True)
class TextList:
    """A list of words: a JSON list, or `one,two`. Order is kept, repetitions are not."""

    most: int = 200
    widget: str = "text"

    def parse(self, raw: Any) -> tuple[str, ...]:
        parts = split_list(raw)
        if parts is None or len(parts) > self.most:
            raise Invalid(f"must be a list of at most {self.most} words, not {quote(raw)}.")
        return tuple(dict.fromkeys(Text(255, 1).parse(part) for part in parts))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "maxItems": self.most}


@dataclass(frozen=True, slots=True)
class Groups:
    """Who: "*" for every group, or a list of group ids. That the groups exist is checked when the operation runs."""

    widget: str = "groups"

    def parse(self, raw: Any) -> str | tuple[int, ...]:
        if isinstance(raw, str) and raw.strip() == EVERYONE:
            return EVERYONE
        try:
            return Ids().parse(raw)
        except Invalid:
            raise Invalid(f'must be "*" (every group) or a list of group ids, not {quote(raw)}.') from None

    def schema(self) -> dict[str, Any]:
        # The list first: a generated client tries them in order, and cannot go on from a constant.
        return {"oneOf": [Ids().schema(), {"type": "string", "const": EVERYONE}]}


@dataclass(frozen=True, slots=True)
class Permissions:
    """An object: option → "*" or a list of group ids. Options that are not sent are not in the value."""

    options: Mapping[str, str]
    widget: str = "permissions"

    def parse(self, raw: Any) -> dict[str, str | tuple[int, ...]]:
        raw = parse_json_text(raw)
        if not isinstance(raw, Mapping):
            raise Invalid(f'must be an object such as {{"view": "*", "add": [3]}}, not {quote(raw)}.')
        value: dict[str, str | tuple[int, ...]] = {}
        for option, groups in raw.items():
            if option not in self.options:
                raise Invalid(f"has no option {quote(option)}; the options are {', '.join(self.options)}.", "UNKNOWN_PARAMETER")
            try:
                value[option] = Groups().parse(groups)
            except Invalid as invalid:
                raise Invalid(f"'{option}' {invalid.detail}") from None
        return value

    def schema(self) -> dict[str, Any]:
        properties = {option: Groups().schema() | {"description": doc} for option, doc in self.options.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}


def split_list(raw: object) -> Sequence[Any] | None:
    """Take apart a list: a JSON list, its text, or words between commas; None if it is none of them."""
    raw = parse_json_text(raw)
    if isinstance(raw, str):
        return [part for part in raw.split(",") if part.strip()]
    if isinstance(raw, int) and not isinstance(raw, bool):
        return [raw]
    return raw if isinstance(raw, list | tuple) else None


def parse_json_text(raw: object) -> object:
    """Read a JSON list or object that came as the text of one form field; anything else passes unchanged."""
    if isinstance(raw, str) and raw.lstrip()[:1] in {"{", "["}:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            return raw
    return raw


@dataclass(frozen=True, slots=True)
class Anything:
    """A value that is taken and means nothing."""

    widget: str = "text"

    def parse(self, raw: Any) -> None:
        del raw

    def schema(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class Field:
    """One named value of a record or of a request, with everything that any door needs to know of it.

    `default` holds on create where nothing is sent. `also` are other names under which it is accepted. `listed` fields can
    be filtered by in lists. A `read_only` field is answered and passed over when sent; a `write_only` one is never answered.
    """

    name: str
    type: Type
    doc: str
    default: Any = None
    also: tuple[str, ...] = ()
    example: Any = None
    required: bool = False
    read_only: bool = False
    write_only: bool = False
    listed: bool = False
    missing: str = "MISSING_VALUE"

    def schema(self) -> dict[str, Any]:
        """Give the JSON Schema of the field with its description."""
        return self.type.schema() | {"description": self.doc}

    @property
    def label(self) -> str:
        """The name in words: `minContent` → `Min content`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).capitalize()


@dataclass(frozen=True, slots=True)
class Input:
    """What a request gave: parsed values by canonical name, only those that were sent, and every fault found so far."""

    values: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        """Give the value sent under a name, or the default."""
        return self.values.get(name, default)

    def demand(self) -> None:
        """Refuse all faults at once, if there are any."""
        if self.faults:
            raise refuse_faults(self.faults)


NOTHING: Final = Input({})


class Form:
    """The fields that a request may hold, by every name that they are accepted under.

    `recode` gives a kind's own code for a reason's message, or "" for the reason's code.
    """

    def __init__(self, fields: Iterable[Field], recode: Callable[[str], str] = lambda _: "") -> None:
        self._known = {name: f for f in fields for name in (f.name, *f.also)}
        self._recode = recode

    def read(self, raw: Mapping[str, Any]) -> Input:
        """Judge what was sent: aliases resolved, values parsed, unknown names refused by name."""
        if not raw:
            return NOTHING
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        sent: dict[str, str] = {}
        for name, value in raw.items():
            if (f := self._known.get(name)) is None:
                faults.append(Fault(quote(name).strip("'"), "UNKNOWN_PARAMETER", _unknown(name, self._known)))
            elif f.name in sent and not f.read_only:
                detail = f"{f.name} was sent twice, as {sent[f.name]} and as {name}: send it once."
                faults.append(Fault(f.name, "INVALID_VALUE", detail))
            elif not f.read_only:
                sent[f.name] = name
                try:
                    values[f.name] = f.type.parse(value)
                except Invalid as invalid:
                    detail = f"{f.name} {invalid.detail}"
                    faults.append(Fault(f.name, invalid.message, detail, self._recode(invalid.message)))
        return Input(values, tuple(faults))


def validate(fields: Iterable[Field], raw: Mapping[str, Any], *, recode: Callable[[str], str] = lambda _: "") -> Input:
    """Judge what was sent by a form that is used once."""
    return Form(fields, recode).read(raw)


def _unknown(name: str, known: Mapping[str, Field]) -> str:
    writable = {n: f for n, f in known.items() if not f.read_only}
    if near := get_close_matches(name, writable, 1):
        hint = f"Did you mean {near[0]}?"
    elif writable:
        hint = f"Known here: {', '.join(sorted({f.name for f in writable.values()}))}."
    else:
        hint = "This operation takes none."
    return f"There is no parameter {quote(name)}. {hint}"


def require(fields: Iterable[Field], given: Input, *, recode: Callable[[str], str] = lambda _: "") -> Input:
    """Add a fault for each required field that was not sent, before the faults found so far."""
    at_fault = {fault.field for fault in given.faults}
    missing = tuple(
        Fault(f.name, f.missing, f"{f.name} is needed: {f.doc}", recode(f.missing))
        for f in fields
        if f.required and f.name not in given.values and f.name not in at_fault
    )
    return Input(given.values, missing + given.faults)


def invalid_id(resource: str, raw: object, code: str) -> Refused:
    """Refuse an id that names no record."""
    return Refused("INVALID_ID", f"There is no {resource} with the id {quote(raw).strip(chr(39))}.", code=code)
