"""How often keys use each operation, and how many requests they make, from the counts by day, by quarter of an hour and by hour."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import IdIn, Statement, Transaction
from trellis.store.tables import key_quarters, key_uses, request_hours

_REFUSED: Final = (401, 403, 429)
_u, _q = key_uses.c, key_quarters.c


class OperationUse(NamedTuple):
    """How often and when a key last used an operation, and how often and when it was last refused (401, 403, 429)."""

    operation: str
    times: int
    last_at: str | None
    refused: int
    refused_at: str | None


_BY_QUARTER: Final = Statement(
    sa.select(_q.key_id, _q.quarter, _q.digit, _q.times).where(IdIn(_q.key_id, "keys"), _q.quarter >= sa.bindparam("since"))
)
Count = tuple[int, str, int, int]


def read_quarters(tx: Transaction, keys: Sequence[int], since: str) -> list[Count]:
    """Read the numbers of requests of some keys since a timestamp: (key, quarter of an hour, first digit of status, number)."""
    rows = tx.fetch(_BY_QUARTER, keys=tx.id_list(sorted(keys)), since=since[:16])
    return [(int(key), quarter, int(digit), int(times)) for key, quarter, digit, times in rows]


def count_uses(tx: Transaction, key: int) -> list[OperationUse]:
    """Count a key's requests for each operation, separating uses from refusals."""
    refused = _u.status.in_(_REFUSED)
    statement = (
        sa.select(
            _u.operation,
            sa.func.sum(sa.case((refused, 0), else_=_u.times)),
            sa.func.max(sa.case((refused, None), else_=_u.last_at)),
            sa.func.sum(sa.case((refused, _u.times), else_=0)),
            sa.func.max(sa.case((refused, _u.last_at), else_=None)),
        )
        .where(_u.key_id == key, _u.operation != "")
        .group_by(_u.operation)
        .order_by(_u.operation)
    )
    return [
        OperationUse(name, int(times), last, int(no), no_at) for name, times, last, no, no_at in tx.connection.execute(statement)
    ]


def count_by_hour(tx: Transaction, since: str) -> dict[tuple[str, int], int]:
    """Return the number of requests in each hour since a timestamp: (hour as `2026-01-31T09`, first digit of status) → number."""
    statement = sa.select(request_hours).where(request_hours.c.hour >= since[:13])
    return {(hour, int(digit)): int(times) for hour, digit, times in tx.connection.execute(statement)}
