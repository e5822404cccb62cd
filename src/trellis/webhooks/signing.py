"""The headers that identify a message and prove its origin, as defined by Standard Webhooks."""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from contextlib import suppress

from trellis.core.webhooks import SecretUnavailable, build_headers, derive_secret, webhook_timestamp
from trellis.store.webhooks import Webhook


def sign(message_id: str, timestamp: int, body: bytes, secrets: Iterable[bytes]) -> str:
    """Sign `id.timestamp.body` with each secret; several signatures are separated by spaces."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()}" for secret in secrets)


def build_signed_headers(webhook: Webhook, message_id: str, at: str, body: bytes, key: str | None) -> dict[str, str]:
    """Return the headers of an attempt, also signed with the old secret while that is valid and available.

    Raises SecretUnavailable if the current secret is not available.
    """
    secrets = [derive_secret(webhook.secret, key)]
    if webhook.old_secret is not None and webhook.old_until is not None and webhook.old_until > at:
        with suppress(SecretUnavailable):  # `key` has changed since; the receiver can verify with the new secret
            secrets.append(derive_secret(webhook.old_secret, key))
    return build_headers(message_id, at, sign(message_id, webhook_timestamp(at), body, secrets))
