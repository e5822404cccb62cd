"""Refusals over HTTP: the problem document of RFC 9457, and its headers."""

from typing import Any, Final

from trellis.core.keys import redact_keys
from trellis.errors import Refused
from trellis.http.json_body import encode_body
from trellis.http.routes import REFERENCE

PROBLEM: Final = b"application/problem+json"


def format_problem(refused: Refused, base_url: str, request_id: str, *, pretty: bool = False) -> bytes:
    """Return the problem document of a refusal, with errorCode and errorMessage as the 4.2 API has them.

    Details quote the request. Keys in them are hidden, since callers may log responses.
    """
    return encode_body(_serialize_problem(refused, base_url, request_id), pretty=pretty)


def _serialize_problem(refused: Refused, base_url: str, request_id: str) -> dict[str, Any]:
    refusal = refused.refusal
    document: dict[str, Any] = {
        "type": f"{base_url}{REFERENCE}#{refusal.message}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": redact_keys(refused.detail),
        "errorCode": refused.code,
        "errorMessage": refusal.message,
        "requestId": request_id,
        **{name: _serialize_fact(fact, base_url, request_id) for name, fact in refused.facts.items()},
    }
    if refused.faults:
        document["errors"] = [
            {
                "field": redact_keys(fault.field),
                "code": fault.message,
                "errorCode": fault.code,
                "message": redact_keys(fault.detail),
            }
            for fault in refused.faults
        ]
    if refused.more_faults:
        document["moreErrors"] = refused.more_faults
    return document


def _serialize_fact(fact: Any, base_url: str, request_id: str) -> Any:
    return _serialize_problem(fact, base_url, request_id) if isinstance(fact, Refused) else fact


def problem_headers(refused: Refused) -> dict[str, str]:
    """Return the headers of a refusal, with its facts filled in."""
    return {name: value.format_map(refused.facts) for name, value in refused.refusal.headers.items()}


def encode_problem_headers(refused: Refused) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a refusal in the form that ASGI expects."""
    return tuple((name.lower().encode(), value.encode("latin-1")) for name, value in problem_headers(refused).items())
