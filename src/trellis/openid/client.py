"""The OAuth 2.0 client of Authlib, with bounded requests. Loading this module takes a while: not on an event loop."""

import base64
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
import orjson
from authlib.oauth2.client import OAuth2Client  # type: ignore[import-untyped]

from trellis.openid.errors import ProviderRefused, ProviderUnavailable, explain_refused_code
from trellis.openid.transport import HEADERS, BoundedTransport, bounded
from trellis.sentences import say


def prepare_basic(auth: Any, _method: str, uri: str, headers: Mapping[str, str], body: str) -> tuple[str, dict[str, str], str]:
    """Return a request with the client's id and secret as HTTP Basic, each encoded first (RFC 6749, 2.3.1).

    Authlib encodes neither, so an id with a colon, such as an address, would be cut off at the colon.
    """
    pair = ":".join(quote(one, safe="") for one in (auth.client_id, auth.client_secret))
    return uri, {**headers, "Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, body


class ProviderClient(OAuth2Client):  # type: ignore[misc]  # it has no types
    """A client for one exchange."""

    def __init__(self, tls: ssl.SSLContext, **known: Any) -> None:
        super().__init__(session=None, code_challenge_method="S256", **known)
        self._tls = tls

    async def exchange(self, address: str, code: str, verifier: str) -> Mapping[str, Any]:
        """Return the tokens that the provider issues for a code. Raises ProviderRefused, ProviderUnavailable."""
        found: Mapping[str, Any] = await self.fetch_token(
            address, grant_type="authorization_code", code=code, code_verifier=verifier
        )
        return found

    async def _fetch_token(self, url: str, body: str, headers: Mapping[str, str], auth: Any, **_: object) -> Any:
        to, sent, content = auth.prepare("POST", url, {**HEADERS, **headers}, body)
        async with bounded(), httpx.AsyncClient(transport=BoundedTransport(self._tls), timeout=None) as client:  # noqa: S113  # bounded
            response = await client.post(to, headers=sent, content=content)
        return _read_tokens(response)


def _read_tokens(response: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object of a response. Raises ProviderRefused, ProviderUnavailable.

    Authlib's own function raises further errors, such as for a page of a proxy, or an error whose description is not text.
    """
    try:
        content = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        content = None
    if response.status_code >= 500 or (response.status_code != 200 and not isinstance(content, dict)):
        raise ProviderUnavailable(say("Its token endpoint answered with status {status}.", status=response.status_code))
    if not isinstance(content, dict):
        raise ProviderUnavailable(say("Its token endpoint did not answer with a JSON object."))
    if "error" in content:
        raise ProviderRefused(explain_refused_code(content["error"]))
    return content
