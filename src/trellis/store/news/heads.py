"""The numbers of the newest rows of the logs, and the records or keys of the rows after a position."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import attempts, deliveries, events, request_shapes, requests


class Heads(NamedTuple):
    """The numbers of the newest rows of the logs; 0 if a log is empty."""

    event: int = 0
    request: int = 0
    delivery: int = 0
    attempt: int = 0


_NEWEST = Statement(
    sa.select(
        *(
            sa.select(sa.func.coalesce(sa.func.max(column), 0)).scalar_subquery()
            for column in (events.c.seq, requests.c.id, deliveries.c.id, attempts.c.id)
        )
    )
)
_EVENTS = Statement(
    sa.select(events.c.resource, events.c.resource_id)
    .where(events.c.seq > bindparam("after"))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
)
_KEYS = Statement(
    sa.select(sa.func.nullif(request_shapes.c.key_id, 0))
    .select_from(requests.join(request_shapes, request_shapes.c.id == requests.c.shape))
    .where(requests.c.id > bindparam("after"))
    .order_by(requests.c.id)
    .limit(bindparam("most"))
)


def find_heads(tx: Transaction) -> Heads:
    """Return the numbers of the newest rows, with one statement."""
    return Heads(*(int(number) for number in tx.fetch(_NEWEST)[0]))


def find_events(tx: Transaction, after: int, most: int) -> list[tuple[str, int | None]]:
    """Return the resource and the record id of each event after `after`, oldest first, at most `most`."""
    return [(resource, number) for resource, number in tx.fetch(_EVENTS, after=after, most=most)]


def find_keys_of_requests(tx: Transaction, after: int, most: int) -> list[int | None]:
    """Return the key of each logged request after `after`, oldest first, at most `most`. None if a request has no key."""
    return [key for (key,) in tx.fetch(_KEYS, after=after, most=most)]
