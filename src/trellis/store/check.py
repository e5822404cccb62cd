"""The queries of `trellis check`, which read every node as it is stored, the trees, the counters and the event log.

The modules for siblings, deleted-id counts and the search index have their own checks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, NamedTuple

import orjson
import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import sqlite
from trellis.store.column_types import JSON
from trellis.store.engine import HasJsonMembers, IdIn, InOrder, IsJsonList, IsJsonObject, Row, Statement, Transaction
from trellis.store.nodes import COLUMNS
from trellis.store.tables import METADATA, events, keys, node_changes, nodes, proposals, sibling_blocks, webhooks
from trellis.store.webhooks import endpoints

LARGEST: Final = 2**60  # more than any number that is stored; sums of several such numbers still have 64 bits
_EVERY: Final = 1000  # rows, about, after which a statement that reads a whole table tells how far it is
_BATCH: Final = 100  # nodes to read at a time, with all their texts
_c = nodes.c
_KIND = _c.kind == bindparam("kind")


@dataclass(slots=True)
class StoredNode:
    """A node as it is stored. `fields` and `permissions` are None if they are not JSON objects."""

    id: int
    parent_id: int | None
    position: int
    name: str
    fields: dict[str, Any] | None
    permissions: dict[str, Any] | None
    created_at: str
    updated_at: str
    external_id: str | None
    managed_by: str | None
    name_key: str


_FOLLOWING = sa.select(*COLUMNS, _c.name_key).where(_KIND, _c.id > bindparam("after")).order_by(_c.id)
_NEXT_BATCH = Statement(_FOLLOWING.limit(bindparam("most", type_=sa.Integer)))


def read_batches(tx: Transaction, kind: str, after: int | None = None) -> Iterator[list[StoredNode]]:
    """Read the nodes of a kind in the order of their ids, all or those with higher ids than `after`, a hundred at a time.

    Each batch is read only when it is needed, so it includes the repairs made during the batches before it.
    """
    after = -(2**63) if after is None else after
    while rows := tx.fetch(_NEXT_BATCH, kind=kind, after=after, most=_BATCH):
        yield [_decode(row) for row in rows]
        after = rows[-1][0]


def _decode(row: Row) -> StoredNode:
    return StoredNode(*row[:4], *map(_decode_object, row[4:6]), *row[6:])


def _decode_object(column: Any) -> dict[str, Any] | None:
    value = _decode_json(column)
    return value if isinstance(value, dict) else None


def _decode_json(column: Any) -> Any:
    """Return the value of a JSON column, or the exception if it is not JSON."""
    try:
        return Transaction.decode(column)
    except orjson.JSONDecodeError as error:
        return error


@cache
def _counts(*, on_sqlite: bool) -> Statement:
    kind, highest = (_readable(_c.kind), _readable(sa.func.max(_c.id))) if on_sqlite else (_c.kind, sa.func.max(_c.id))
    return Statement(sa.select(kind, sa.func.count(), highest).group_by(_c.kind))


def count_rows(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Count the nodes of each kind and find the highest id: kind → (count, highest id).

    Kinds without nodes are omitted, and so are kinds that are not text. The highest id is not a number if one of the ids is not
    one.
    """
    return {kind: (count, highest) for kind, count, highest in tx.fetch(_counts(on_sqlite=tx.sqlite)) if isinstance(kind, str)}


# --- the trees ----------------------------------------------------------------------------------------------------


def _orphans() -> Statement:
    parent = nodes.alias()
    return Statement(
        sa.select(_c.id, _c.parent_id)
        .select_from(nodes.outerjoin(parent, sa.and_(parent.c.kind == _c.kind, parent.c.id == _c.parent_id)))
        .where(_KIND, _c.parent_id.is_not(None), parent.c.id.is_(None))
        .order_by(_c.id)
    )


def _unreachable() -> Statement:
    down = sa.select(_c.id).where(_KIND, _c.parent_id.is_(None)).cte("down", recursive=True)
    child = nodes.alias()
    is_child = sa.and_(child.c.kind == bindparam("kind"), child.c.parent_id == down.c.id)
    down = down.union_all(sa.select(child.c.id).select_from(InOrder(down, child)).where(is_child))
    # Both engines run EXCEPT once over both sets. For a join, SQLite would read all of one set for each row of the other.
    lost = sa.select(_c.id).where(_KIND).except_(sa.select(down.c.id))
    return Statement(sa.select(_c.id, _c.parent_id).where(_KIND, _c.id.in_(lost)).order_by(_c.id))


