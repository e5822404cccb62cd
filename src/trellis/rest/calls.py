"""Builds the call of an operation from a request: its query, its body, its conditions."""

from typing import Any

from trellis.core.actor import Actor
from trellis.core.fields import quote
from trellis.core.keys import redact_keys
from trellis.core.operation import Call, Operation
from trellis.errors import Fault, Refused, refuse_faults
from trellis.rest.bodies import parse_body, parse_query
from trellis.rest.dialect import Translator, find_versions
from trellis.rest.headers import audit_reason, change_set_name, expected_versions, fingerprint, idempotency_token
from trellis.rest.request import ApiRequest


def read_query(request: ApiRequest) -> dict[str, Any]:
    """Read the parameters in the query."""
    raw = parse_query(request.query) if request.query else {}
    if request.key_in_url:
        raw.pop("key", None)
    return _add_path_values(request, raw)


def build_call(
    request: ApiRequest, operation: Operation, actor: Actor, target: int | None, body: bytes, translator: Translator | None
) -> Call:
    """Read the whole request of a writing operation, whose body has come. Raises Refused."""
    raw = read_query(request)
    headers = request.headers
    raw |= parse_body(headers.get(b"content-type", b""), body)
    raw = _add_path_values(request, raw)
    expected = expected_versions(headers.get(b"if-match"))
    if expected and not operation.is_conditional:
        detail = f"{operation.name} changes no record that is there already, whose version If-Match could tell. Leave If-Match out."
        raise Refused("INVALID_HEADER", detail)
    printed = fingerprint(_name_target(operation, target), raw) if b"idempotency-key" in headers else ""  # of what was sent
    if translator is not None:
        raw, expected = translator.read(operation, raw, request.at), find_versions(expected)
    sent_token = headers.get(b"idempotency-key") if operation.verb is not None and operation.verb.idempotency_key else None
    return Call(
        operation.name,
        actor,
        raw,
        target,
        expected=expected,
        request_id=request.request_id,
        reason=audit_reason(headers.get(b"x-audit-log-reason")),
        token=idempotency_token(sent_token),
        change_set=change_set_name(headers.get(b"change-set")),
        fingerprint=printed if sent_token else "",
        idempotency_key=redact_keys(sent_token.decode("ascii")) if sent_token else None,
    )


def _add_path_values(request: ApiRequest, raw: dict[str, Any]) -> dict[str, Any]:
    for name, value in request.path_values.items():
        if raw.setdefault(name, value) != value:
            detail = f"{name} is {quote(raw[name])}, but the path says {quote(value)}: leave it out, or send the same."
            raise refuse_faults(Fault(name, "INVALID_VALUE", detail))
    return raw


def _name_target(operation: Operation, target: int | None) -> str:
    return operation.name if target is None else f"{operation.name} {target}"


def is_larger(request: ApiRequest, limit: int) -> bool:
    """Return whether the body of a request is announced as larger than `limit` bytes."""
    announced = request.headers.get(b"content-length", b"0")
    return announced.isdigit() and int(announced) > limit


async def receive_body(request: ApiRequest, limit: int) -> bytes:
    """Wait for the body of a request. Raises Refused for one that is larger than `limit`, before it is read whole."""
    if is_larger(request, limit):
        raise _refuse_large(limit)
    if request.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in request.headers:
        return b""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused("MALFORMED_REQUEST", "The connection was closed before the whole body was received.")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _refuse_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _refuse_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"The body is larger than {limit:,} bytes, the limit of this service.")
