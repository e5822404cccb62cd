"""API keys: list, form, grants and one key's page."""

from typing import Final

from trellis.admin.keys import activity, index, key, many, presets, trying, ungrant
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.index import add_key_names, fetch_key_names
from trellis.admin.keys.key import RESTORE_OF_KEY, MissingGrant, build_selection_form, find_refused_grant
from trellis.admin.keys.recipes import RECIPES
from trellis.admin.page import Page

PAGES: Final[tuple[Page, ...]] = (
    *index.PAGES,
    *presets.PAGES,
    *key.PAGES,
    *ungrant.PAGES,
    *trying.PAGES,
    *activity.PAGES,
    *many.PAGES,
)