def _deepest() -> Statement:
    levels = bindparam("levels", type_=sa.Integer)
    # Few, compared with all nodes. Found once: for each node, PostgreSQL would look through all versions of rows in an index.
    of_any = sa.select(_c.parent_id).where(_KIND, _c.parent_id.is_not(None)).distinct()
    inner = sa.select(of_any.cte("parents").prefix_with("MATERIALIZED").c.parent_id)
    top = sa.select(_c.id, sa.literal(1).label("level")).where(_KIND, _c.parent_id.is_(None), _c.id.in_(inner))
    down, child = top.cte("down", recursive=True), nodes.alias()
    is_child = sa.and_(child.c.kind == bindparam("kind"), child.c.parent_id == down.c.id)
    down = down.union_all(
        sa.select(child.c.id, down.c.level + 1)
        .select_from(InOrder(down, child))
        .where(is_child, down.c.level < levels, child.c.id.in_(inner))
    )
    return Statement(sa.select(down.c.id).where(down.c.level == levels).order_by(down.c.id))


_ORPHANS, _UNREACHABLE, _DEEPEST = _orphans(), _unreachable(), _deepest()
_NESTED = Statement(sa.select(_c.id, _c.parent_id).where(_KIND, _c.parent_id.is_not(None)).order_by(_c.id))


def find_orphans(tx: Transaction, kind: str) -> list[tuple[int, int]]:
    """Find the nodes whose parent does not exist: pairs of the node's id and the parent's id."""
    return [(row[0], row[1]) for row in tx.fetch(_ORPHANS, kind=kind)]


def find_unreachable(tx: Transaction, kind: str) -> dict[int, int]:
    """Find the nodes that cannot be reached from the top level, such as those in a cycle: node's id → parent's id."""
    return {row[0]: row[1] for row in tx.fetch(_UNREACHABLE, kind=kind)}


def find_deepest(tx: Transaction, kind: str, levels: int) -> list[int]:
    """Find the nodes on level `levels` (the top level is 1) that have children: their ids."""
    return [row[0] for row in tx.fetch(_DEEPEST, kind=kind, levels=levels)]


def find_nested(tx: Transaction, kind: str) -> list[tuple[int, int]]:
    """Find the nodes that have a parent: pairs of the node's id and the parent's id."""
    return [(row[0], row[1]) for row in tx.fetch(_NESTED, kind=kind)]


_CHILDREN = Statement(sa.select(_c.id, _c.parent_id).where(_KIND, IdIn(_c.parent_id, "parents")).order_by(_c.id))


def find_children(tx: Transaction, kind: str, parents: Sequence[int]) -> list[tuple[int, int]]:
    """Find the children of these nodes: pairs of the child's id and the parent's id."""
    return [(row[0], row[1]) for row in tx.fetch(_CHILDREN, kind=kind, parents=tx.id_list(list(parents)))] if parents else []


# --- events, keys and the file ------------------------------------------------------------------------------------


_HIGHEST_KEY = Statement(sa.select(sa.func.coalesce(sa.func.max(keys.c.id), 0)))
_LAST_EVENT = Statement(sa.select(sa.func.coalesce(sa.func.max(events.c.seq), 0)))


def find_highest_key(tx: Transaction) -> int:
    """Return the highest id of a key; 0 if there are no keys."""
    return int(tx.fetch(_HIGHEST_KEY)[0][0])


