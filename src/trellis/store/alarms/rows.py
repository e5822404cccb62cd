"""The rows of alarms. Each row marks an event; the event contains the details."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, alarms

_c = alarms.c
_MOST_UNREAD: Final = 100  # alarms to count
_BATCH: Final = 1000
_KEPT: Final = 64  # statements, one for each set of resources that an administrator may read
_Admin = int | sa.BindParameter[Any]


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm: the number of its event, its name, and the record that the event changed.

    `own` is the administrator who caused it, who need not be told.
    """

    event: int
    name: str
    resource: str
    resource_id: int | None
    at: str
    own: int | None = None


def insert(tx: Transaction, alarm: Alarm) -> None:
    """Insert an alarm."""
    tx.connection.execute(sa.insert(alarms).values(**asdict(alarm)))


def read_newest(
    tx: Transaction,
    resources: Collection[str] | None,
    admin: int | None,
    limit: int,
    between: tuple[int, int | None],
    *,
    only_news: bool = False,
    names: Collection[str] | None = None,
) -> list[Alarm]:
    """Read alarms, newest first: alarms about some resources (None: all), and alarms about the administrator `admin`.

    Their events come after the first event of `between` and before the second (None: no limit). `only_news` leaves out alarms that
    `admin` caused and need not be told; `names` are the names of the alarms to read (None: all).
    """
    after, before = between
    more = [_c.event < before] if before is not None else []
    more += [_c.name.in_(names)] if names is not None else []
    more += [_is_news_to(admin)] if only_news and admin is not None else []
    chosen = sa.select(*alarms.columns).where(*more, _c.event > after, _is_for(resources, admin))
    found = chosen.order_by(_c.event.desc()).limit(limit)
    return [Alarm(*row) for row in tx.connection.execute(found)]


def find_between(tx: Transaction, first: int, last: int) -> dict[int, str]:
    """Return the names of the alarms for the events from `first` to `last`, both included: event → name."""
    return {row[0]: row[1] for row in tx.connection.execute(sa.select(_c.event, _c.name).where(_c.event.between(first, last)))}


def count_unread(tx: Transaction, resources: Collection[str] | None, admin: int) -> int:
    """Count the unread alarms of an administrator about some resources (None: all) or about themselves, up to a hundred."""
    return int(tx.fetch(_unread(None if resources is None else tuple(sorted(resources))), admin=admin)[0][0])


@lru_cache(_KEPT)
def _unread(resources: tuple[str, ...] | None) -> Statement:
    """Return the statement that counts unread alarms. It is cached, since every page of the panel runs it."""
    admin = sa.bindparam("admin", type_=sa.Integer())
    wanted = (_c.event > _read_by(admin), _is_news_to(admin), _is_for(resources, admin))
    return Statement(sa.select(sa.func.count()).select_from(sa.select(_c.event).where(*wanted).limit(_MOST_UNREAD).subquery()))


def find_read(tx: Transaction, admin: int) -> int:
    """Return the event of the newest alarm that an administrator has read; 0 if there is none."""
    return int(tx.connection.execute(sa.select(_read_by(admin))).scalar_one())


def mark_read(tx: Transaction, admin: int, event: int) -> None:
    """Record that an administrator has read the alarms up to an event, at most up to the newest alarm that exists."""
    newest = tx.connection.execute(sa.select(sa.func.max(_c.event))).scalar() or 0
    mine = sa.and_(administrators.c.id == admin, administrators.c.alarms_read < min(event, newest))
    tx.connection.execute(sa.update(administrators).where(mine).values(alarms_read=min(event, newest)))


def purge(tx: Transaction, before: str) -> int:
    """Delete up to 1,000 alarms that are older than a timestamp, and return their number."""
    old = sa.select(_c.event).where(_c.at < before).limit(_BATCH)
    return tx.connection.execute(sa.delete(alarms).where(_c.event.in_(old))).rowcount


def _read_by(admin: _Admin) -> sa.ColumnElement[int]:
    read = sa.select(administrators.c.alarms_read).where(administrators.c.id == admin).scalar_subquery()
    return sa.func.coalesce(read, 0)


def _is_news_to(admin: _Admin) -> sa.ColumnElement[bool]:
    return sa.or_(_c.own.is_(None), _c.own != admin)


def _is_for(resources: Collection[str] | None, admin: _Admin | None) -> sa.ColumnElement[bool]:
    if resources is None:
        return sa.true()
    some = [sa.literal(one) for one in sorted(resources)]  # a prepared statement accepts no list
    return sa.or_(_c.resource.in_(some), sa.and_(_c.resource == "admins", _c.resource_id == admin))
