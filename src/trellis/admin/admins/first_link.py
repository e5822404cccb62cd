"""What the terminal does for the first run: the one-time link, and the administrator of a demonstration."""

import secrets
from typing import Final

from trellis.core import admins as rules
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store.admins import administrators

_LOGIN: Final = "admin"


def first_run_link(gate: Gate, base_url: str) -> str | None:
    """Make a one-time link, good for an hour, to the page that makes the first administrator; None if there is one.

    `base_url` is where the service is reached, such as http://127.0.0.1:8000. Waits for the writer.
    """
    if _somebody(gate):
        return None
    token, now = secrets.token_urlsafe(32), gate.now()
    digest, until = rules.hash_token(token), rules.link_expiry(now)
    gate.store.write(lambda tx: administrators.add_link(tx, digest, until, now), quiet=True).result()
    return f"{base_url.rstrip('/')}/admin/first-run/{token}"


def demo_administrator(gate: Gate) -> tuple[str, str] | None:
    """Make an administrator with a made-up password; give login and password, or None if there is an administrator."""
    if _somebody(gate):
        return None
    password = rules.generate_password()
    gate.run(Call("admins.create", TERMINAL, {"name": "Demo administrator", "login": _LOGIN, "password": password}))
    return _LOGIN, password


def _somebody(gate: Gate) -> bool:
    with gate.store.reading() as tx:
        return administrators.count(tx) > 0
