"""Reads the input of a request: its query, its body and the values in its path."""

from typing import Any

from trellis.core.actor import Actor
from trellis.core.fields import InputForm, quote
from trellis.core.operation import Call, Operation
from trellis.errors import refuse_fault
from trellis.http.api import ApiRequest, build_write
from trellis.http.json_body import PRETTY, find_pretty
from trellis.rest.bodies import FindField, parse_body, parse_query
from trellis.rest.dialect import Translator
from trellis.sentences import say


def read_query(request: ApiRequest, known: FindField | None = None) -> dict[str, Any]:
    """Read the parameters in the query; with `known`, only those that it finds."""
    raw = parse_query(request.query, known) if request.query else {}
    if request.key_in_url:
        raw.pop("key", None)
    if find_pretty(request.query) is not None:
        raw.pop(PRETTY, None)
    return _add_path_values(request, raw)


def read_call(
    request: ApiRequest, operation: Operation, actor: Actor, target: int | None, body: bytes, translator: Translator | None
) -> Call:
    """Read the whole request of an operation that writes, whose body has been received. Raises Refused."""
    known = None if translator is None else translator.find_known(operation)
    query = read_query(request, known)
    sent = parse_body(request.headers.get(b"content-type", b""), body, operation, known)
    raw = _merge(operation.form, query, sent) if known is None else query | sent  # a dialect decides which of several names counts
    call = build_write(request, operation, actor, target, _add_path_values(request, raw))
    return call if translator is None else call._replace(raw=translator.read(operation, call.raw, request.at))


def _merge(form: InputForm, query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the body, and those of the query that the body does not have, under whatever name."""
    sent = {field.name for name in body if (field := form.find(name)) is not None}
    return {name: value for name, value in query.items() if (field := form.find(name)) is None or field.name not in sent} | body


def _add_path_values(request: ApiRequest, raw: dict[str, Any]) -> dict[str, Any]:
    for name, value in request.path_values.items():
        if raw.setdefault(name, value) != value:
            detail = say(
                "{name} is {raw}, but the path says {value}: leave it out, or send the same.",
                name=name,
                raw=quote(raw[name]),
                value=quote(value),
            )
            raise refuse_fault(name, "INVALID_VALUE", detail)
    return raw
