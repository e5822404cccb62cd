"""From bytes to names and values: query strings, JSON, forms with PHP's bracket nesting, multipart."""

import json
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from trellis.core.fields import quote
from trellis.errors import Refused

_MOST_PARAMETERS: Final = 1000
_DEEPEST: Final = 5  # levels of brackets
_JSON_FIELDS: Final = frozenset({"", "json", "data", "body", "payload"})  # a single form field that may hold the whole body

Pairs = Iterable[tuple[str, str]]


def malformed(detail: str) -> Refused:
    """Refuse a request that cannot be read."""
    return Refused("MALFORMED_REQUEST", detail)


def from_query(query: bytes) -> dict[str, Any]:
    """Read a query string."""
    return _nested(_pairs(query, "query string")) if query else {}


async def from_body(content_type: bytes, body: bytes) -> dict[str, Any]:
    """Read a body of one of the three types. Raises Refused: MALFORMED_REQUEST or UNSUPPORTED_MEDIA_TYPE."""
    if not body.strip():
        return {}
    kind, _, parameters = content_type.decode("latin-1").partition(";")
    kind = kind.strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return _from_json(body)
    if kind == "application/x-www-form-urlencoded":
        if body.lstrip()[:1] == b"{":  # what curl announces for -d '{…}' unless told otherwise
            return _from_json(body)
        return _from_form(list(_pairs(body, "form")))
    if kind == "multipart/form-data" and "boundary=" in parameters:
        return _from_form(await _multipart(content_type, body))
    raise Refused(
        "UNSUPPORTED_MEDIA_TYPE",
        f"The body is announced as {quote(kind) if kind else 'nothing'}. Send Content-Type: application/json with a JSON object, "
        "or a form (application/x-www-form-urlencoded, multipart/form-data).",
    )


def _from_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body.decode("utf-8-sig"), object_pairs_hook=_unrepeated, parse_constant=_not_json)
        if b"\\u" in body:  # lone surrogates pass as \ud800 escapes, and no database or answer could hold them
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise malformed("The JSON is nested too deeply.") from None
    except UnicodeError:
        raise malformed("The body is not valid UTF-8.") from None
    except ValueError as error:
        raise malformed(f"The body is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise malformed('The body must be a JSON object, such as {"name": "News"}.')
    return value


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {quote(twice)} stands twice in one object")
    return found


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _pairs(text: bytes, what: str) -> Pairs:
    try:
        return parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except UnicodeError:
        raise malformed(f"The {what} is not valid percent-encoded UTF-8.") from None
    except ValueError:
        raise malformed(f"The {what} has more than {_MOST_PARAMETERS} parameters.") from None


class _Parts(MultiPartParser):
    """Starlette's parser, which does not say by itself whether the closing boundary has come."""

    ended = False

    def on_end(self) -> None:
        self.ended = True


async def _multipart(content_type: bytes, body: bytes) -> list[tuple[str, str]]:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    headers = Headers(raw=[(b"content-type", content_type)])
    parser = _Parts(headers, stream(), max_files=0, max_fields=_MOST_PARAMETERS, max_part_size=len(body))
    try:
        form = await parser.parse()
        if b"charset=" not in content_type.lower():
            body.decode()  # the parser would take what is not UTF-8 for Latin-1
    except MultiPartException as error:
        raise malformed(f"The multipart body cannot be read: {error.message}") from None
    except UnicodeError:
        raise malformed("The body is not valid UTF-8.") from None
    except (ValueError, KeyError, LookupError):
        raise malformed("The multipart body cannot be read.") from None
    if not parser.ended:
        raise malformed("The multipart body ends before its closing boundary.")
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _from_form(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    if len(pairs) == 1 and pairs[0][0] in _JSON_FIELDS and pairs[0][1].lstrip()[:1] == "{":
        return _from_json(pairs[0][1].encode("utf-8", "surrogatepass"))
    return _nested(pairs)


def _nested(pairs: Pairs) -> dict[str, Any]:
    """Put `permissions[add][0]=3` where it belongs. A name sent twice is refused, unless it ends with []."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        *way, last = _steps(name)
        at = root
        for step in way:
            step = step or str(len(at))  # noqa: PLW2901  # [] is the next free number
            below = at.setdefault(step, {})
            if not isinstance(below, dict):
                raise malformed(f"The parameter {quote(name)} is sent both as a value and as a list.")
            at = below
        last = last or str(len(at))
        if last in at:
            raise malformed(f"The parameter {quote(name)} is sent more than once.")
        at[last] = value
    return {name: _listed(value) for name, value in root.items()}


def _steps(name: str) -> list[str]:
    head, bracket, rest = name.partition("[")
    if not bracket or not rest.endswith("]") or not head:
        return [name or " "]
    steps = [head, *rest[:-1].split("][")]
    if len(steps) > _DEEPEST or any("[" in step or "]" in step for step in steps):
        raise malformed(f"The brackets in the parameter {quote(name)} cannot be read.")
    return steps


def _listed(value: Any) -> Any:
    """Make a list of an object whose names are all numbers, as PHP does."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isascii() and name.isdigit() for name in value):
        return [_listed(value[name]) for name in sorted(value, key=lambda name: (len(name), name))]
    return {name: _listed(below) for name, below in value.items()}
