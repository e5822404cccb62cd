"""From a request's headers to the key that it presents. Nothing else of the request is looked at before that."""

import base64
import binascii
from collections.abc import Mapping
from urllib.parse import parse_qsl

from trellis.errors import Refused


def presented_key(headers: Mapping[bytes, bytes], query: bytes, *, in_url: bool) -> str:
    """Give the key as it was sent: `Authorization: Bearer`, `Authorization: Basic`, `X-API-Key`, or `?key=` if allowed.

    Raises Refused: NO_API_KEY, or CANNOT_USE_KEY_AS_URL_PARAM where a key stands in the URL and may not.
    """
    url_key = _from_url(query) if b"key=" in query else None
    if url_key is not None and not in_url:
        raise Refused(
            "CANNOT_USE_KEY_AS_URL_PARAM",
            "Addresses end up in logs and histories, so this service takes no key from them. "
            "Send it as `Authorization: Bearer KEY`, and have this key rotated: it has been in a URL.",
        )
    scheme, _, credentials = headers.get(b"authorization", b"").strip().partition(b" ")
    match scheme.lower():
        case b"bearer":
            return credentials.strip().decode("latin-1")
        case b"basic":
            return _user_of(credentials.strip())
    if named := headers.get(b"x-api-key"):
        return named.strip().decode("latin-1")
    if url_key is not None:
        return url_key
    raise Refused(
        "NO_API_KEY",
        "Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: KEY`). "
        "An administrator makes keys in the administration panel or with `trellis keys create`.",
    )


def _from_url(query: bytes) -> str | None:
    try:
        return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True)).get("key")
    except ValueError:
        return None


def _user_of(credentials: bytes) -> str:
    """Take the user name out of Basic credentials; published clients leave the colon behind it out."""
    try:
        decoded = base64.b64decode(credentials + b"=" * (-len(credentials) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.partition(b":")[0].decode("latin-1")
