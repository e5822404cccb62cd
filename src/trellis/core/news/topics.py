"""News by topic. It says that something has happened, and nothing of what: whoever is told reads that by an operation.

The topics: `events`, `events/forums` (a kind or another resource), `events/keys/7` (a record), `requests`, `requests/7` (with a
key), `deliveries`; and `*`, anything, where there is too much to look at or the position is of another database.
"""

import re
from dataclasses import dataclass
from typing import Final

from trellis.core.gate import Gate
from trellis.store.engine import Transaction
from trellis.store.news import Heads, find_events, find_heads, find_keys_of_requests

Position = Heads
ANYTHING: Final = "*"
_MOST_ROWS: Final = 500  # of a log that are looked at
_MOST_TOPICS: Final = 40
_POSITION: Final = re.compile(r"\d{1,18}(?:\.\d{1,18}){3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class News:
    """The topics of what has happened up to a position. There may be none."""

    position: Position
    topics: frozenset[str] = frozenset()


def parse_position(text: str) -> Position | None:
    """Read a position that was formatted; None stands for anything else."""
    return Position(*map(int, text.split("."))) if _POSITION.fullmatch(text) else None


def format_position(position: Position) -> str:
    """Write a position: its numbers with points between."""
    return ".".join(map(str, position))


def read_position(gate: Gate) -> Position:
    """Return the position of everything that has happened."""
    return gate.store.read_single(find_heads)


def read_news(gate: Gate, since: Position) -> News:
    """Return what has happened since a position."""
    with gate.store.reading() as tx:
        now = find_heads(tx)
        return News(now, _find_topics(tx, since, now) if now != since else frozenset())


def _find_topics(tx: Transaction, since: Position, now: Position) -> frozenset[str]:
    if any(then > newest for then, newest in zip(since, now, strict=True)):
        return frozenset((ANYTHING,))
    topics: set[str] = set()
    if now.event > since.event:
        found = find_events(tx, since.event, _MOST_ROWS)
        topics |= {"events"} | {f"events/{resource}" for resource, _ in found}
        topics |= {f"events/{resource}/{number}" for resource, number in found if number is not None}
        topics |= {ANYTHING} if len(found) == _MOST_ROWS else set()
    if now.request > since.request:
        keys = find_keys_of_requests(tx, since.request, _MOST_ROWS)
        topics |= {"requests"} | {f"requests/{key}" for key in keys if key is not None}
        topics |= {ANYTHING} if len(keys) == _MOST_ROWS else set()
    if now.delivery > since.delivery or now.attempt > since.attempt:
        topics.add("deliveries")
    return frozenset(topics) if len(topics) <= _MOST_TOPICS else frozenset((ANYTHING,))
