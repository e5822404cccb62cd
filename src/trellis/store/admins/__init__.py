"""Administrators, their sessions and sign-in attempts."""

from trellis.store.admins import administrators, attempts, invitations, sessions
from trellis.store.admins.administrators import Administrator, fold_login
from trellis.store.admins.attempts import Attempts
from trellis.store.admins.sessions import Session

__all__ = ["Administrator", "Attempts", "Session", "administrators", "attempts", "fold_login", "invitations", "sessions"]
