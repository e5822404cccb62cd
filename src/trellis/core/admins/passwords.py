"""Passwords of administrators: judging how easy a new one is to guess, generating one, and checking one against its digest."""

import re
import secrets
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import Invalid
from trellis.core.passwords import SIGN_IN, Plain, hash_password, is_outdated, verify_password
from trellis.sentences import mark, say

SHORTEST: Final = 12  # characters of a password
LONGEST: Final = 255
_LONGEST_JUDGED: Final = 72  # characters; judging more takes too long
_LETTERLIKE: Final = "@({[<!|$+%"  # symbols that zxcvbn reads as letters, in every combination
_MOST_LETTERLIKE: Final = 3  # different ones that zxcvbn may read as letters; twice as many take seconds
_LEAST_SCORE: Final = 3  # zxcvbn's score for at least 10^8 guesses
_SHORTEST_WORD: Final = 3
_LEAST_REST: Final = 8  # characters besides the words of the context
_WARNINGS: Final = (  # of zxcvbn, each as part of a sentence
    mark("straight rows of keys are easy to guess"),
    mark("short keyboard patterns are easy to guess"),
    mark('repeats like "aaa" are easy to guess'),
    mark('repeats like "abcabcabc" are only slightly harder to guess than "abc"'),
    mark('sequences like "abc" or "6543" are easy to guess'),
    mark("recent years are easy to guess"),
    mark("dates are often easy to guess"),
    mark("this is a top-10 common password"),
    mark("this is a top-100 common password"),
    mark("this is a very common password"),
    mark("this is similar to a commonly used password"),
    mark("a word by itself is easy to guess"),
    mark("names and surnames by themselves are easy to guess"),
    mark("common names and surnames are easy to guess"),
)


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A new password for signing in. When an operation runs, the argon2id digest has taken its place."""

    widget: str = "new-password"

    def parse(self, raw: Any) -> Plain:
        if not isinstance(raw, str) or not SHORTEST <= len(raw) <= LONGEST:
            raise Invalid(say("must have {shortest} to {longest} characters.", shortest=SHORTEST, longest=LONGEST))
        if len(set(raw)) < 4:
            raise Invalid(say("is too simple: use at least four different characters."))
        return Plain(raw, SIGN_IN)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST, "format": "password"}


def find_weakness(password: str, *context: str) -> str:
    """Return why a password is easy to guess; "" if it is not. It may be common, or little more than a word of its context.

    The context is, for example, the name of its owner. Takes some milliseconds, and more to load zxcvbn's lists: never call it on
    an event loop.
    """
    from zxcvbn import zxcvbn  # noqa: PLC0415  # start-up time: its lists of common passwords are large

    words = {word for text in context for word in (text, *re.split(r"[\W_]+", text)) if len(word) >= _SHORTEST_WORD}
    rest = _compact(password)
    for word in sorted(map(_compact, words), key=len, reverse=True):
        rest = rest.replace(word, "") if word else rest
    if len(rest) < _LEAST_REST <= SHORTEST <= len(password) and rest != _compact(password):
        return say(
            "is little more than a name that everybody here knows. Choose words that have nothing to do with you or this community."
        )
    result = zxcvbn(_limit_letterlike(password[:_LONGEST_JUDGED]), user_inputs=sorted(words))
    if result["score"] >= _LEAST_SCORE:
        return ""
    warning = str(result["feedback"]["warning"])
    if not warning:
        return say("is easy to guess. Use four or more words that do not belong together.")
    why = warning[:1].lower() + warning[1:].rstrip(".")
    why = say(why) if why in _WARNINGS else why
    return say("is easy to guess ({why}). Use four or more words that do not belong together.", why=why)


def _limit_letterlike(password: str) -> str:
    """Return a password in which `~` replaces the symbols that zxcvbn reads as letters, except the first few different ones."""
    different = dict.fromkeys(one for one in password if one in _LETTERLIKE)
    return password.translate(dict.fromkeys(map(ord, list(different)[_MOST_LETTERLIKE:]), "~"))


def find_breach(password: str, breached: Container[str] | None) -> str:
    """Return why a password is refused: it is known from a breach, or the list of breached ones cannot be read. Otherwise ""."""
    try:
        is_known = breached is not None and password in breached
    except OSError:
        return say("cannot be checked against known breaches: the list that TRELLIS_BREACHED_PASSWORDS names cannot be read.")
    return say("is known from a breach of another service. Choose one that you have not used anywhere.") if is_known else ""


def _compact(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def password_matches(digest: str | None, password: str) -> bool:
    """Return whether a password matches a digest. Takes just as long if there is no digest: about 50 ms, and 64 MiB."""
    return verify_password(digest, password, SIGN_IN)


def renew_digest(digest: str, password: str) -> str | None:
    """Return a new digest of a password that matches its digest, if that is outdated; otherwise None."""
    return hash_password(password, SIGN_IN) if is_outdated(digest, SIGN_IN) else None


def generate_password() -> str:
    """Generate a password of 148 random bits: 30 letters and digits that are hard to confuse, in groups of five."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(6))
