"""Reads a provider's claims about somebody for the operations. None of them is trusted to have any form."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.admins import Claims
from trellis.invisible import remove_invisible

_MOST_GROUPS: Final = 5000
_NAME: Final = 100  # characters that a name may have
# Authentication methods other than a password (RFC 8176).
_SECOND: Final = frozenset(("mfa", "otp", "hwk", "swk", "sc", "pop", "fpt", "face", "iris", "retina", "vbm"))


def read_claims(issuer: str, claims: Mapping[str, Any], groups_claim: str) -> Claims:
    """Return the claims of an ID token, and perhaps of UserInfo, as the operations expect them."""
    login = _text(claims, "preferred_username") or _text(claims, "email") or _text(claims, "sub")
    time = claims.get("auth_time")
    methods = claims.get("amr")
    return Claims(
        issuer=issuer,
        subject=str(claims["sub"]),
        name=_text(claims, "name", _NAME) or login[:_NAME].strip(),
        login=login,
        groups=find_groups(claims, groups_claim) or (),
        auth_time=time if isinstance(time, int) and not isinstance(time, bool) and 0 <= time < 2**53 else None,
        has_factor=isinstance(methods, list) and any(isinstance(one, str) and one in _SECOND for one in methods),
    )


def find_groups(claims: Mapping[str, Any], claim: str) -> tuple[str, ...] | None:
    """Return the groups of a claim; None if there is no such claim. Dots in a name may also lead to a claim inside another one."""
    value: Any = claims.get(claim)
    if value is None and "." in claim:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(one for one in listed[:_MOST_GROUPS] if isinstance(one, str))


def _text(claims: Mapping[str, Any], name: str, longest: int = 255) -> str:
    """Return a claim as a line of text; "" if it is not a text."""
    value = claims.get(name)
    printable = "".join(c for c in value if c.isprintable()).strip() if isinstance(value, str) else ""
    return remove_invisible(printable[:longest])  # names and logins may not contain invisible ones
