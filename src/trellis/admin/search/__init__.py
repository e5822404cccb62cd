"""The search for everything: records, saved filters, the pages of the menu, and actions."""

from trellis.admin.search.pages import PAGES
