"""The rows of API keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Contains, ListedId, Statement, Transaction
from trellis.store.tables import keys
from trellis.timestamps import MOST_AHEAD, shift_timestamp

_c = keys.c


@dataclass(slots=True)
class Key:
    """An API key as it is stored, with SHA-256 digests of its secrets in hex, never a secret. Timestamps are ISO 8601, UTC."""

    id: int
    public: str
    name: str
    digest: str
    dialect: str
    created_at: str
    updated_at: str
    owner: str = ""
    note: str = ""
    old_digest: str | None = None
    old_until: str | None = None
    grants: list[str] = field(default_factory=list)
    bounds: dict[str, dict[str, Any]] = field(default_factory=dict)
    expires_at: str | None = None
    addresses: list[str] = field(default_factory=list)
    rate_limit: int | None = None
    per_day: int | None = None
    log_requests: bool = True
    preset: str | None = None
    paused_at: str | None = None
    paused_because: str | None = None
    revoked_at: str | None = None
    revoked_because: str | None = None
    last_used_at: str | None = field(default=None, compare=False)  # bookkeeping, not a change of the key


_COLUMNS = tuple(_c[f.name] for f in fields(Key))
_BY_PUBLIC = Statement(sa.select(*_COLUMNS).where(_c.public == bindparam("public")))
_BY_ID = Statement(sa.select(*_COLUMNS).where(_c.id == bindparam("key")))


def find_by_public_part(tx: Transaction, public: str) -> Key | None:
    """Read a key by its public part."""
    return _decode(tx.fetch(_BY_PUBLIC, public=public))


def find(tx: Transaction, key: int) -> Key | None:
    """Read one key."""
    return _decode(tx.fetch(_BY_ID, key=key))


def find_for_write(tx: Transaction, key: int) -> Key | None:
    """Read one key in a write. Writes that share a commit read it only once, unless one of them changes keys."""
    if tx.changes_keys:
        return find(tx, key)
    if (known := tx.read_keys.get(key)) is None:
        known = tx.read_keys[key] = find(tx, key)
    return known


def _decode(rows: Sequence[Sequence[Any]]) -> Key | None:
    if not rows:
        return None
    key = Key(*rows[0])
    key.grants, key.addresses = Transaction.decode(key.grants), Transaction.decode(key.addresses)
    key.bounds = Transaction.decode(key.bounds)
    key.log_requests = bool(key.log_requests)
    return key


def read_page(
    tx: Transaction, limit: int, offset: int, filters: Mapping[str, Any] | None = None, *, now: str = "", newest_first: bool = False
) -> tuple[int, list[Key]]:
    """Read a page of keys, including revoked ones; return the number of keys on all pages and the page.

    `filters` may contain search (a part of the name, of the owner or of the public part), state (as it is at `now`), preset,
    operation (a granted one), and ids.
    """
    conditions = _conditions(filters or {}, now)
    if search := (filters or {}).get("search"):
        conditions.append(ListedId(_c.id, "found", tx.id_list(_find_named(tx, search))))
    return _count_and_read(tx, conditions, (_c.id.desc() if newest_first else _c.id,), limit, offset)


def _conditions(filters: Mapping[str, Any], now: str) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if "ids" in filters:
        found.append(_c.id.in_(filters["ids"]))
    if state := filters.get("state"):
        ended = _c.expires_at <= now
        unexpired = sa.or_(_c.expires_at.is_(None), sa.not_(ended))
        living = {
            "expired": ended,
            "paused": sa.and_(_c.paused_at.is_not(None), unexpired),
            "active": sa.and_(_c.paused_at.is_(None), unexpired),
        }
        found.append(_c.revoked_at.is_not(None) if state == "revoked" else sa.and_(_c.revoked_at.is_(None), living[state]))
    if preset := filters.get("preset"):
        found.append(_c.preset == preset)
    if operation := filters.get("operation"):
        found.append(Contains(sa.cast(_c.grants, sa.Text), sa.literal(f'"{operation}"', sa.Text())))
    return found


def _find_named(tx: Transaction, search: str) -> list[int]:
    """Return the ids of the keys whose name, owner or public part contains a text, ignoring case.

    Case is folded here, as it is for the names of nodes, because SQLite folds only ASCII, and PostgreSQL depends on its locale.
    """
    text = search.casefold()
    public = text.removeprefix("trl_").partition("_")[0] if text.startswith("trl_") else text
    rows = tx.connection.execute(sa.select(_c.id, _c.name, _c.owner, _c.public))
    return [row[0] for row in rows if text in row[1].casefold() or text in row[2].casefold() or public in row[3].casefold()]


def count_active(tx: Transaction, now: str) -> int:
    """Count the keys that are neither expired, nor revoked, nor paused."""
    return tx.count(keys, *_conditions({"state": "active"}, now))


def find_expiring(tx: Transaction, now: str, until: str, limit: int, *, brief: tuple[str, str]) -> tuple[int, list[Key], int]:
    """Count the active keys that expire by a timestamp, and read the first `limit` of them to expire.

    Keys that were created after the first timestamp of `brief` and expire by the second are left out, and counted apart.
    """
    is_brief = sa.and_(_c.created_at > brief[0], _c.expires_at <= brief[1])
    expiring = [*_conditions({"state": "active"}, now), _c.expires_at <= until]
    count, found = _count_and_read(tx, [*expiring, sa.not_(is_brief)], (_c.expires_at, _c.id), limit)
    return count, found, tx.count(keys, *expiring, is_brief)


def find_unused(tx: Transaction, now: str, since: str, limit: int) -> tuple[int, list[Key]]:
    """Count the active keys created before a timestamp and not used since, and read the `limit` that are unused for longest."""
    used = sa.func.coalesce(_c.last_used_at, _c.created_at)
    return _count_and_read(tx, [*_conditions({"state": "active"}, now), used < since], (used, _c.id), limit)


def _count_and_read(
    tx: Transaction,
    conditions: Sequence[sa.ColumnElement[bool]],
    order: Iterable[sa.ColumnElement[Any]],
    limit: int,
    offset: int = 0,
) -> tuple[int, list[Key]]:
    rows = tx.connection.execute(sa.select(*_COLUMNS).where(*conditions).order_by(*order).limit(limit).offset(offset))
    return tx.count(keys, *conditions), [Key(*row) for row in rows]


def find_by_name(tx: Transaction, name: str) -> list[Key]:
    """Read at most ten keys that have a name and are not revoked."""
    found = sa.select(*_COLUMNS).where(_c.name == name, _c.revoked_at.is_(None)).order_by(_c.id).limit(10)
    return [Key(*row) for row in tx.connection.execute(found)]


def read_granted(tx: Transaction, operation: str | None, at_once: int) -> Iterator[Key]:
    """Read the unrevoked keys that are granted an operation (None: all unrevoked keys) by id, `at_once` with each statement."""
    granted = [] if operation is None else _conditions({"operation": operation}, "")
    last = 0
    while True:
        page = sa.select(*_COLUMNS).where(_c.id > last, _c.revoked_at.is_(None), *granted).order_by(_c.id).limit(at_once)
        found = [Key(*row) for row in tx.connection.execute(page)]
        yield from found
        if len(found) < at_once:
            return
        last = found[-1].id


def find_running(tx: Transaction, preset: str) -> list[int]:
    """Return the ids of the keys of a preset that are neither paused nor revoked, the oldest first."""
    chosen = sa.select(_c.id).where(_c.preset == preset, _c.paused_at.is_(None), _c.revoked_at.is_(None))
    return list(tx.connection.execute(chosen.order_by(_c.id)).scalars())


def insert(tx: Transaction, key: Key) -> None:
    """Insert a key."""
    tx.connection.execute(sa.insert(keys).values(**asdict(key)))


def update(tx: Transaction, key: Key) -> None:
    """Write a changed key, except its last use, which is bookkeeping. All processes drop the keys that they have cached."""
    tx.changes_keys = True
    tx.read_keys.clear()
    values: dict[str, Any] = asdict(key)
    del values["last_used_at"]
    tx.connection.execute(sa.update(keys).where(_c.id == key.id).values(**values))


_RECORD_USE = Statement(
    sa.update(keys)
    .where(
        _c.id == bindparam("key"),
        sa.or_(_c.last_used_at.is_(None), _c.last_used_at < bindparam("at"), _c.last_used_at > bindparam("ahead")),
    )
    .values(last_used_at=bindparam("at"))
)


def record_uses(tx: Transaction, uses: Iterable[tuple[int, str]]) -> None:
    """Record when keys were last used: pairs of id and timestamp.

    An older timestamp does not replace a newer one, unless that comes from a clock that was ahead.
    """
    for key, at in uses:
        tx.execute(_RECORD_USE, key=key, at=at, ahead=shift_timestamp(at, MOST_AHEAD))
