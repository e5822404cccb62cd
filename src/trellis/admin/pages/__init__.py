"""The pages of the panel. A new page is one line in its module's PAGES; a new module is one line here."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.pages import account, administrators, entrance, first_run, overview

PAGES: Final[tuple[Page, ...]] = (
    *first_run.PAGES,
    *entrance.PAGES,
    *overview.PAGES,
    *administrators.PAGES,
    *account.PAGES,
)
