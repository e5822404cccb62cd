"""The request log."""

from trellis.admin.requests.pages import PAGES
