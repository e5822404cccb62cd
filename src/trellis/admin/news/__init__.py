"""The address from which pages get news, so that they can stay up to date."""

from trellis.admin.news.pages import PAGES
