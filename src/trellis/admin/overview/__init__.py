"""The overview, and the check of the database."""

from trellis.admin.overview.pages import PAGES
