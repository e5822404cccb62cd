"""The fields that a browser sends: of a form, or the filters in an address."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from trellis.admin.times import EXACT, Clock
from trellis.core.fields import isolate, parse_whole_number
from trellis.errors import Refused
from trellis.sentences import say

ACTION: Final = "_action"  # the name of a form's buttons, whose values name what is to be done; Enter sends none
RETYPE: Final = "_retype."  # precedes the name of a typed password, which is neither carried nor sent back
_SUBMISSION: Final = "_submission"  # the name of the token in forms that must not take effect twice
CSRF: Final = "csrf"  # the name of the token in forms; scripts send it as X-CSRF-Token
LOADED: Final = "_loaded"  # the name of two fields that enclose a long form: "begin" and "end"
_TIMES: Final = ("from", "to", "since", "failedSince")  # the filters that are times
MAX_FORM: Final = 1_048_576  # bytes of a form, as it was sent: of a larger one nothing is carried, and of a visitor nothing kept
_MAX_CARRIED: Final = 262_144  # bytes of a form that are carried through signing in; each may take three when encoded
_OURS: Final = ("_", "carried-", "next", "replay")  # begin the names of fields in which nobody types
_MAX_PAGE: Final = 1_000_000  # further pages are treated as this one
_MAX_PAIRS: Final = 750  # fields of a form that are carried; each comes back as two


def parse_page_number(query: Mapping[str, str]) -> int:
    """Return the number of the page of a list that an address asks for; 1 if it is not a number."""
    return min(max(1, parse_whole_number(query.get("page", "")) or 1), _MAX_PAGE)


def find_last_page(query: Mapping[str, str], shown: Mapping[str, Any]) -> str | None:
    """Return the query of a list's last page if the page asked for is beyond it because rows are gone; None otherwise."""
    last = shown["totalPages"]
    if shown["page"] <= last:
        return None
    kept = {name: value for name, value in query.items() if name != "page"} | ({"page": str(last)} if last > 1 else {})
    return f"?{urlencode(kept)}" if kept else ""


class StaleForm(Refused):
    """A form whose token does not match its session. Nothing was changed.

    `why` names whoever is signed in now: somebody else may have signed in in another tab since the form was opened. `typed` says
    whether there is something in the form that would be lost otherwise.
    """

    def __init__(self, name: str | None, *, typed: bool) -> None:
        self.why = (
            say("This form was open for too long.")
            if name is None
            else say("{name} has signed in since this form was opened.", name=isolate(name))
        )
        detail = (
            say("{why} Nothing has been changed yet. What you typed is still here: check it and send it again.", why=self.why)
            if typed
            else say("{why} Nothing has been changed yet. Send it again.", why=self.why)
        )
        super().__init__("PRECONDITION_FAILED", detail)


class SentBefore(Refused):
    """A form that already took effect: with other values, or by creating what is gone. Its page shows it again with a new token."""

    def __init__(self, *, is_gone: bool) -> None:
        super().__init__(
            "IDEMPOTENCY_KEY_REUSED",
            say("This form was already sent. What it created has been deleted since. Send it again to create it once more.")
            if is_gone
            else say("This form was already sent with other values, and took effect. Send it again to do this as well."),
        )


def find_status(refused: Refused) -> int:
    """Return the status of a page that shows a refused form again: that of the refusal, or 409 if that is about a header.

    412 and 422 are about If-Match and Idempotency-Key, which no form has: what it is about has changed, or it took effect before.
    A batch has the status of what was refused in it.
    """
    if isinstance(inner := refused.facts.get("problem"), Refused):
        return find_status(inner)
    return 409 if refused.status in {412, 422} else refused.status


class Submitted(Mapping[str, str]):
    """The fields of a form that was sent: each name with its last value; `all` returns every value of a name.

    `is_used` is set once the form turns out to have taken effect with other values, so that its token cannot be used again.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), size: int = 0) -> None:
        self.pairs = tuple(pairs)
        self.size = size  # bytes, as it was sent
        self.is_used = False
        self._last = dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __iter__(self) -> Any:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def all(self, name: str) -> tuple[str, ...]:
        """Return every value that was sent under a name."""
        return tuple(value for sent, value in self.pairs if sent == name)

    @property
    def submission(self) -> str:
        """The token of a form that must not take effect twice; "" for other forms. Raises Refused if no form of ours had it."""
        sent = self.get(_SUBMISSION, "")[:200]
        if not sent.isprintable():
            raise Refused("MALFORMED_REQUEST", say("The form could not be read. Go back and send it again."))
        return sent

    def unknown(self, known: Collection[str]) -> list[str]:
        """Return the names that are neither known nor the panel's own."""
        return [name for name in self if name not in known and name != CSRF and not name.startswith("_")]

    @classmethod
    def filters(cls, query: Mapping[str, str], clock: Clock) -> "Submitted":
        """Read the filters in an address, except empty ones. Times become UTC timestamps, which mean the same in every zone."""
        pairs = ((name, value.strip()) for name, value in query.items() if not name.startswith("_"))
        typed = clock.reading(query)
        return cls(
            (name, typed.read_typed(value, query.get(EXACT + name, "")) if name in _TIMES else value)
            for name, value in pairs
            if value
        )

    def digest(self, path: str, secret: str) -> str:
        """Return a digest of a form sent to a path: the same for the same values.

        The button counts for nothing: Enter in a field presses another one than somebody who then presses the button.

        It depends on the `secret` of a session: it is stored, and nobody who reads it there must be able to try passwords with it.
        """
        sent = sorted(pair for pair in self.pairs if pair[0] not in {CSRF, ACTION})
        key = blake2b(secret.encode()).digest()
        return blake2b(orjson.dumps([path, sent]), key=key, digest_size=16).hexdigest()

    def carried(self) -> tuple[tuple[str, str], ...]:
        """Return the fields to carry through another page: all but the CSRF token and passwords; none if they are too large.

        For a password, only the fact that there was one is carried: its form asks for it again.
        """
        return () if self.is_too_large_to_carry else self._find_typed()

    @property
    def is_too_large_to_carry(self) -> bool:
        """Whether a form is too large to be carried, such as one with a long document."""
        kept = self._find_typed()
        is_large = self.size > MAX_FORM or len(kept) > _MAX_PAIRS
        return is_large or sum(len(f"{n}{v}".encode(errors="replace")) for n, v in kept) > _MAX_CARRIED

    def _find_typed(self) -> tuple[tuple[str, str], ...]:
        passwords = {n for n in self if "password" in n.lower() and not n.startswith("_")}
        kept = tuple((n, v) for n, v in self.pairs if n != CSRF and n not in passwords)
        return (*kept, *((RETYPE + n, "1") for n in sorted(passwords) if self[n]))


def show_typed(carried: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what somebody has typed or chosen, for a page to show.

    Left out are what is empty, what only the panel reads, and the 0 of a box that is ticked: its 1 comes next.
    """
    typed = [(name, value) for name, value in carried if value and not name.startswith(_OURS)]
    return [pair for pair, after in zip_longest(typed, typed[1:]) if pair[1] != "0" or after is None or after[0] != pair[0]]
