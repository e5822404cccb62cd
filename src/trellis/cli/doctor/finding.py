"""The findings of `trellis doctor`."""

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How bad a finding is: `wrong` loses data or does not work, `doubtful` deserves a look."""

    GOOD = "good"
    DOUBTFUL = "doubtful"
    WRONG = "wrong"


class Finding(NamedTuple):
    """One finding: what was checked, its state, what was found, and what to do about it."""

    what: str
    state: State
    told: str
    action: str = ""


def good(what: str, told: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(what, State.GOOD, told)


def doubtful(what: str, told: str, action: str) -> Finding:
    """Return a finding that somebody should look at."""
    return Finding(what, State.DOUBTFUL, told, action)


def wrong(what: str, told: str, action: str) -> Finding:
    """Return a finding that has to be put right."""
    return Finding(what, State.WRONG, told, action)
