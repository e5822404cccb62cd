"""News by topic: it reports that something has happened, but not what. Whoever receives it reads that with an operation.

The topics: `events`, `events/forums` (a kind or another resource), `events/keys/7` (a record), `requests`, `requests/7` (with a
key), `deliveries`; and `*` for anything, if there is too much to look at or the position is from another database. An actor gets
the topics that their role may read, and does not learn the length of other logs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.store.engine import Transaction
from trellis.store.news import Heads, find_events, find_heads, find_keys_of_requests

Position = Heads
ANYTHING: Final = "*"
_MOST_ROWS: Final = 500  # rows of a log that are looked at
_MOST_TOPICS: Final = 40
_MANY_REQUESTS: Final = "requests/*"  # with so many requests that not all keys were looked at
_LOGS: Final[Mapping[str, tuple[str, ...]]] = {"requests": ("request",), "deliveries": ("delivery", "attempt")}  # their positions
_POSITION: Final = re.compile(r"\d{1,18}(?:\.\d{1,18}){3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class News:
    """The topics in which something has happened, up to a position. There may be none."""

    position: Position
    topics: frozenset[str] = frozenset()


def parse_position(text: str) -> Position | None:
    """Parse a formatted position; return None for any other text."""
    return Position(*map(int, text.split("."))) if _POSITION.fullmatch(text) else None


def format_position(position: Position) -> str:
    """Format a position: its numbers, separated by dots."""
    return ".".join(map(str, position))


def read_position(gate: Gate, actor: Actor | None = None) -> Position:
    """Return the position after everything that has happened, limited to the logs that an actor may read if one is given."""
    return _limit_position(gate.store.read_single(find_heads), actor)


def read_news(gate: Gate, since: Position, actor: Actor | None = None) -> News:
    """Return what has happened since a position, limited to what an actor may read if one is given."""
    since = _limit_position(since, actor)
    with gate.store.reading() as tx:
        now = _limit_position(find_heads(tx), actor)
        news = News(now, _find_topics(tx, since, now) if now != since else frozenset())
    return news if actor is None else limit_news(news, actor)


def limit_news(news: News, actor: Actor) -> News:
    """Return the part of news that an actor may read."""
    topics = {topic for topic in news.topics if topic == ANYTHING or _is_seen(topic, actor)}
    topics |= {"events"} if any(topic.startswith("events/") for topic in topics) else set()
    is_much = _MANY_REQUESTS in topics or len(topics) > _MOST_TOPICS
    return News(_limit_position(news.position, actor), frozenset((ANYTHING,) if is_much else topics))


def _is_seen(topic: str, actor: Actor) -> bool:
    log, *about = topic.split("/")
    return actor.sees(about[0] if log == "events" else log)


def _limit_position(position: Position, actor: Actor | None) -> Position:
    """Return a position with 0 for the logs that an actor may not read."""
    unseen = [name for log, names in _LOGS.items() if actor is not None and not actor.sees(log) for name in names]
    return position._replace(**dict.fromkeys(unseen, 0))


def _find_topics(tx: Transaction, since: Position, now: Position) -> frozenset[str]:
    if any(then > newest for then, newest in zip(since, now, strict=True)):
        return frozenset((ANYTHING,))
    topics: set[str] = set()
    if now.event > since.event:
        found = find_events(tx, since.event, _MOST_ROWS)
        topics |= {f"events/{resource}" for resource, _ in found}
        topics |= {f"events/{resource}/{number}" for resource, number in found if number is not None}
        topics |= {ANYTHING} if len(found) == _MOST_ROWS else set()
    if now.request > since.request:
        keys = find_keys_of_requests(tx, since.request, _MOST_ROWS)
        topics |= {"requests"} | {f"requests/{key}" for key in keys if key is not None}
        topics |= {_MANY_REQUESTS} if len(keys) == _MOST_ROWS else set()
    if now.delivery > since.delivery or now.attempt > since.attempt:
        topics.add("deliveries")
    return frozenset(topics)
