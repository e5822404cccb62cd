"""Bodies that take as long as possible to read for what they are, of every type that is read: large ones, and small ones too."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import count, repeat
from typing import Any, Final, NamedTuple

LARGE: Final = 1_048_000  # bytes, a little less than the largest body
SMALL: Final = 4000  # a little less than what is read in place

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
PARTS: Final = "multipart/form-data; boundary=x-y"
Write = Callable[[int], str]  # from a size to a text of about that size, and not larger


class Body(NamedTuple):
    """A body under a name for messages; its content is written when it is asked for."""

    name: str
    type: str
    write: Callable[[], bytes]


def fill(pieces: Iterable[str], between: str, size: int) -> str:
    """Join as many pieces as fit."""
    used, fitting = 0, list[str]()
    for piece in pieces:
        used += len(piece.encode()) + len(between)
        if used > size:
            break
        fitting.append(piece)
    return between.join(fitting)


def _times(text: str, size: int) -> str:
    return text * (size // len(text.encode()))


def _pairs(names: Iterable[str]) -> Iterator[str]:
    return (f'"{name}":1' for name in names)


def _numbered(text: str) -> Iterator[str]:
    return (f"{text}{number}" for number in count())


def _nest(opening: str, closing: str, size: int) -> str:
    levels = size // len(opening + closing)
    return opening * levels + "1" + closing * levels


def _list(piece: str) -> Write:
    return lambda size: '{"name":[' + fill(repeat(piece), ",", size - 20) + "]}"


def _text(piece: str, end: str = "") -> Write:
    return lambda size: '{"name":"' + _times(piece, size - 30) + end + '"}'


def _part(text: str, more: str = "", name: str = "name") -> str:
    return f'--x-y\r\nContent-Disposition: form-data; name="{name}"\r\n{more}\r\n{text}\r\n'


_END: Final = "--x-y--\r\n"

# For bodies that are hostile whatever the operation takes.
_JSON: Final[Mapping[str, Write]] = {
    "many names": lambda size: "{" + fill(_pairs(_numbered("n")), ",", size - 20) + "}",
    "many names and one repeated": lambda size: "{" + fill(_pairs(_numbered("n")), ",", size - 20) + ',"n7":1}',
    "long names": lambda size: "{" + fill(_pairs(f"nam{number}" + "e" * 1000 for number in range(1000)), ",", size - 20) + "}",
    "misspelt names": lambda size: "{" + fill(_pairs(f"nam{number}" for number in range(1000)), ",", size - 20) + "}",
    "repeated names": lambda size: "{" + fill(_pairs(["name"] * 1000), ",", size - 20) + "}",
    "deep lists": lambda size: '{"name":' + _nest("[", "]", size - 20) + "}",
    "deep objects": lambda size: '{"name":' + _nest('{"a":', "}", size - 20) + "}",
    "sixty levels many times": _list("[" * 60 + "]" * 60),
    "empty lists": _list("[]"),
    "empty objects": _list("{}"),
    "small objects": _list('{"a":1,"b":2}'),
    "numbers": _list("1"),
    "fractions": _list("1.7976931348623157e308"),
    "long numbers": _list("9" * 4000),
    "one long number": lambda size: '{"name":' + "9" * (size - 20) + "}",
    "empty texts": _list('""'),
    "escapes": _text("\\ud83c\\udf0d"),
    "escapes and half a pair": _text("\\u00e9", "\\ud800"),
    "many scripts": _text("e\u0301\u202e\u4e2d\U0001f30d"),
    "unended text": lambda size: '{"name":"' + "x" * (size - 20),
    "blanks": lambda size: " " * (size - 2) + "{}",
}
_FORMS: Final[Mapping[str, Write]] = {
    "many pairs": lambda size: fill(_numbered("a="), "&", size),
    "empty pairs": lambda size: "&" * size,
    "misspelt": lambda size: fill((f"nam{number}=1" for number in range(1000)), "&", size),
    "a list": lambda size: fill(("name[]=1" for _ in range(1000)), "&", size),
    "brackets": lambda size: fill((f"name[{number}][a][b][c]=1" for number in range(1000)), "&", size),
    "a name of brackets": lambda size: "name" + _times("[a]", size - 10) + "=1",
    "open brackets": lambda size: "[" * (size - 2) + "=1",
    "percent signs": lambda size: "name=" + _times("%C3%A9", size - 10),
    "what is not UTF-8 at last": lambda size: "name=" + _times("%41", size - 20) + "%ff",
    "plus signs": lambda size: "name=" + "+" * (size - 10),
    "JSON in a form": lambda size: "json={" + fill(_pairs(_numbered("n")), ",", size - 20) + "}",
}
_MULTIPART: Final[Mapping[str, Write]] = {
    "many parts": lambda size: fill((_part("1", name=name) for name in _numbered("a")), "", size - 20) + _END,
    "a thousand parts": lambda size: fill((_part("x" * 900, name=f"nam{n}") for n in range(1000)), "", size - 20) + _END,
    "ends of lines": lambda size: _part(_times("\r\n", size - 200)) + _END,
    "almost boundaries": lambda size: _part(_times("\r\n--x-", size - 200)) + _END,
    "many headers": lambda size: _part("1", _times("X-A: b\r\n", size - 200)) + _END,
    "a long header": lambda size: _part("1", f"X-A: {'b' * (size - 200)}\r\n") + _END,
    "a long name": lambda size: _part("1", name="n" * (size - 200)) + _END,
    "dashes": lambda size: "-" * size,
}
# For fields: what takes long to check, whatever the field is.
_VALUES: Final[Mapping[str, Callable[[int], Any]]] = {
    "long": lambda size: "x" * size,
    "commas": lambda size: "," * size,
    "blanks": lambda size: " " * size,
    "digits": lambda size: "9" * size,
    "ids": lambda size: [1] * (size // 2),
    "texts": lambda size: ["a"] * (size // 4),
    "names": lambda _: {str(number): [1] for number in range(999)},
    "JSON in text": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "bold": partial(_times, "<b>"),
    "formats and paragraphs": partial(_times, "<b><i><a href=x><p>"),
    "tables": partial(_times, "<table><td>"),
    "links": partial(_times, "<a href='https://x.example/'>"),
    "entities": partial(_times, "&amp;&lt;"),
    "open brackets": partial(_times, "<"),
    "attributes": lambda size: "<p " + fill(_numbered("a"), " ", size - 10) + ">",
    "comments": partial(_times, "<!--"),
}
# For fields of forms. Few percent signs: to decode them takes longest, and leaves the page less text; "percent signs" has many.
_TYPED: Final = ("x", "<", "\n", "%F0%9F%8C%8D" + "x" * 24)
_SIZES: Final = (LARGE, SMALL)
_HTML: Final = 99_000  # characters: what a description may have


def any_bodies() -> Iterator[Body]:
    """Give the bodies that are hostile to every operation."""
    for media, texts in ((JSON, _JSON), (FORM, _FORMS), (PARTS, _MULTIPART)):
        for name, write in texts.items():
            for size in _SIZES:
                yield Body(f"{name} ({media.partition(';')[0]}, {size:,})", media, partial(_encode_once, write, size))


def bodies_for(fields: Iterable[str]) -> Iterator[Body]:
    """Give bodies with a hostile value for each of these fields."""
    for field in fields:
        for name, make in _VALUES.items():
            for size in (*_SIZES, _HTML):
                yield Body(f"{field}: {name} ({size:,})", JSON, partial(_encode_field, field, make, size))


def form_bodies(fields: Iterable[str]) -> Iterator[Body]:
    """Give forms for the panel: hostile as any, and with hostile values of fields that pages have."""
    yield from (body for body in any_bodies() if body.type == FORM)
    for field in fields:
        for text in _TYPED:
            for size in _SIZES:
                yield Body(f"{field}: {text!r} ({size:,})", FORM, partial(_encode, partial(_field, field, text), size))
        yield Body(f"{field}: many values", FORM, partial(_encode, partial(fill, [f"{field}=1"] * 1_999, "&"), LARGE))


def _field(name: str, text: str, size: int) -> str:
    return f"{name}={_times(text, size - 50)}"


def _encode(write: Write, size: int) -> bytes:
    return write(size).encode()


@cache
def _encode_once(write: Write, size: int) -> bytes:
    """Write what is sent to many operations: 40 MB in all."""
    return _encode(write, size)


def _encode_field(field: str, make: Callable[[int], Any], size: int) -> bytes:
    return json.dumps({field: make(size - 100)}, separators=(",", ":")).encode()
