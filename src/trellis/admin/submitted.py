"""The fields that a browser sends: of a form, or the filters in an address."""

from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from trellis.admin.times import EXACT, Clock
from trellis.core.keys import redact_keys
from trellis.errors import Refused
from trellis.sentences import say

CSRF: Final = "csrf"  # the name of the token in forms; scripts send it as X-CSRF-Token
_TIMES: Final = ("from", "to", "since", "failedSince")  # the filters that are times
_MAX_CARRIED: Final = 262_144  # characters of a form that are carried through signing in
_MAX_PAIRS: Final = 750  # of a form that are carried; each comes back as two
_LONGEST_REASON: Final = 500  # characters


def tidy_reason(typed: str) -> str:
    """Return why something is done as events keep it: one line, without keys and without characters that nobody sees."""
    line = "".join(one for one in " ".join(typed.split()) if one.isprintable())
    return redact_keys(line)[:_LONGEST_REASON]


class StaleForm(Refused):
    """A form whose token does not match its session. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "PRECONDITION_FAILED",
            say(
                "This form belongs to an earlier session because it was open for so long. Nothing has been changed yet. What you "
                "typed is still here: check it and send it again."
            ),
        )


class Submitted(Mapping[str, str]):
    """The fields of a form that was sent: each name with its last value; `all` returns every value of a name."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), size: int = 0) -> None:
        self.pairs = tuple(pairs)
        self.size = size  # bytes, as it was sent
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

    def unknown(self, known: Collection[str]) -> list[str]:
        """Return the names that are neither known nor the panel's own."""
        return [name for name in self if name not in known and name != CSRF and not name.startswith("_")]

    @classmethod
    def filters(cls, query: Mapping[str, str], clock: Clock) -> "Submitted":
        """Read the filters in an address, without the empty ones; times as moments, so that they mean the same in every zone."""
        pairs = ((name, value.strip()) for name, value in query.items() if not name.startswith("_"))
        typed = clock.reading(query)
        return cls(
            (name, typed.read_typed(value, query.get(EXACT + name, "")) if name in _TIMES else value)
            for name, value in pairs
            if value
        )

    def digest(self, path: str) -> str:
        """Return a digest of a form sent to a path: the same for the same values."""
        sent = sorted(pair for pair in self.pairs if pair[0] != CSRF)
        return blake2b(orjson.dumps([path, sent]), digest_size=16).hexdigest()

    def carried(self) -> tuple[tuple[str, str], ...]:
        """Return what may be carried through another page: everything but tokens and passwords, unless it is too much."""
        kept = tuple((n, v) for n, v in self.pairs if n != CSRF and "password" not in n.lower())
        return kept if len(kept) <= _MAX_PAIRS and sum(len(n) + len(v) for n, v in kept) <= _MAX_CARRIED else ()
