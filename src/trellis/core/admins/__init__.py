"""Administrators: their operations, and what does not pass the gate: passwords, sessions, sign-in attempts, one-time links."""

from trellis.core.admins.crud import LOGIN, NAME, PASSWORD, operations
from trellis.core.admins.first_run import (
    create_demo_administrator,
    create_first_run_token,
    has_administrators,
    is_first_run_token,
)
from trellis.core.admins.passwords import NewPassword, generate_password
from trellis.core.admins.sessions import (
    SignedIn,
    begin_session,
    confirm_session,
    end_other_sessions,
    end_session,
    end_session_of,
    find_session,
    record_session_use,
)
from trellis.core.admins.sign_in import REMEMBERED_FOR, Credentials, check_password, clear_attempts, count_attempt, remember_browser
from trellis.core.admins.tokens import generate_token

__all__ = [
    "LOGIN",
    "NAME",
    "PASSWORD",
    "REMEMBERED_FOR",
    "Credentials",
    "NewPassword",
    "SignedIn",
    "begin_session",
    "check_password",
    "clear_attempts",
    "confirm_session",
    "count_attempt",
    "create_demo_administrator",
    "create_first_run_token",
    "end_other_sessions",
    "end_session",
    "end_session_of",
    "find_session",
    "generate_password",
    "generate_token",
    "has_administrators",
    "is_first_run_token",
    "operations",
    "record_session_use",
    "remember_browser",
]
