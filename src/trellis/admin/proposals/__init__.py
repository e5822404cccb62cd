"""Proposals: the calls that keys have proposed; approving and rejecting them, one by one or several at once."""

from trellis.admin.proposals.index import PAGES as LIST
from trellis.admin.proposals.proposal import PAGES as ONE

PAGES = (*LIST, *ONE)
