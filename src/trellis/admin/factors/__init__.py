"""An administrator's own second factor: passkeys, the authenticator app, recovery codes."""

from typing import Final

from trellis.admin.factors import authenticator, index, passkeys
from trellis.admin.page import Page

PAGES: Final[tuple[Page, ...]] = (*index.PAGES, *passkeys.PAGES, *authenticator.PAGES)
