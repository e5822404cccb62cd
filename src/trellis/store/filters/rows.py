"""The rows of saved filters."""

from dataclasses import asdict, dataclass, fields
from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import administrators, saved_filters

_c = saved_filters.c
_MOST: Final = 1000  # filters to read at once


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """A named filter of a list, stored as the query string of the list's URL. `admin_id` is 0 for the terminal."""

    id: int
    admin_id: int
    list: str
    name: str
    query: str
    shared: bool
    created_at: str
    updated_at: str


_COLUMNS: Final = tuple(_c[field.name] for field in fields(SavedFilter))


def find(tx: Transaction, number: int) -> SavedFilter | None:
    """Read one saved filter."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == number)).first()
    return SavedFilter(*row) if row else None


def read_all(tx: Transaction, admin: int | None) -> list[tuple[SavedFilter, str | None]]:
    """Read the filters of an administrator, then the filters that others share, each part by name (`admin` None: all filters).

    Each filter comes with the name of its administrator, or None.
    """
    is_own = _c.admin_id == (admin or 0)
    mine = sa.true() if admin is None else sa.or_(is_own, _c.shared)
    both = saved_filters.outerjoin(administrators, administrators.c.id == _c.admin_id)
    chosen = sa.select(*_COLUMNS, administrators.c.name).select_from(both).where(mine)
    rows = tx.connection.execute(chosen.order_by(sa.case((is_own, 0), else_=1), _c.id).limit(_MOST))
    found = [(SavedFilter(*row[:-1]), row[-1]) for row in rows]
    found.sort(key=lambda one: (one[0].admin_id != (admin or 0), one[0].name.casefold()))  # databases sort text differently
    return found


def insert(tx: Transaction, saved: SavedFilter) -> None:
    """Insert a saved filter."""
    tx.connection.execute(sa.insert(saved_filters).values(**asdict(saved)))


def update(tx: Transaction, saved: SavedFilter) -> None:
    """Write a changed filter."""
    tx.connection.execute(sa.update(saved_filters).where(_c.id == saved.id).values(**asdict(saved)))


def delete(tx: Transaction, number: int) -> None:
    """Delete a saved filter."""
    tx.connection.execute(sa.delete(saved_filters).where(_c.id == number))
