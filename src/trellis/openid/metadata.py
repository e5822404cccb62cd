"""A provider's metadata (OpenID Connect Discovery 1.0): its addresses, and what it supports."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from trellis.openid.errors import ProviderUnavailable
from trellis.sentences import say

WELL_KNOWN: Final = "/.well-known/openid-configuration"
# Only those with a key that the provider alone has: not "none", nor those with the client's secret as the key.
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata in use. If `tells_issuer`, the provider names itself in the address that people come back to (RFC 9207)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    end_session_endpoint: str | None
    algorithms: tuple[str, ...]
    takes_basic: bool
    tells_issuer: bool


def read_metadata(issuer: str, document: Mapping[str, Any]) -> Metadata:
    """Read a provider's metadata. Raises ProviderUnavailable if it is that of another issuer, or cannot be used."""
    if document.get("issuer") != issuer:
        raise ProviderUnavailable(say("The issuer in its metadata is not TRELLIS_SSO_ISSUER. They must be exactly the same."))
    signs = _words(document, "id_token_signing_alg_values_supported", ("RS256",))
    algorithms = tuple(name for name in _ALGORITHMS if name in signs)
    if not algorithms:
        raise ProviderUnavailable(say("It signs ID tokens with none of the algorithms that are accepted here."))
    if "code" not in _words(document, "response_types_supported", ("code",)):
        raise ProviderUnavailable(say("It does not support the authorization code flow."))
    if "S256" not in _words(document, "code_challenge_methods_supported", ("S256",)):
        raise ProviderUnavailable(say("It does not support PKCE with S256."))
    methods = _words(document, "token_endpoint_auth_methods_supported", ("client_secret_basic",))
    return Metadata(
        authorization_endpoint=_address(issuer, document, "authorization_endpoint"),
        token_endpoint=_address(issuer, document, "token_endpoint"),
        jwks_uri=_address(issuer, document, "jwks_uri"),
        userinfo_endpoint=_optional(issuer, document, "userinfo_endpoint"),
        end_session_endpoint=_optional(issuer, document, "end_session_endpoint"),
        algorithms=algorithms,
        takes_basic="client_secret_basic" in methods,
        tells_issuer=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _words(document: Mapping[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    value = document.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else default


def _optional(issuer: str, document: Mapping[str, Any], name: str) -> str | None:
    return None if document.get(name) is None else _address(issuer, document, name)


def _address(issuer: str, document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    plain = issuer.startswith("http://")  # on this machine
    if not isinstance(value, str) or not re.fullmatch(r"https?://[\x21-\x7e]{1,2000}", value) or not _has_host(value):
        raise ProviderUnavailable(say("Its {name} is not a web address.", name=name))
    if not value.startswith("https://") and not plain:
        raise ProviderUnavailable(say("Its {name} does not use https.", name=name))
    return value


def _has_host(address: str) -> bool:
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False
