"""Signing in, one's own account, the administrators and the first run."""

from typing import Final

from trellis.admin.admins import (
    account,
    administrators,
    appearance,
    confirm_password,
    first_run,
    invitations,
    roles,
    sessions,
    sign_in,
    sign_on,
)
from trellis.admin.admins.appearance import use_language
from trellis.admin.admins.confirm_password import ask_for_password
from trellis.admin.admins.resuming import find_panel_path, show_kept_form
from trellis.admin.admins.sessions import device_name
from trellis.admin.admins.sign_in import ask_to_sign_in
from trellis.admin.page import Page

PAGES: Final[tuple[Page, ...]] = (
    *first_run.PAGES,
    *sign_in.PAGES,
    *sign_on.PAGES,
    *confirm_password.PAGES,
    *administrators.PAGES,
    *invitations.PAGES,
    *roles.PAGES,
    *sessions.PAGES,
    *account.PAGES,
    *appearance.PAGES,
)
