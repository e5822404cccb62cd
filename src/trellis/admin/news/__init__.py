"""What pages that are kept up to date are told."""

from trellis.admin.news.pages import PAGES

__all__ = ["PAGES"]
