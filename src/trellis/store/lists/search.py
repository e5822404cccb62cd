"""The index for searching in names: by the sequences of three characters that they hold.

It is brought up to date a moment after the names change, off the request's path, so that no write waits for it. What it
gives are candidates: the caller compares their names. Those that changed since are among them.

SQLite: a full-text index (FTS5, trigram) over `node_names`. PostgreSQL: an index (GIN) over what trellis_grams makes of them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Statement, Transaction
from trellis.store.lists.changes import reach
from trellis.store.tables import changes, counters, names

INDEXED_FIELDS: Final = frozenset({"type"})  # fields of kinds that nodes_by_type, or an index like it, leads to in order
NAME: Final = "search"  # of the counter that holds the last change that the index knows of; -1: it knows nothing
_GRAM: Final = 3
_MOST_GRAMS: Final = 12  # of a text, that are asked for
_PROBE: Final = 100  # occurrences by which it is seen how frequent a sequence is
_RARE: Final = 10
_j, _n = changes.c, names.c

_SEEN = sa.select(counters.c.last).where(counters.c.name == NAME).scalar_subquery()
_WAITING: Final = Statement(
    sa.select(_j.id).where(_j.kind == bindparam("kind"), _j.n > _SEEN).distinct().limit(bindparam("limit", type_=sa.Integer))
)
_PROBED: Final = Statement(sa.text("SELECT rowid FROM search_index WHERE search_index MATCH :match LIMIT :limit"))
_MATCHED: Final = Statement(
    sa.text(  # CROSS JOIN: SQLite would rather look at every name
        "SELECT node_names.id, instr(node_names.name_key, :text) "
        "FROM search_index CROSS JOIN node_names ON node_names.doc = search_index.rowid "
        "WHERE search_index MATCH :match AND node_names.kind = :kind LIMIT :limit"
    )
)
_HOLDING: Final = Statement(
    sa.text(
        "SELECT id, strpos(name_key, :text) FROM node_names "
        "WHERE kind = :kind AND trellis_grams(name_key) @> CAST(:grams AS TEXT[]) LIMIT :limit"
    )
)


def candidates(tx: Transaction, kind: str, text: str, most: int) -> list[int] | None:
    """Give the ids of all nodes whose folded names hold a text, and of some more; None if too many might, or no index can tell."""
    if len(text) < _GRAM or "\0" in text or not able(tx):
        return None
    waiting = [row[0] for row in tx.rows(_WAITING, kind=kind, limit=most + 1)]
    if len(waiting) > most:
        return None
    found = (_matched if tx.sqlite else _holding)(tx, kind, text, most + 1)
    return None if len(found) > most else sorted({node for node, at in found if at}.union(waiting))


def able(tx: Transaction) -> bool:
    """Say whether there is an index that can be used: not if SQLite was built without FTS5, here or when it was made."""
    if (searchable := tx.memory.searchable) is None:
        searchable = True
        if tx.sqlite:
            searchable = False
            with suppress(tx.connection.dialect.dbapi.OperationalError):  # type: ignore[union-attr]  # SQLite's is there
                tx.raw.execute("SELECT rowid FROM search_index WHERE search_index MATCH '\"abc\"' LIMIT 1").fetchall()
                searchable = True
        tx.memory.searchable = searchable
    return searchable


def _grams(text: str) -> list[str]:
    """Give the sequences of three characters of a text; of a long one some, evenly spread."""
    every = list(dict.fromkeys(text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)))
    return every[:: -(-len(every) // _MOST_GRAMS)]


def _matched(tx: Transaction, kind: str, text: str, limit: int) -> list[Row]:
    """Ask for the rarest sequences only: running through the long list of a frequent one costs more than it spares."""
    rare: list[tuple[int, str]] = []  # how often each occurs
    dense: list[tuple[float, str]] = []  # how near to each other the first are of those that occur more often
    for gram in _grams(text):
        match = '"' + gram.replace('"', '""') + '"'
        probed = tx.rows(_PROBED, match=match, limit=_PROBE)
        if len(probed) == _PROBE:
            dense.append((1 / probed[-1][0], match))
            continue
        rare.append((len(probed), match))
        if len(probed) <= _RARE:
            break
    least = min(dense)[0] if dense else 0
    asked = [min(rare)[1]] if rare else [match for density, match in dense if density <= 4 * least]
    return tx.rows(_MATCHED, match=" ".join(asked), text=text, kind=kind, limit=limit)


def _holding(tx: Transaction, kind: str, text: str, limit: int) -> list[Row]:
    return tx.rows(_HOLDING, kind=kind, grams=_grams(text), text=text, limit=limit)


# --- catching up --------------------------------------------------------------------------------------------------

_PAIRS: Final = {
    True: "(SELECT json_extract(value, '$[0]') AS kind, json_extract(value, '$[1]') AS id FROM json_each(:pairs)) AS pair",
    False: "(SELECT value ->> 0 AS kind, CAST(value ->> 1 AS BIGINT) AS id "
    "FROM jsonb_array_elements(CAST(:pairs AS JSONB))) AS pair",
}


def _for_both(sql: str) -> Mapping[bool, Statement]:
    """Write a statement about some pairs of kind and id for both engines."""
    cross = {True: "CROSS JOIN", False: "JOIN"}
    return {sqlite: Statement(sa.text(sql.format(pairs=_PAIRS[sqlite], join=cross[sqlite]))) for sqlite in (True, False)}


_STALE: Final = _for_both(
    "SELECT node_names.doc FROM {pairs} {join} node_names ON node_names.kind = pair.kind AND node_names.id = pair.id "
    "LEFT JOIN nodes ON nodes.kind = pair.kind AND nodes.id = pair.id "
    "WHERE nodes.name_key IS NULL OR nodes.name_key <> node_names.name_key"
)
_FRESH: Final = _for_both(
    "INSERT INTO node_names (kind, id, name_key) SELECT nodes.kind, nodes.id, nodes.name_key "
    "FROM {pairs} {join} nodes ON nodes.kind = pair.kind AND nodes.id = pair.id "
    "LEFT JOIN node_names ON node_names.kind = pair.kind AND node_names.id = pair.id WHERE node_names.doc IS NULL"
)
_UNINDEX: Final = Statement(
    sa.text(
        "INSERT INTO search_index (search_index, rowid, name_key) "
        "SELECT 'delete', doc, name_key FROM node_names WHERE doc IN (SELECT value FROM json_each(:docs))"
    )
)
_INDEX: Final = Statement(
    sa.text("INSERT INTO search_index (rowid, name_key) SELECT doc, name_key FROM node_names WHERE doc > :behind")
)


def seen(tx: Transaction) -> int:
    """Give the last change that the index knows of; -1 if it has to be built anew."""
    found: int | None = tx.connection.execute(sa.select(counters.c.last).where(counters.c.name == NAME)).scalar()
    return -1 if found is None else found


def behind(tx: Transaction) -> bool:
    """Say whether there is anything to catch up with."""
    return seen(tx) != (reach(tx).last if able(tx) else -1)


def done(tx: Transaction) -> int:
    """Give the last change that the index needs no more."""
    last = seen(tx)
    return reach(tx).last if last < 0 else last


def catch_up(tx: Transaction, most: int = 250) -> int:
    """Work the next changes into the index, at most `most`; give their number."""
    if not able(tx):
        _note(tx, -1)
        return 0
    if (last := seen(tx)) < 0:
        rebuild(tx)
        return 0
    batch = tx.connection.execute(sa.select(_j.n, _j.kind, _j.id).where(_j.n > last).order_by(_j.n).limit(most)).all()
    if batch:
        pairs = tx.encoded(list(dict.fromkeys((kind, node) for _, kind, node in batch)))
        _rename(tx, pairs)
        _note(tx, batch[-1][0])
    return len(batch)


def _rename(tx: Transaction, pairs: str) -> None:
    stale = [row[0] for row in tx.rows(_STALE[tx.sqlite], pairs=pairs)]
    if stale:
        if tx.sqlite:
            tx.change(_UNINDEX, docs=tx.encoded(stale))
        tx.connection.execute(sa.delete(names).where(_n.doc.in_(stale)))
    top = tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(_n.doc), 0))).scalar_one()
    if tx.change(_FRESH[tx.sqlite], pairs=pairs) and tx.sqlite:
        tx.change(_INDEX, behind=top)


def _note(tx: Transaction, last: int) -> None:
    if not tx.connection.execute(sa.update(counters).where(counters.c.name == NAME).values(last=last)).rowcount:
        tx.connection.execute(sa.insert(counters).values(name=NAME, last=last, total=0))


def rebuild(tx: Transaction) -> None:
    """Build the index anew."""
    tx.connection.execute(sa.delete(names))
    tx.raw.execute("INSERT INTO node_names (kind, id, name_key) SELECT kind, id, name_key FROM nodes")
    if tx.sqlite:
        tx.raw.execute("INSERT INTO search_index (search_index) VALUES ('rebuild')")
    _note(tx, reach(tx).last)


# --- the check ----------------------------------------------------------------------------------------------------

_SAMPLE: Final = 200
_WRONG: Final = """
    SELECT count(*) FROM {one} AS one LEFT JOIN {other} AS other ON other.kind = one.kind AND other.id = one.id
    WHERE (other.name_key IS NULL{or_other}) AND NOT EXISTS (
        SELECT 1 FROM node_changes WHERE n > {seen} AND node_changes.kind = one.kind AND node_changes.id = one.id)
