"""Signing in, one's own account, the administrators and the first run."""

from typing import Final

from trellis.admin.admins import account, administrators, first_run, sign_in
from trellis.admin.admins.first_run import first_run_link
from trellis.admin.page import Page

__all__ = ["PAGES", "first_run_link"]

PAGES: Final[tuple[Page, ...]] = (*first_run.PAGES, *sign_in.PAGES, *administrators.PAGES, *account.PAGES)
