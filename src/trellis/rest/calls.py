"""From a request to the call of an operation: its query, its body, its conditions."""

from typing import Any

from trellis.core.actor import Actor
from trellis.core.keys import redact_keys
from trellis.core.operation import Call, Operation
from trellis.errors import Refused
from trellis.rest.bodies import from_body, from_query
from trellis.rest.headers import audit_reason, expected_versions, fingerprint, idempotency_token
from trellis.rest.request import Exchange
from trellis.settings import Settings


def query_of(exchange: Exchange, settings: Settings) -> dict[str, Any]:
    """Read the parameters in the query."""
    raw = from_query(exchange.query)
    if settings.key_in_url:
        raw.pop("key", None)
    return raw


async def call_of(exchange: Exchange, operation: Operation, actor: Actor, target: int | None, settings: Settings) -> Call:
    """Read the whole request of a writing operation. Raises Refused."""
    raw = query_of(exchange, settings)
    headers = exchange.headers
    raw |= await from_body(headers.get(b"content-type", b""), await _body(exchange, settings.body_limit))
    sent_token = headers.get(b"idempotency-key") if operation.verb is not None and operation.verb.idempotency_key else None
    return Call(
        operation.name,
        actor,
        raw,
        target,
        expected=expected_versions(headers.get(b"if-match")),
        request_id=exchange.request_id,
        reason=audit_reason(headers.get(b"x-audit-log-reason")),
        token=idempotency_token(sent_token),
        fingerprint=fingerprint(_named(operation, target), raw) if sent_token else "",
        idempotency_key=redact_keys(sent_token.decode("ascii")) if sent_token else None,
    )


def _named(operation: Operation, target: int | None) -> str:
    return operation.name if target is None else f"{operation.name} {target}"


async def _body(exchange: Exchange, limit: int) -> bytes:
    announced = exchange.headers.get(b"content-length", b"0")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    if announced == b"0" and b"transfer-encoding" not in exchange.headers:
        return b""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await exchange.receive()
        if message["type"] == "http.disconnect":
            raise Refused("MALFORMED_REQUEST", "The connection ended before the whole body had come.")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"The body is larger than {limit:,} bytes, which is the most that is read here.")