"""


def wrong(tx: Transaction) -> int:
    """Count the names of which the index holds something else, apart from those that it has yet to learn."""
    if not able(tx) or (last := seen(tx)) < 0:
        return 0
    ways = (
        {"one": "nodes", "other": "node_names", "or_other": " OR other.name_key <> one.name_key"},
        {"one": "node_names", "other": "nodes", "or_other": ""},
    )
    found = sum(tx.raw.execute(_WRONG.format(**way, seen=last)).fetchone()[0] for way in ways)
    return int(found) or _lost(tx)


def _lost(tx: Transaction) -> int:
    """Count the names of a sample that SQLite's index does not find."""
    if not tx.sqlite:
        return 0
    top = tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(_n.doc), 0))).scalar_one()
    step = max(1, top // _SAMPLE)
    sample = tx.connection.execute(sa.select(_n.doc, _n.name_key).where(_n.doc.in_(range(1, top + 1, step)[:_SAMPLE]))).all()
    probe = "SELECT count(*) FROM search_index WHERE search_index MATCH ? AND rowid = ?"
    lost = 0
    for doc, name in sample:
        if len(name) >= _GRAM:
            match = " ".join('"' + gram.replace('"', '""') + '"' for gram in _grams(name))
            lost += not tx.raw.execute(probe, (match, doc)).fetchone()[0]
    return lost
