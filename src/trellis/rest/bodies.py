"""Parses query strings and bodies: JSON, forms with PHP's bracket nesting, multipart."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import parse_qsl

from trellis.core.fields import MAX_NAMES, Field, FormMapping, parse_json, quote
from trellis.core.operation import Operation
from trellis.errors import Refused
from trellis.http.multipart import parse_multipart
from trellis.sentences import say

_MAX_DEPTH: Final = 5  # levels of brackets
_JSON_FIELDS: Final = frozenset({"", "json", "data", "body", "payload"})  # a single form field that may hold the whole body

_GZIP: Final = b"\x1f\x8b"  # the first bytes (RFC 1952, 2.3.1)

Pairs = Iterable[tuple[str, str]]
FindField = Callable[[str], Field | None]  # by name; parameters that it does not find are left out, in whatever form they come


def refuse_malformed(detail: str) -> Refused:
    """Refuse a request that cannot be read."""
    return Refused("MALFORMED_REQUEST", detail)


def parse_query(query: bytes, known: FindField | None = None) -> dict[str, Any]:
    """Read a query string."""
    return _nest(_parse_pairs(query, "query string"), known) if query else {}


def parse_body(content_type: bytes, body: bytes, operation: Operation, known: FindField | None = None) -> dict[str, Any]:
    """Read a body of one of the three types.

    Raises Refused, with an example of a body of the operation: MALFORMED_REQUEST or UNSUPPORTED_MEDIA_TYPE.
    """
    if not body.strip():
        return {}
    if body.startswith(_GZIP):
        raise refuse_malformed("The body is compressed by gzip. Send it uncompressed, without Content-Encoding.")
    kind, _, parameters = content_type.decode("latin-1").partition(";")
    kind = kind.strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return _parse_json(body, operation, known)
    if kind == "application/x-www-form-urlencoded":
        if body.lstrip()[:1] == b"{":  # curl sends this type for -d '{…}' by default
            return _parse_json(body, operation, known)
        return _parse_form(list(_parse_pairs(body, "form")), operation, known)
    if kind == "multipart/form-data":
        if "boundary=" not in parameters.lower():
            raise Refused(
                "UNSUPPORTED_MEDIA_TYPE",
                say(
                    "The body is announced as {value} without its boundary. Let your client set this Content-Type by itself, or "
                    "send Content-Type: application/json with a JSON object such as {example}.",
                    value=quote(kind),
                    example=_example(operation),
                ),
            )
        return _parse_form(parse_multipart(content_type, body, MAX_NAMES), operation, known)
    raise Refused(
        "UNSUPPORTED_MEDIA_TYPE",
        say(
            "The body is announced as {value}. Send Content-Type: application/json with a JSON object such as {example}, or a "
            "form (application/x-www-form-urlencoded, multipart/form-data).{forms}",
            value=quote(kind) if kind else say("nothing"),
            example=_example(operation),
            forms=_describe_forms(operation),
        ),
    )


def _example(operation: Operation) -> str:
    """Return a short body of an operation as JSON, for refusals of what is none."""
    return json.dumps({field.name: field.example for field in _find_shown(operation)}, ensure_ascii=False)


def _describe_forms(operation: Operation) -> str:
    """Return what is said about the fields in an example that take values of other types too, such as a text of YAML."""
    return "".join(f" {field.name}: {field.doc}" for field in _find_shown(operation) if "anyOf" in field.type.schema())


def _find_shown(operation: Operation) -> list[Field]:
    fields = [field for field in operation.fields if field != operation.path_field]
    return [field for field in fields if field.required] or [field for field in fields if field.example is not None][:1]


def _parse_json(body: bytes, operation: Operation, known: FindField | None) -> dict[str, Any]:
    try:
        value = parse_json(body.decode("utf-8-sig"))
    except UnicodeError:
        raise refuse_malformed("The body is not valid UTF-8.") from None
    except ValueError as error:
        detail = f"The body is not valid JSON: {error}."
        if not body.lstrip().startswith(b"{"):  # of another language, such as YAML
            detail += f" Send a JSON object, such as {_example(operation)}.{_describe_forms(operation)}"
        raise refuse_malformed(detail) from None
    if value == [] and known is not None:  # from PHP, which writes an object without members like this
        return {}
    if not isinstance(value, dict):
        raise refuse_malformed(f"The body must be a JSON object, such as {_example(operation)}.")
    return value


def _parse_pairs(text: bytes, what: str) -> Pairs:
    try:
        return parse_qsl(
            text.decode(),  # also text that is not percent-encoded, as curl sends it for -d 'name=Überblick'
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MAX_NAMES,
        )
    except UnicodeError:
        raise refuse_malformed(f"The {what} is not valid UTF-8.") from None
    except ValueError:
        raise refuse_malformed(f"The {what} has more than {MAX_NAMES:,} parameters.") from None


def _parse_form(pairs: list[tuple[str, str]], operation: Operation, known: FindField | None) -> dict[str, Any]:
    if len(pairs) == 1 and pairs[0][0] in _JSON_FIELDS and pairs[0][1].lstrip()[:1] == "{":
        return _parse_json(pairs[0][1].encode("utf-8", "surrogatepass"), operation, known)
    return _nest(pairs, known)


def _nest(pairs: Pairs, known: FindField | None) -> dict[str, Any]:
    """Nest values by the brackets in their names: `permissions[add][0]=3`. A name sent twice is refused, unless it ends with []."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        if known is not None and known(name.partition("[")[0]) is None:
            continue
        *steps, last = _split_brackets(name)
        at = root
        for step in steps:
            step = step or _find_free_number(at)  # noqa: PLW2901  # what [] stands for
            below = at.setdefault(step, {})
            if not isinstance(below, dict):
                raise refuse_malformed(f"The parameter {quote(name)} is sent both as a value and as a list. Send only one of them.")
            at = below
        last = last or _find_free_number(at)
        if last in at:
            raise refuse_malformed(
                f"The parameter {quote(name)} is sent more than once. Send it once, or the values of a list as name[]."
            )
        at[last] = value
    return {name: _to_lists(value) for name, value in root.items()}


def _find_free_number(at: dict[str, Any]) -> str:
    """Return the next free number: some numbers may have been sent explicitly."""
    number = len(at)
    while str(number) in at:
        number += 1
    return str(number)


def _split_brackets(name: str) -> list[str]:
    head, bracket, rest = name.partition("[")
    if not bracket or not rest.endswith("]") or not head:
        return [name or " "]
    steps = [head, *rest[:-1].split("][")]
    if len(steps) > _MAX_DEPTH or any("[" in step or "]" in step for step in steps):
        raise refuse_malformed(
            f"The brackets in the parameter {quote(name)} cannot be read. Write them as in permissions[view][]=3."
        )
    return steps


def _to_lists(value: Any) -> Any:
    """Turn an object whose names are all numbers into a list, as PHP does."""
    if not isinstance(value, dict):
        return value
    if value and all(name.isascii() and name.isdigit() for name in value):
        return [_to_lists(value[name]) for name in sorted(value, key=lambda name: (len(name), name))]
    return FormMapping((name, _to_lists(below)) for name, below in value.items())
