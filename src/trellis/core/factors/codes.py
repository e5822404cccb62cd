"""Codes that people type: of an authenticator app (TOTP, RFC 6238), and recovery codes."""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final

from trellis.core.factors.keys import format_secret

_STEP: Final = 30  # seconds
_DRIFT: Final = 1  # steps by which the clock of a telephone may differ
_CLOCKS_DIFFER: Final = 2  # steps, at most, between two machines
_RECOVERY_CODES: Final = 10
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"  # none of which is taken for another
_GROUPS: Final = 6  # of four letters: 118 random bits, for which a plain hash is enough


def find_step(secret: bytes, code: str, now: str, after: int) -> int | None:
    """Return the step of time that a code belongs to, if it is now or one beside it, and later than `after`.

    An `after` that is to come is of a clock that was set back since, and does not count.
    """
    import pyotp  # noqa: PLC0415  # start-up time: for the first code

    app, typed = pyotp.TOTP(format_secret(secret), interval=_STEP), compact(code)
    current = int(datetime.fromisoformat(now).timestamp()) // _STEP
    later = after + 1 if after <= current + _DRIFT + _CLOCKS_DIFFER else 0
    steps = range(max(current - _DRIFT, later), current + _DRIFT + 1)
    fitting = [step for step in steps if hmac.compare_digest(app.at(step * _STEP).encode(), typed.encode("utf-8", "replace"))]
    return fitting[0] if fitting else None


def app_address(secret: bytes, login: str, community: str) -> str:
    """Return what the QR code says to an app: an otpauth address."""
    import pyotp  # noqa: PLC0415  # start-up time, as above

    return pyotp.TOTP(format_secret(secret), interval=_STEP).provisioning_uri(name=login, issuer_name=community)


def generate_recovery_codes() -> list[str]:
    """Generate recovery codes."""
    return ["-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(_GROUPS)) for _ in range(_RECOVERY_CODES)]


def hash_recovery_code(admin: int, code: str) -> str:
    """Return what the database keeps of a recovery code, however it is written."""
    return hashlib.sha256(f"recovery code of {admin}: {compact(code)}".encode("utf-8", "surrogatepass")).hexdigest()


def compact(code: str) -> str:
    """Return a code without what it is grouped by."""
    return re.sub(r"[\s-]+", "", code).casefold()
