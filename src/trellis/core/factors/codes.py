"""Codes that people type: those from an authenticator app (TOTP, RFC 6238), and recovery codes."""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final

from trellis.core.factors.secret import format_secret

_STEP: Final = 30  # seconds
_DRIFT: Final = 1  # steps by which the clock of a telephone may differ
_CLOCKS_DIFFER: Final = 2  # steps by which the clocks of two machines may differ
_RECOVERY_CODES: Final = 10
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # none of which is easily mistaken for another
_GROUPS: Final = 6  # of four letters: 118 random bits, for which a plain hash is enough


def find_time_step(secret: bytes, code: str, now: str, after: int) -> int | None:
    """Return the time step that a code belongs to, if it is the current one or one next to it, and later than `after`.

    If `after` lies in the future, the clock has been set back since, and `after` is ignored.
    """
    import pyotp  # noqa: PLC0415  # start-up time: for the first code

    app, typed = pyotp.TOTP(format_secret(secret), interval=_STEP), compact(code)
    current = int(datetime.fromisoformat(now).timestamp()) // _STEP
    later = after + 1 if after <= current + _DRIFT + _CLOCKS_DIFFER else 0
    steps = range(max(current - _DRIFT, later), current + _DRIFT + 1)
    fitting = [step for step in steps if hmac.compare_digest(app.at(step * _STEP).encode(), typed.encode("utf-8", "replace"))]
    return fitting[0] if fitting else None


def app_address(secret: bytes, login: str, community: str) -> str:
    """Return the content of the QR code for an app: an otpauth address."""
    import pyotp  # noqa: PLC0415  # start-up time, as above

    return pyotp.TOTP(format_secret(secret), interval=_STEP).provisioning_uri(name=login, issuer_name=community)


def generate_recovery_codes() -> list[str]:
    """Generate recovery codes."""
    return ["-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(_GROUPS)) for _ in range(_RECOVERY_CODES)]


def hash_recovery_code(admin: int, code: str) -> str:
    """Return the hash of a recovery code that the database stores, whichever way the code is written."""
    return hashlib.sha256(f"recovery code of {admin}: {compact(code)}".encode("utf-8", "surrogatepass")).hexdigest()


def compact(code: str) -> str:
    """Return a code without spaces and hyphens, and in lower case."""
    return re.sub(r"[\s-]+", "", code).casefold()
