"""The errors of a provider. Their texts are for people, and contain nothing secret.

The provider's own sentences are never shown: anybody can write them.
"""

import re
from typing import Final

from trellis.sentences import say

_DENIED: Final = frozenset(("access_denied", "login_required", "interaction_required", "consent_required"))


class ProviderError(Exception):
    """Something went wrong; `told` is the sentence for people."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


class ProviderUnavailable(ProviderError):
    """The provider does not answer, or not as OpenID Connect requires: nobody can sign in there at the moment."""


class ProviderRefused(ProviderError):
    """The provider did not let somebody in, or its answer about them cannot be trusted."""


def explain_refusal(error: str) -> str:
    """Return a sentence for the error with which the provider sent somebody back."""
    if error in _DENIED:
        return say("You cancelled, or it denied you access.")
    return say("It returned the error {code}.", code=error) if _is_code(error) else say("It returned an error without a code.")


def explain_refused_code(error: object) -> str:
    """Return a sentence for the error with which the provider answered an authorization code."""
    if _is_code(error):
        return say("It rejected the authorization code ({code}).", code=error)
    return say("It rejected the authorization code without an error code.")


def _is_code(error: object) -> bool:
    return isinstance(error, str) and re.fullmatch(r"[a-z_]{1,40}", error) is not None
