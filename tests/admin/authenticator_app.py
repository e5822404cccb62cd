"""An authenticator app that an administrator has set up."""

from datetime import datetime
from typing import Any

import pyotp

from tests.fixture_types import Run
from trellis.core.factors import set_up_app
from trellis.core.gate import Gate


def add_app(run: Run, gate: Gate, admin: int, login: str, **more: Any) -> pyotp.TOTP:
    """Set up an app for an administrator; return it. `more` are other members of the call, such as the session that does it."""
    setup = set_up_app(gate, admin, login)
    app = pyotp.TOTP(setup.secret)
    run("admins.set_authenticator", admin, salt=setup.salt, code=app.at(datetime.fromisoformat(gate.now())), **more)
    return app
