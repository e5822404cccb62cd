"""The first run: the one-time link to the page that creates the first administrator, and the demonstration administrator."""

from datetime import timedelta
from typing import Final

from trellis.core.actor import TERMINAL
from trellis.core.admins.passwords import generate_password
from trellis.core.admins.tokens import generate_token, hash_token
from trellis.core.fields import shift_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store.admins import administrators

_LINK_LIFETIME: Final = timedelta(hours=1)
_DEMO_LOGIN: Final = "admin"


def has_administrators(gate: Gate) -> bool:
    """Return whether there is an administrator, disabled or not."""
    with gate.store.reading() as tx:
        return administrators.count(tx) > 0


def create_first_run_token(gate: Gate) -> str | None:
    """Create the token of a one-time link that is valid for an hour or until the next one; None if there is an administrator.

    Waits for the writer.
    """
    if has_administrators(gate):
        return None
    token, expires_at = generate_token(), shift_timestamp(gate.now(), _LINK_LIFETIME)
    gate.store.write(lambda tx: administrators.put_link(tx, hash_token(token), expires_at), quiet=True).result()
    return token


def is_first_run_token(gate: Gate, token: str) -> bool:
    """Return whether a one-time link can still be used."""
    with gate.store.reading() as tx:
        return not administrators.count(tx) and administrators.is_valid_link(tx, hash_token(token), gate.now())


def create_demo_administrator(gate: Gate) -> tuple[str, str] | None:
    """Create an administrator with a generated password; return login and password, or None if there is an administrator."""
    if has_administrators(gate):
        return None
    password = generate_password()
    raw = {"name": "Demo administrator", "login": _DEMO_LOGIN, "password": password, "mustChangePassword": False}
    gate.run(Call("admins.create", TERMINAL, raw))
    return _DEMO_LOGIN, password
