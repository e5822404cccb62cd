"""What became of nodes lately: the journal that triggers keep, from which what was known a moment ago is brought up to date."""

from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Statement, Transaction
from trellis.store.lists.filters import where
from trellis.store.tables import changes, nodes

KEPT: Final = 20_000  # changes that stay after they were worked in
_MOST: Final = 2_000  # changes that are looked at rather than counting anew
_c, _j = nodes.c, changes.c


class Reach(NamedTuple):
    """The numbers of the first and the last change that are kept; 0 where none is."""

    first: int
    last: int


_REACH: Final = Statement(
    sa.select(
        sa.select(sa.func.min(_j.n)).scalar_subquery(),
        sa.select(sa.func.max(_j.n)).scalar_subquery(),
    )
)


def reach(tx: Transaction) -> Reach:
    """Say how far the journal reaches."""
    ((first, last),) = tx.rows(_REACH)
    return Reach(first or 0, last or 0)


class Delta(NamedTuple):
    """The rows that no longer answer a question, as they were, and those that do now: (id, name, made, changed)."""

    last: int  # the change up to which that is so
    out: list[Row]
    into: list[Row]


_SINCE = sa.and_(_j.kind == bindparam("kind"), _j.n > bindparam("seen"))


@cache
def _out(names: tuple[str, ...]) -> Statement:
    first = sa.select(sa.func.min(_j.n)).where(_SINCE).group_by(_j.id)
    return Statement(
        sa.select(_j.id, _j.name_key, _j.created_at, _j.updated_at).where(
            _j.n.in_(first), _j.name_key.is_not(None), where(names, changes)
        )
    )


@cache
def _into(names: tuple[str, ...]) -> Statement:
    touched = _c.id.in_(sa.select(_j.id).where(_SINCE))
    return Statement(sa.select(_c.id, _c.name_key, _c.created_at, _c.updated_at).where(touched, where(names, nodes, aside=True)))


def delta(tx: Transaction, names: tuple[str, ...], params: dict[str, Any], seen: int) -> Delta | None:
    """Compare the nodes that answer a question with those that did after change `seen`.

    None if that cannot be told: the journal does not reach so far back, too much has changed, or `seen` is still to come.
    """
    first, last = reach(tx)
    if not first - 1 <= seen <= last or last - seen > _MOST:
        return None
    if seen == last:
        return Delta(last, [], [])
    return Delta(last, tx.rows(_out(names), **params, seen=seen), tx.rows(_into(names), **params, seen=seen))


def trim(tx: Transaction, done: int, most: int = 5000) -> int:
    """Delete the oldest changes of those up to `done`, at most `most`, and none of the last ones; give their number."""
    first, last = reach(tx)
    bound = min(done, last - KEPT, first + most - 1)
    return tx.connection.execute(sa.delete(changes).where(_j.n <= bound)).rowcount if bound >= first > 0 else 0
