"""Administrators, their identities at OpenID providers, invitations, sessions and sign-in attempts."""

from trellis.store.admins import administrators, attempts, identities, invitations, sessions
from trellis.store.admins.administrators import NO_PASSWORD, Administrator, fold_login
from trellis.store.admins.attempts import Attempts
from trellis.store.admins.identities import Identity
from trellis.store.admins.sessions import Session
