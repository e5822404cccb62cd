"""The provider: keeps its metadata and keys for a while, sends people there, and asks who has come back.

Whatever strangers send, requests to the provider are limited: its metadata and keys are fetched once an hour, every ten seconds
after a failure, and once a minute for a token that no known key has signed; the codes that people bring are exchanged four at a
time. Nobody waits longer for their turn than for an answer.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import httpx

from trellis.core.admins import Claims, SignOnRequest
from trellis.openid.claims import find_groups, read_claims
from trellis.openid.errors import ProviderRefused, ProviderUnavailable, explain_refusal
from trellis.openid.id_token import Expected, UnknownKey, load, verify_id_token
from trellis.openid.metadata import WELL_KNOWN, Metadata, read_metadata
from trellis.openid.transport import HEADERS, SECONDS, BoundedTransport, bounded, read_object
from trellis.sentences import say
from trellis.settings import Settings

if TYPE_CHECKING:
    from trellis.openid.client import ProviderClient

T = TypeVar("T")

CALLBACK: Final = "/admin/sign-on/callback"
_SIGN_IN: Final = "/admin/sign-in"
_KEPT: Final = 3600.0  # seconds
_AFTER_FAILURE: Final = 10.0
_AFTER_UNKNOWN_KEY: Final = 60.0
_AT_ONCE: Final = 4


@dataclass
class _Kept(Generic[T]):
    """A fetched value, shared by all callers. When it is old, one of them fetches it again."""

    fetch: Callable[[], Awaitable[T]]
    value: T | None = None
    at: float = -_KEPT
    tried: float = -_KEPT
    error: ProviderUnavailable | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(self, *, since: float = 0.0) -> T:
        """Return the value, fetched after `since` if it may be fetched again by now. Raises ProviderUnavailable."""
        async with self.lock:
            now = time.monotonic()
            is_old = self.value is None or now - self.at >= _KEPT or (self.at < since and now - self.tried >= _AFTER_UNKNOWN_KEY)
            if is_old and (now - self.tried >= _AFTER_FAILURE or self.error is None):
                try:
                    self.value, self.at, self.error = await self.fetch(), now, None
                except ProviderUnavailable as error:
                    self.error = error
                finally:
                    self.tried = time.monotonic()  # the end, so that those who have waited for it do not try one after the other
            if self.value is None or (self.error is not None and now - self.at >= 24 * _KEPT):
                raise ProviderUnavailable(self.error.told if self.error else say("It could not be reached."))
            return self.value


class Provider:
    """The provider in the settings. Each process has one."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.sso_name
        self.issuer = settings.sso_issuer or ""
        self._settings = settings
        self._client_id = settings.sso_client_id or ""
        self._secret = settings.sso_client_secret
        self._public = settings.public_url or ""
        self._metadata: _Kept[Metadata] = _Kept(self._fetch_metadata)
        self._keys: _Kept[Mapping[str, Any]] = _Kept(self._fetch_keys)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._tls: ssl.SSLContext | None = None

    async def find_metadata(self) -> Metadata:
        """Return the provider's metadata. Raises ProviderUnavailable."""
        return await self._metadata.get()

    async def find_keys(self) -> Mapping[str, Any]:
        """Return the keys that the provider signs with. Raises ProviderUnavailable."""
        return await self._keys.get()

    async def build_address(self, request: SignOnRequest) -> str:
        """Return the address at the provider to which somebody is sent. Raises ProviderUnavailable."""
        metadata = await self.find_metadata()
        more = {"prompt": "login", "max_age": "0"} if request.asks_again else {}
        address, _ = (await self._build_client(metadata)).create_authorization_url(
            metadata.authorization_endpoint, state=request.state, code_verifier=request.verifier, nonce=request.nonce, **more
        )
        return str(address)

    async def build_sign_out_address(self) -> str | None:
        """Return the address where somebody can sign out at the provider; None if it has none. Raises ProviderUnavailable.

        No ID token is sent, which would spare them a question: none is kept.
        """
        endpoint = (await self.find_metadata()).end_session_endpoint
        if endpoint is None:
            return None
        query = urlencode({"client_id": self._client_id, "post_logout_redirect_uri": self._public + _SIGN_IN})
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    async def identify(self, request: SignOnRequest, query: Mapping[str, str], now: float) -> Claims:
        """Return who came back with this query in the address; `now` is in seconds. Raises ProviderRefused, ProviderUnavailable."""
        metadata = await self.find_metadata()
        issuer = query.get("iss")
        if issuer != self.issuer and (issuer is not None or metadata.tells_issuer):  # RFC 9207: from another provider
            raise ProviderRefused(say("The answer came from another provider."))
        if error := query.get("error"):
            raise ProviderRefused(explain_refusal(error))
        if not 1 <= len(code := query.get("code", "")) <= 4096:
            raise ProviderRefused(say("Its answer contains no authorization code."))
        try:
            async with asyncio.timeout(SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise ProviderUnavailable(say("Too many people are signing in through it at the same time.")) from None
        try:
            return await self._exchange(request, metadata, code, now)
        finally:
            self._turns.release()

    async def _exchange(self, request: SignOnRequest, metadata: Metadata, code: str, now: float) -> Claims:
        """Exchange a code for the provider's claims about somebody. The tokens are not kept."""
        client = await self._build_client(metadata)
        token = await client.exchange(metadata.token_endpoint, code, request.verifier)
        claims = await self._verify(request, metadata, token.get("id_token"), now)
        if metadata.userinfo_endpoint and isinstance(token.get("access_token"), str) and self._lacks(claims):
            claims |= await self._fetch_userinfo(metadata.userinfo_endpoint, token["access_token"], claims["sub"])
        return read_claims(self.issuer, claims, self._settings.sso_groups_claim)

    async def _verify(self, request: SignOnRequest, metadata: Metadata, text: object, now: float) -> dict[str, Any]:
        expected = Expected(self.issuer, self._client_id, request.nonce, metadata.algorithms)
        keys, began = await self.find_keys(), time.monotonic()
        try:
            return await asyncio.to_thread(verify_id_token, text, keys, expected, now)
        except UnknownKey:
            keys = await self._keys.get(since=began)
        return await asyncio.to_thread(verify_id_token, text, keys, expected, now)

    def _lacks(self, claims: Mapping[str, Any]) -> bool:
        lacks_groups = bool(self._settings.sso_roles) and find_groups(claims, self._settings.sso_groups_claim) is None
        return lacks_groups or not ("name" in claims and {"preferred_username", "email"} & claims.keys())

    async def _fetch_userinfo(self, address: str, token: str, subject: str) -> dict[str, Any]:
        """Return the claims that UserInfo adds. Raises ProviderRefused if they are about another person.

        Only the ID token states when and how they signed in.
        """
        claims = await self._fetch(address, {"authorization": f"Bearer {token}"})
        if claims.get("sub") != subject:
            raise ProviderRefused(say("Its user information is about another account."))
        return {name: value for name, value in claims.items() if name not in _SIGNED}

    # --- fetching -------------------------------------------------------------------------------------------------

    async def _fetch_metadata(self) -> Metadata:
        address = self.issuer.rstrip("/") + WELL_KNOWN
        return read_metadata(self.issuer, await self._fetch(address))

    async def _fetch_keys(self) -> Mapping[str, Any]:
        key_set = await self._fetch((await self.find_metadata()).jwks_uri)
        if not isinstance(key_set.get("keys"), list) or not key_set["keys"]:
            raise ProviderUnavailable(say("It lists no keys."))
        return key_set

    async def _fetch(self, address: str, headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        tls, sent = await self._load(), {**HEADERS, **(headers or {})}
        async with bounded(), httpx.AsyncClient(transport=BoundedTransport(tls), timeout=None) as client:  # noqa: S113  # bounded
            return read_object(await client.get(address, headers=sent))

    async def _build_client(self, metadata: Metadata) -> "ProviderClient":
        """Return a client for one exchange."""
        tls = await self._load()
        from trellis.openid.client import ProviderClient, prepare_basic  # noqa: PLC0415  # start-up time: only for single sign-on

        posts = "none" if self._secret is None else "client_secret_post"
        return ProviderClient(
            tls,
            client_id=self._client_id,
            client_secret=self._secret,
            token_endpoint_auth_method=prepare_basic if self._secret is not None and metadata.takes_basic else posts,
            scope=self._settings.sso_scopes,
            redirect_uri=self._public + CALLBACK,
        )

    async def _load(self) -> ssl.SSLContext:
        """Load certificates and libraries, once, in a thread: that takes some tenths of a second. Raises ProviderUnavailable."""
        if self._tls is None:
            try:
                self._tls = await asyncio.to_thread(_load)
            except OSError as error:  # tried again with the next request, since the certificates may be about to be replaced
                detail = say("The certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {reason}.", reason=error)
                raise ProviderUnavailable(detail) from None
        return self._tls


_SIGNED: Final = frozenset(("iss", "sub", "aud", "exp", "iat", "nonce", "azp", "auth_time", "amr", "acr", "at_hash"))


def _load() -> ssl.SSLContext:
    import trellis.openid.client  # noqa: F401, PLC0415  # start-up time, as above

    load()
    return httpx.create_ssl_context()
