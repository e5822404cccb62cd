"""Administrators, their sessions and sign-in attempts."""

from trellis.store.admins import administrators, sessions
from trellis.store.admins.administrators import Administrator
from trellis.store.admins.sessions import Attempts, Session

__all__ = ["Administrator", "Attempts", "Session", "administrators", "sessions"]
