"""Finds the API key in a request, before anything else in it is examined."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_plus

from trellis.errors import Refused

# The parameter `key` in a query string, each of its letters as it is or percent-encoded.
_KEY: Final = re.compile(rb"(?:^|&)(?:k|%6[bB])(?:e|%65)(?:y|%79)=([^&]*)")


def find_key(headers: Mapping[bytes, bytes], query: bytes, *, in_url: bool) -> str:
    """Return the key as it was sent: `Authorization: Bearer`, `Authorization: Basic`, `X-API-Key`, or `?key=` if allowed.

    Raises Refused: NO_API_KEY, or CANNOT_USE_KEY_AS_URL_PARAM if there is a key in the URL and that is not allowed.
    """
    url_key = _find_in_query(query)
    if url_key is not None and not in_url:
        raise Refused(
            "CANNOT_USE_KEY_AS_URL_PARAM",
            "URLs end up in logs and browser histories, so this service does not accept keys in them. "
            "Send it as `Authorization: Bearer KEY`, and have this key rotated, since it has been in a URL.",
        )
    scheme, _, credentials = headers.get(b"authorization", b"").strip().partition(b" ")
    match scheme.lower():
        case b"bearer":
            return credentials.strip().decode("latin-1")
        case b"basic":
            return _decode_user(credentials.strip())
    if named := headers.get(b"x-api-key"):
        return named.strip().decode("latin-1")
    if url_key is not None:
        return url_key
    raise Refused(
        "NO_API_KEY",
        "Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: KEY`). "
        "An administrator can create one in the administration panel or with `trellis keys create`.",
    )


def has_key(query: bytes) -> bool:
    """Return whether there is a key in a query string."""
    return _KEY.search(query) is not None


def _find_in_query(query: bytes) -> str | None:
    """Return the key in a query string. Nothing else of it is decoded: who asks is not known yet, and it may be long."""
    found = _KEY.search(query)
    return None if found is None else unquote_plus(found[1].decode("latin-1"))


def _decode_user(credentials: bytes) -> str:
    """Return the user name of Basic credentials; published clients omit the colon after it."""
    try:
        decoded = base64.b64decode(credentials + b"=" * (-len(credentials) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.partition(b":")[0].decode("latin-1")
