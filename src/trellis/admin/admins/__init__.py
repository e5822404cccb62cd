"""Signing in, one's own account, the administrators and the first run."""

from typing import Final

from trellis.admin.admins import account, administrators, first_run, sign_in
from trellis.admin.page import Page

__all__ = ["PAGES"]

PAGES: Final[tuple[Page, ...]] = (*first_run.PAGES, *sign_in.PAGES, *administrators.PAGES, *account.PAGES)
