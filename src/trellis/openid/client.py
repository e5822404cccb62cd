"""The OAuth 2.0 client: Authlib's, whose requests end. Loading this module takes a while: not on an event loop."""

import ssl
from collections.abc import Mapping
from typing import Any

import httpx
from authlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from authlib.oauth2.client import OAuth2Client  # type: ignore[import-untyped]

from trellis.openid.errors import ProviderRefused, ProviderUnavailable
from trellis.openid.explain import find_word
from trellis.openid.transport import HEADERS, BoundedTransport, bounded


class Client(OAuth2Client):  # type: ignore[misc]  # it has no types
    """A client for one exchange."""

    def __init__(self, tls: ssl.SSLContext, **known: Any) -> None:
        super().__init__(session=None, code_challenge_method="S256", **known)
        self._tls = tls

    async def exchange(self, address: str, code: str, verifier: str) -> Mapping[str, Any]:
        """Return what the provider gives for a code. Raises ProviderRefused, ProviderUnavailable."""
        try:
            found = await self.fetch_token(address, grant_type="authorization_code", code=code, code_verifier=verifier)
        except OAuth2Error as error:
            raise ProviderRefused(f"It does not take the code that you brought ({find_word(error.error)}).") from None
        except ValueError:
            raise ProviderUnavailable("The answer to the code is no JSON object.") from None
        return dict(found)

    async def _fetch_token(self, url: str, body: str, headers: Mapping[str, str], auth: Any, **_: object) -> Any:
        to, sent, content = auth.prepare("POST", url, {**HEADERS, **headers}, body)
        async with bounded(), httpx.AsyncClient(transport=BoundedTransport(self._tls), timeout=None) as client:  # noqa: S113  # bounded
            response = await client.post(to, headers=sent, content=content)
        if response.status_code >= 500:
            raise ProviderUnavailable(f"It answers the code with the status {response.status_code}.")
        return self.parse_response_token(response)
