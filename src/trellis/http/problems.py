"""The one table between refusals and HTTP: refusal → status. Where operations are served stands in core/route.py."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.version import encode_json
from trellis.errors import Refused

STATUS: Final[Mapping[str, int]] = {
    "NO_API_KEY": 401,
    "INVALID_API_KEY": 401,
    "IP_ADDRESS_NOT_ALLOWED": 403,
    "CANNOT_USE_KEY_AS_URL_PARAM": 403,
    "TOO_MANY_REQUESTS_WITH_BAD_KEY": 429,
    "NO_PERMISSION": 403,
    "NO_ENDPOINT": 404,
    "BAD_METHOD": 405,
    "INVALID_ID": 404,
    "INVALID_TARGET": 400,
    "HAS_CHILDREN": 409,
    "NO_TITLE": 400,
    "NO_REDIRECT_URL": 400,
    "INVALID_TYPE": 400,
    "CANNOT_DELETE": 403,
    "MALFORMED_REQUEST": 400,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "BODY_TOO_LARGE": 413,
    "INVALID_HEADER": 400,
    "UNKNOWN_PARAMETER": 400,
    "INVALID_VALUE": 400,
    "INVALID_PARENT": 400,
    "INVALID_POSITION": 400,
    "INVALID_GROUP": 400,
    "MISSING_VALUE": 400,
    "UNKNOWN_OPERATION": 400,
    "PRECONDITION_FAILED": 412,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "IDEMPOTENCY_KEY_IN_USE": 409,
    "RATE_LIMITED": 429,
    "KEY_REVOKED": 409,
    "LOGIN_TAKEN": 409,
    "LAST_ADMINISTRATOR": 409,
    "LINK_SPENT": 409,
    "NOT_RESTORABLE": 409,
    "CHANGED_SINCE": 409,
    "NO_LONGER_KEPT": 410,
    "PARENT_NEEDED": 409,
    "ADDRESS_NOT_ALLOWED": 400,
    "UNKNOWN_EVENT": 400,
    "TOO_MANY_WEBHOOKS": 409,
    "WEBHOOK_OFF": 409,
    "BUSY": 503,
    "INTERNAL_ERROR": 500,
}


def format_problem(refused: Refused, base_url: str, request_id: str) -> tuple[int, bytes]:
    """Write a refusal as a problem document (RFC 9457) with the 4.2 pair errorCode and errorMessage beside it."""
    reason = refused.reason
    status = STATUS[reason.message]
    document: dict[str, Any] = {
        "type": f"{base_url}/api/docs#{reason.message}",
        "title": reason.title,
        "status": status,
        "detail": refused.detail,
        "errorCode": reason.code,
        "errorMessage": reason.message,
        "requestId": request_id,
        **refused.facts,
    }
    if refused.faults:
        document["errors"] = [
            {"field": fault.field, "code": fault.message, "errorCode": fault.coded(), "message": fault.detail}
            for fault in refused.faults
        ]
    return status, encode_json(document)
