"""What a provider says of somebody, as the operations take it. Nothing of it is trusted to be of any form."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.admins import Claims
from trellis.invisible import remove_invisible

_MOST_GROUPS: Final = 5000
_NAME: Final = 100  # characters that a name may have
# Ways of showing who one is that are no password (RFC 8176).
_SECOND: Final = frozenset(("mfa", "otp", "hwk", "swk", "sc", "pop", "fpt", "face", "iris", "retina", "vbm"))


def read_claims(issuer: str, told: Mapping[str, Any], groups_claim: str) -> Claims:
    """Return what the claims of an ID token, and perhaps of UserInfo, say."""
    login = _text(told, "preferred_username") or _text(told, "email") or _text(told, "sub")
    time = told.get("auth_time")
    methods = told.get("amr")
    return Claims(
        issuer=issuer,
        subject=str(told["sub"]),
        name=_text(told, "name", _NAME) or login[:_NAME].strip(),
        login=login,
        groups=find_groups(told, groups_claim) or (),
        auth_time=time if isinstance(time, int) and not isinstance(time, bool) and 0 <= time < 2**53 else None,
        has_factor=isinstance(methods, list) and any(isinstance(one, str) and one in _SECOND for one in methods),
    )


def find_groups(told: Mapping[str, Any], claim: str) -> tuple[str, ...] | None:
    """Return the groups of a claim; None if there is no such claim. A name with points is that of a claim, or of one in another."""
    value: Any = told.get(claim)
    if value is None and "." in claim:
        value = told
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return None
    listed = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(one for one in listed[:_MOST_GROUPS] if isinstance(one, str))


def _text(told: Mapping[str, Any], name: str, longest: int = 255) -> str:
    """Return a claim as a line of text; "" if it is none."""
    value = told.get(name)
    printable = "".join(c for c in value if c.isprintable()).strip() if isinstance(value, str) else ""
    return remove_invisible(printable[:longest])  # which a name or a login may not contain
