"""Verifies ID tokens: that the provider signed one, for this service, in answer to the request just made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.openid.errors import ProviderRefused
from trellis.sentences import mark, say

_CLOCKS_DIFFER: Final = 60  # seconds
_OLDEST: Final = 600  # seconds since it was signed
_LONGEST: Final = 65_536  # characters
_MOST_KEYS: Final = 100
_WRONG_CLAIM: Final = mark("{claim} is missing or wrong")
_NO_TOKEN: Final = say("It sent no ID token.")


class UnknownKey(ProviderRefused):
    """A token is signed with a key that is not among the known keys of the provider: it may have others by now."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The values that a token must have, and the algorithms that may sign it."""

    issuer: str
    client: str
    nonce: str
    algorithms: tuple[str, ...]


def load() -> None:
    """Load the library, which takes some tenths of a second: do not call this on an event loop."""
    import joserfc.jwt  # noqa: F401, PLC0415  # start-up time: only for single sign-on


def verify_id_token(text: object, keys: Mapping[str, Any], expected: Expected, now: float) -> dict[str, Any]:
    """Return the claims of an ID token (OpenID Connect Core 1.0, 3.1.3.7). Raises ProviderRefused, UnknownKey."""
    from joserfc import jwt  # noqa: PLC0415  # start-up time, as above
    from joserfc.errors import JoseError  # noqa: PLC0415  # as above

    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ProviderRefused(_NO_TOKEN)
    found = _find_keys(text, keys, expected.algorithms)
    error: Exception | None = None
    for key in found:
        try:
            token = jwt.decode(text, key, algorithms=list(expected.algorithms))
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as wrong:  # the last one: claims that are nested deeply
            error = wrong
            continue
        try:
            registry = jwt.JWTClaimsRegistry(
                now=int(now),
                leeway=_CLOCKS_DIFFER,
                iss={"essential": True, "value": expected.issuer},
                sub={"essential": True},
                aud={"essential": True, "value": expected.client},
                exp={"essential": True},
                iat={"essential": True},
                nonce={"essential": True, "value": expected.nonce},
            )
            registry.validate(token.claims)
        except (JoseError, ValueError, TypeError, KeyError) as wrong:
            raise _refuse(_explain(wrong)) from None
        return _judge(dict(token.claims), expected, now)
    raise UnknownKey(_refuse(_explain(error)).told)


def _find_keys(text: str, keys: Mapping[str, Any], algorithms: Sequence[str]) -> list[Any]:
    """Return the keys that a token may be signed with. Raises UnknownKey, ProviderRefused."""
    from joserfc.errors import JoseError  # noqa: PLC0415  # start-up time, as above
    from joserfc.jwk import import_key  # noqa: PLC0415  # as above
    from joserfc.jws import extract_compact  # noqa: PLC0415  # as above

    try:
        header = extract_compact(text.encode("ascii")).headers()
    except (JoseError, ValueError, TypeError, KeyError):
        raise ProviderRefused(_NO_TOKEN) from None
    if header.get("alg") not in algorithms:
        raise _refuse(say("its signing algorithm is not accepted here"))
    kind = {"R": "RSA", "P": "RSA"}.get(header["alg"][0], "OKP" if header["alg"].startswith("Ed") else "EC")
    kid = header.get("kid")
    listed = keys.get("keys")
    fitting = [
        one
        for one in (listed[:_MOST_KEYS] if isinstance(listed, list) else ())
        if isinstance(one, dict) and one.get("kty") == kind and one.get("use", "sig") == "sig" and kid in (None, one.get("kid"))
    ]
    if not fitting:
        raise UnknownKey(say("Its ID token is signed with a key that it does not list."))
    found = []
    for one in fitting:
        try:
            found.append(import_key({name: value for name, value in one.items() if name in _PUBLIC}))
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    return found


_PUBLIC: Final = frozenset(("kty", "kid", "n", "e", "crv", "x", "y"))  # the members of a key that verify a signature


def _explain(error: Exception | None) -> str:
    """Return which rule was broken, without any value of the token."""
    claim = getattr(error, "claim", None)
    if isinstance(claim, str):
        return say(_WRONG_CLAIM, claim=claim)
    return say("its signature is wrong") if type(error).__name__ == "BadSignatureError" else say("it cannot be read")


def _refuse(reason: str) -> ProviderRefused:
    return ProviderRefused(say("Its ID token is not valid: {reason}.", reason=reason))


def _judge(claims: dict[str, Any], expected: Expected, now: float) -> dict[str, Any]:
    """Check the claims that the library does not check. Raises ProviderRefused."""
    audience = claims["aud"]
    several = isinstance(audience, list) and len(audience) > 1
    if claims.get("azp", None if several else expected.client) != expected.client:
        raise _refuse(say("it was issued to another client"))
    if isinstance(claims["iat"], bool) or claims["iat"] < now - _OLDEST:
        raise _refuse(say("it was issued too long ago"))
    subject = claims["sub"]
    is_text = isinstance(subject, str) and 1 <= len(subject) <= 255 and subject.isprintable()
    if not is_text or subject != subject.strip():  # operations trim texts, and without its blank it would be another subject
        raise _refuse(say(_WRONG_CLAIM, claim="sub"))
    return claims
