"""What people are told of an error that a provider names. Its own sentences are shown to nobody: anybody can write them."""

import re
from typing import Final

_DENIED: Final = frozenset(("access_denied", "login_required", "interaction_required", "consent_required"))


def find_word(error: object) -> str:
    """Return the code of an error, if it is one."""
    return error if isinstance(error, str) and re.fullmatch(r"[a-z_]{1,40}", error) else "for a reason that it does not name"


def explain_refusal(error: str) -> str:
    """Return what an error means with which somebody came back."""
    return "It did not let you in, or you turned back." if error in _DENIED else f"It refused ({find_word(error)})."
