"""The pages of the panel. A new page is one line in its module's PAGES; a new module is one line here."""

from typing import Final

from trellis.admin.page import Page
from trellis.admin.pages import account, administrators, entrance, events, first_run, key, keys, overview, requests

PAGES: Final[tuple[Page, ...]] = (
    *first_run.PAGES,
    *entrance.PAGES,
    *overview.PAGES,
    *keys.PAGES,
    *key.PAGES,
    *requests.PAGES,
    *events.PAGES,
    *administrators.PAGES,
    *account.PAGES,
)
