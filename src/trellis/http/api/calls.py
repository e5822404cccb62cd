"""Receives the bodies of requests, and builds calls from the input and the headers."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

from trellis.core.actor import Actor
from trellis.core.keys import redact_keys
from trellis.core.operation import Call, Operation
from trellis.core.verbs import Response, Verb
from trellis.core.version import find_own_version
from trellis.errors import Refused
from trellis.http.api.headers import audit_reason, change_set_name, expected_versions, fingerprint, idempotency_token
from trellis.http.api.identify import extract_key
from trellis.http.api.request import ApiRequest
from trellis.sentences import say

log = logging.getLogger(__name__)

# Other values of Content-Encoding are passed over: some clients write the charset there.
_COMPRESSED: Final = frozenset((b"gzip", b"x-gzip", b"deflate", b"br", b"zstd", b"compress", b"x-compress"))

P = ParamSpec("P")
T = TypeVar("T")


def build_read(
    request: ApiRequest, operation: Operation, actor: Actor, target: int | None, raw: Mapping[str, Any], *, again: bool = False
) -> Call:
    """Build the call of an operation that reads, perhaps `again` for the same request."""
    return Call(
        operation.name,
        actor,
        raw,
        target,
        request_id=request.request_id,
        again=again,
        traceparent=request.traceparent,
        address=request.address,
    )


def build_write(request: ApiRequest, operation: Operation, actor: Actor, target: int | None, raw: Mapping[str, Any]) -> Call:
    """Build the call of an operation that writes from its raw input and the headers. Raises Refused (INVALID_HEADER)."""
    headers = request.headers
    expected = tuple(map(find_own_version, expected_versions(headers.get(b"if-match"))))
    if expected and not operation.is_conditional:
        detail = say(
            "{name} does not change an existing record, so If-Match does not apply. Leave If-Match out.",
            name=operation.name,
        )
        raise Refused("INVALID_HEADER", detail)
    if b"if-none-match" in headers and operation.verb is not None and operation.verb.may_create:  # `*` would mean: never overwrite
        detail = say(
            "{name} does not take If-None-Match. To create a record only if there is none with its external id, send externalId "
            "with a create. To change only the version that you have read, send If-Match.",
            name=operation.name,
        )
        raise Refused("INVALID_HEADER", detail)
    token = headers.get(b"idempotency-key") if operation.verb is not None and operation.verb.idempotency_key else None
    return Call(
        operation.name,
        actor,
        raw,
        target,
        expected=expected,
        request_id=request.request_id,
        traceparent=request.traceparent,
        reason=audit_reason(headers.get(b"x-audit-log-reason")),
        token=idempotency_token(token),
        change_set=change_set_name(headers.get(b"change-set")),
        fingerprint=fingerprint(_name_target(operation, target), raw, extract_key(headers, request.query)[0]) if token else "",
        idempotency_key=redact_keys(token.decode("ascii")) if token else None,
        address=request.address,
    )


def _name_target(operation: Operation, target: int | None) -> str:
    return operation.name if target is None else f"{operation.name} {target}"


def may_be_larger(request: ApiRequest, limit: int) -> bool:
    """Return whether the body of a request is announced as larger than `limit` bytes, or comes without a length (chunked)."""
    return _read_announced(request) > limit or b"transfer-encoding" in request.headers


def _read_announced(request: ApiRequest) -> int:
    announced = request.headers.get(b"content-length", b"0")
    return int(announced) if announced.isdigit() else 0


async def receive_body(request: ApiRequest, limit: int) -> bytes:
    """Receive the body of a request. Raises Refused as soon as it exceeds `limit`, or if the connection is closed early.

    A compressed body is refused before it is received.
    """
    codings = [coding.strip().lower() for coding in request.headers.get(b"content-encoding", b"").split(b",")]
    if compressed := [coding.decode() for coding in codings if coding in _COMPRESSED]:
        detail = say(
            "The body is compressed by {coding}. Send it uncompressed, without Content-Encoding.", coding=", ".join(compressed)
        )
        raise Refused("UNSUPPORTED_MEDIA_TYPE", detail)
    require_size(_read_announced(request), limit)
    if request.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in request.headers:
        return b""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Refused("MALFORMED_REQUEST", say("The connection was closed before the whole body was received."))
        part: bytes = message.get("body", b"")
        size += len(part)
        require_size(size, limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def require_size(size: int, limit: int) -> None:
    """Refuse a body that is larger than `limit` bytes."""
    if size > limit:
        raise Refused("BODY_TOO_LARGE", say("The body is larger than {limit:,} bytes, the limit of this service.", limit=limit))


async def encode_written(request: ApiRequest, verb: Verb, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that encodes what a write has returned: in a thread if it may be large, as what a batch returns.

    Raises Refused (BUSY) if there is too little memory for it, which says that the write has been made.
    """
    large = verb.response is Response.ANSWER
    try:
        return await asyncio.to_thread(function, *args, **kwargs) if large else function(*args, **kwargs)
    except MemoryError:
        log.error("Request %s: it is done, with too little memory for its response.", request.request_id, extra=request.log_fields)  # noqa: TRY400
        detail = say(
            "This write was made, but the service has too little memory for its response. Look before you send it again. With the "
            "same Idempotency-Key, a create can be sent again as it is."
        )
        raise Refused("BUSY", detail) from None
