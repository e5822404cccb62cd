"""Refusals as HTTP answers them: the problem document of RFC 9457, and the headers that go with it."""

from typing import Any

from trellis.core.version import encode_json
from trellis.errors import Refused


def format_problem(refused: Refused, base_url: str, request_id: str) -> tuple[int, bytes]:
    """Give the status and the problem document of a refusal, with the 4.2 pair errorCode and errorMessage in it."""
    refusal = refused.refusal
    document: dict[str, Any] = {
        "type": f"{base_url}/api/docs#{refusal.message}",
        "title": refusal.title,
        "status": refusal.status,
        "detail": refused.detail,
        "errorCode": refused.code,
        "errorMessage": refusal.message,
        "requestId": request_id,
        **refused.facts,
    }
    if refused.faults:
        document["errors"] = [
            {"field": fault.field, "code": fault.message, "errorCode": fault.code, "message": fault.detail}
            for fault in refused.faults
        ]
    return refusal.status, encode_json(document)


def problem_headers(refused: Refused) -> dict[str, str]:
    """Give the headers that a refusal brings, their values filled in."""
    return {name: value.format_map(refused.facts) for name, value in refused.refusal.headers.items()}
