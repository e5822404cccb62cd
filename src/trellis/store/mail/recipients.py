"""Recipients of mail: administrators with an address, and the newest alarm that has been processed for each."""

from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import administrators, alarms

_c = administrators.c
_NEWEST: Final = sa.select(sa.func.coalesce(sa.func.max(alarms.c.event), 0)).scalar_subquery()


class Recipient(NamedTuple):
    """An administrator as a recipient of mail. `alarms` are the names of the alarms they want, separated by commas, or `*`.

    `language` is the language that they have chosen for the panel, or "".
    """

    id: int
    name: str
    email: str | None
    alarms: str
    alarms_mailed: int
    role: str
    kinds: str | None
    language: str
    has_password: bool
    is_disabled: bool


_COLUMNS: Final = (
    *(_c[name] for name in ("id", "name", "email", "mailed_alarms", "alarms_mailed", "role", "kinds", "language")),
    _c.digest != "",
    _c.disabled_at.is_not(None),
)
_BEHIND = Statement(
    sa.select(*_COLUMNS, _NEWEST)
    .where(_c.email.is_not(None), _c.disabled_at.is_(None), _c.digest != "", _c.alarms_mailed < _NEWEST)
    .order_by(_c.id)
)


def find_recipient(tx: Transaction, admin: int) -> Recipient | None:
    """Read an administrator as a recipient of mail."""
    row = tx.connection.execute(sa.select(*_COLUMNS).where(_c.id == admin)).first()
    return Recipient(*row) if row else None


def list_behind(tx: Transaction) -> list[tuple[Recipient, int]]:
    """Read the administrators with an address for whom alarms are to be processed, each with the event of the newest alarm."""
    return [(Recipient(*row[:-1]), row[-1]) for row in tx.fetch(_BEHIND)]


def advance(tx: Transaction, admin: int, event: int) -> None:
    """Record up to which event the alarms have been processed for an administrator."""
    tx.connection.execute(sa.update(administrators).where(_c.id == admin).values(alarms_mailed=event))


def skip_alarms(tx: Transaction, admin: int) -> None:
    """Record all existing alarms as processed for an administrator, so that none of them is mailed."""
    tx.connection.execute(sa.update(administrators).where(_c.id == admin).values(alarms_mailed=_NEWEST))
