"""The signature of a message, as Standard Webhooks has it."""

import base64
import hashlib
import hmac
from collections.abc import Iterable


def signature(message_id: str, timestamp: int, body: bytes, secrets: Iterable[bytes]) -> str:
    """Sign `id.timestamp.body` with each secret; several signatures stand with spaces between them."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()}" for secret in secrets)
