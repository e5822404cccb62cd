"""Finds the API key in a request, before anything else in it is examined."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_plus

from trellis.core.keys import has_key_form
from trellis.errors import Refused
from trellis.sentences import say

# The parameter `key` in a query string, each of its letters as it is or percent-encoded.
_KEY: Final = re.compile(rb"(?:^|&)(?:k|%6[bB])(?:e|%65)(?:y|%79)=([^&]*)")


def extract_key(headers: Mapping[bytes, bytes], query: bytes) -> tuple[str, bool]:
    """Return the key as it was sent, and whether the URL contains one, which may not be allowed.

    It is sent as `Authorization: Bearer`, `Authorization: Basic`, `X-API-Key` or `?key=`. The first of these that has the form of a
    key counts, as clients also send credentials for servers in between, such as an OAuth token. Raises Refused (NO_API_KEY).
    """
    url_key = _find_in_query(query)
    named = headers.get(b"x-api-key")
    sent = _find_in_authorization(headers), named.strip().decode("latin-1") if named else None, url_key
    presented = [one for one in sent if one is not None]
    if not presented:
        raise Refused(
            "NO_API_KEY",
            say(
                "Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: "
                "KEY`). An administrator can create one in the administration panel or with `trellis keys "
                "create`."
            ),
        )
    return next((one for one in presented if has_key_form(one)), presented[0]), url_key is not None


def refuse_key_in_url() -> Refused:
    """Refuse a key in the URL."""
    return Refused(
        "CANNOT_USE_KEY_AS_URL_PARAM",
        say(
            "URLs end up in logs and browser histories, so this service does not accept keys in them. Send "
            "it as `Authorization: Bearer KEY`, and have this key rotated, since it has been in a URL."
        ),
    )


def _find_in_authorization(headers: Mapping[bytes, bytes]) -> str | None:
    scheme, _, credentials = headers.get(b"authorization", b"").strip().partition(b" ")
    match scheme.lower():
        case b"bearer":
            return credentials.strip().decode("latin-1")
        case b"basic":
            return _decode_user(credentials.strip())
    return None


def _find_in_query(query: bytes) -> str | None:
    """Return the key in a query string. The rest is not decoded: it may be long, and the caller is not identified yet."""
    found = _KEY.search(query)
    return None if found is None else unquote_plus(found[1].decode("latin-1"))


def _decode_user(credentials: bytes) -> str:
    """Return the user name of Basic credentials; published clients omit the colon after it, or add one behind the encoded text."""
    encoded = credentials.rstrip(b"=:")
    try:
        decoded = base64.b64decode(encoded + b"=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return ""
    return decoded.partition(b":")[0].decode("latin-1")