def find_last_event(tx: Transaction) -> int:
    """Return the sequence number of the newest event; 0 if there are no events."""
    return int(tx.fetch(_LAST_EVENT)[0][0])


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_object_of_objects(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


def _is_maker(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and value.keys() >= set(endpoints.MAKER))


_DOCUMENTS: Final = {  # columns with JSON, and what it must be
    keys: {"grants": _is_list_of_texts, "addresses": _is_list_of_texts, "bounds": _is_object_of_objects},
    webhooks: {"events": _is_list_of_texts, "maker": _is_maker},
}


class UnreadableValue(NamedTuple):
    """A value that its column cannot have. `kind` is the kind of a node or a block; `id` is None for tables without ids."""

    table: str
    kind: str | None
    id: int | None
    column: str


class _Scan(NamedTuple):
    """A statement that reads a whole table. It returns id, kind, and for each of the columns `names` whether its value is wrong."""

    table: sa.Table
    names: tuple[str, ...]
    statement: Statement

    def run(self, tx: Transaction, progress: Callable[[int], None]) -> Iterator[tuple[Any, Any, list[str]]]:
        """Yield id and kind of each row with wrong values, and their columns. `progress` is told how many more rows were read."""
        for number, kind, *wrong in tx.stream(self.statement):
            if any(wrong):
                yield number, kind, [name for name, is_wrong in zip(self.names, wrong, strict=True) if is_wrong]
            else:
                progress(_EVERY)


def count_scanned(tx: Transaction) -> int:
    """Count the rows that `find_unreadable` and `find_wrong_json` read: those of a table once for each statement."""
    sizes = {table: tx.count(table) for table in _sort_tables()}
    return sum(sizes[scan.table] for scan in (*_list_scans(on_sqlite=tx.sqlite), *_list_json_scans(on_sqlite=tx.sqlite)))


def find_unreadable(tx: Transaction, progress: Callable[[int], None]) -> Iterator[UnreadableValue]:
    """Find values of another type than their column, numbers that are too large, and JSON of another shape in keys and webhooks.

    PostgreSQL stores no value of another type, but SQLite does: in a column of numbers, text written by hand stays text. SQLite
    also stores text that is not UTF-8.
    """
    broken = set[UnreadableValue]()
    for scan in _list_scans(on_sqlite=tx.sqlite):
        for number, kind, names in scan.run(tx, progress):
            is_known = isinstance(number, int) and abs(number) <= LARGEST
            for name in names:
                one = UnreadableValue(scan.table.name, kind if isinstance(kind, str) else None, number if is_known else None, name)
                broken |= {one} if scan.table in _DOCUMENTS else set()
                yield one
    for table, checks in _DOCUMENTS.items():
        for number, *values in tx.fetch(_documents(table, on_sqlite=tx.sqlite)):
            for (name, is_sound), value in zip(checks.items(), values, strict=True):
                one = UnreadableValue(table.name, None, number, name)
                if not is_sound(_decode_json(value)) and one not in broken:
                    yield one


def _list_scans(*, on_sqlite: bool) -> Iterator[_Scan]:
    for table in _sort_tables():
        scan = _wrong_values(table, on_sqlite=on_sqlite)
        yield from (scan,) if scan.names else ()
        yield from (_broken_texts(table),) if on_sqlite else ()


@cache
def _sort_tables() -> Sequence[sa.Table]:
    """Return all tables, sorted once: that takes longer than to read them where they have few rows."""
    return METADATA.sorted_tables


@cache
def _documents(table: sa.Table, *, on_sqlite: bool) -> Statement:
    columns = (_readable(table.c[name]) if on_sqlite else table.c[name] for name in _DOCUMENTS[table])
    return Statement(sa.select(table.c.id, *columns).order_by(table.c.id))


def find_wrong_json(tx: Transaction, progress: Callable[[int], None]) -> Iterator[UnreadableValue]:
    """Find JSON of another shape, or values that are no JSON, in columns that the check does not read, such as those of events.

    What reads such a value fails, but no other check does. PostgreSQL stores nothing that is no JSON.
    """
    for scan in _list_json_scans(on_sqlite=tx.sqlite):
        for number, _, names in scan.run(tx, progress):
            yield from (UnreadableValue(scan.table.name, None, number, name) for name in names)


def _list_json_scans(*, on_sqlite: bool) -> Iterator[_Scan]:
    for table in _sort_tables():
        # The check reads the first; the journal has nodes as they were, and forgets them soon.
        if table not in {nodes, node_changes, *_DOCUMENTS} and (scan := _wrong_json(table, on_sqlite=on_sqlite)).names:
            yield scan


@cache
def _wrong_json(table: sa.Table, *, on_sqlite: bool) -> _Scan:
    """Return the scan of a table's columns with JSON for values that are something else."""
    columns = [column for column in table.columns if isinstance(column.type, type(JSON))]
    wrong = [sa.and_(column.is_not(None), sa.not_(_SHAPES.get(column, IsJsonObject)(column))) for column in columns]
    if on_sqlite:  # text that is not UTF-8 is reported anyway
        wrong = [sa.and_(test, ~_is_broken(column)) for test, column in zip(wrong, columns, strict=True)]
    return _scan(table, [column.name for column in columns], wrong, sa.or_(sa.false(), *wrong), on_sqlite=on_sqlite)


_SHAPES: Final[Mapping[Any, Callable[[Any], sa.ColumnElement[bool]]]] = {
    events.c.changed: IsJsonList,
    events.c.touched: partial(IsJsonList, members={"resource": "text", "id": "integer", "how": "text"}),
} | dict.fromkeys(
    (events.c.actor, events.c.approved_by, proposals.c.closed_by),
    partial(HasJsonMembers, members={"type": "text", "name": "text"}),
)


@cache
def _wrong_values(table: sa.Table, *, on_sqlite: bool) -> _Scan:
    """Return the scan of a table's columns that can have wrong values."""
    tests = {column.name: _find_test(column, on_sqlite=on_sqlite) for column in table.columns}
    wrong = {name: test for name, test in tests.items() if test is not None}
    return _scan(table, [*wrong], [*wrong.values()], sa.or_(sa.false(), *wrong.values()), on_sqlite=on_sqlite)


@cache
def _broken_texts(table: sa.Table) -> _Scan:
    """Return the same for text that is not UTF-8, on SQLite. All texts of a row are tested at once."""
    texts = [column for column in table.columns if not isinstance(column.type, sa.Integer | sa.Boolean)]
    whole: sa.ColumnElement[Any] = sa.literal_column("''")
    for column in texts:
        whole = whole.op("|| ' ' ||")(sa.func.coalesce(column, sa.literal_column("''")))
    return _scan(table, [column.name for column in texts], [_is_broken(text) for text in texts], ~_is_utf8(whole), on_sqlite=True)


def _scan(
    table: sa.Table,
    names: Sequence[str],
    wrong: Sequence[sa.ColumnElement[bool]],
    is_any: sa.ColumnElement[bool],
    *,
    on_sqlite: bool,
) -> _Scan:
    """Build a scan that returns the rows of which `is_any` is true, and for progress each whose number is a multiple of _EVERY."""
    numbers = [column for column in table.primary_key.columns if isinstance(column.type, sa.Integer)][-1:]
    returned = sa.or_(is_any, *(column % sa.literal(_EVERY, sa.Integer) == sa.literal(0, sa.Integer) for column in numbers))
    return _Scan(table, (*names,), Statement(sa.select(*_name_row(table, on_sqlite=on_sqlite), *wrong).where(returned)))


def _name_row(table: sa.Table, *, on_sqlite: bool) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
    """Return the id of a row, if its table has ids, and the kind of a node or a block, as far as they can be read."""
    ids = [nodes.c.id] if table is nodes else [*table.primary_key.columns]
    number = ids[0] if len(ids) == 1 and isinstance(ids[0].type, sa.Integer) else sa.null()
    kind = table.c.kind if table in {nodes, sibling_blocks} else sa.null()
    return (_readable(number), _readable(kind)) if on_sqlite else (number, kind)


def _readable(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return a value, or NULL if it is text that is not UTF-8: a driver can read neither that text nor the rest of its row."""
    return sa.case((~_is_broken(value), value))


def _is_broken(value: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return sa.and_(sa.func.typeof(value) == "text", ~_is_utf8(value))


def _is_utf8(text: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return sa.func.is_utf8(sa.cast(text, sa.LargeBinary), type_=sa.Boolean)


def _find_test(column: sa.Column[Any], *, on_sqlite: bool) -> sa.ColumnElement[bool] | None:
    """Build the condition that a value is wrong; None if there is none. JSON that the check reads is validated there."""
    tests: list[sa.ColumnElement[bool]] = []
    if isinstance(column.type, sa.Integer):
        tests += column > sa.literal(LARGEST, sa.BigInteger), column < sa.literal(-LARGEST, sa.BigInteger)
    if on_sqlite and not isinstance(column.type, type(JSON)):
        wanted = "integer" if isinstance(column.type, sa.Integer | sa.Boolean) else "text"
        tests.append(sa.and_(column.is_not(None), sa.func.typeof(column) != wanted))
    return sa.or_(*tests) if tests else None


def _missing_events() -> Statement:
    next_seq = sa.func.lead(events.c.seq).over(order_by=events.c.seq)
    pairs = sa.select(events.c.seq.label("here"), next_seq.label("next")).subquery()
    ranges = sa.select(pairs.c.here + 1, pairs.c.next - 1).where(pairs.c.next != pairs.c.here + 1).order_by(pairs.c.here)
    return Statement(ranges.limit(bindparam("most", type_=sa.Integer)))


_MISSING_EVENTS = _missing_events()


def find_missing_events(tx: Transaction, most: int) -> list[tuple[int, int]]:
    """Find at most `most` gaps in the sequence numbers of the events: pairs of the first and the last missing number."""
    return [(row[0], row[1]) for row in tx.fetch(_MISSING_EVENTS, most=most)]


def find_library_bug(tx: Transaction) -> str | None:
    """Describe a known bug of the SQLite library in use and what to do about it; None if it has none, or on PostgreSQL."""
    return sqlite.describe_wal_reset_bug() if tx.sqlite else None


def check_file(tx: Transaction, most: int) -> list[str]:
    """Let SQLite check its file, and return at most `most` problems. PostgreSQL has its own checksums, so its list is empty."""
    if not tx.sqlite:
        return []
    # On a connection of its own: one that has read the search index before another connection rebuilt it would call it damaged.
    with closing(sqlite.connect(sqlite.find_file(tx.raw))) as connection:
        sqlite.call_often(connection, lambda: None)  # Ctrl-C ends a statement only while Python runs something
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({most})").fetchall()]
    return [] if found == ["ok"] else found
