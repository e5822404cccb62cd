"""The search index: which names contain a text, found by their trigrams (sequences of three characters).

It is updated in the background shortly after the names change, so that no write waits for it. Its results are therefore
candidates, which include every node that has changed since the last update; the caller compares their names.

On SQLite it is a full-text index (FTS5 with the trigram tokenizer) over `search_names`, the virtual table `search_trigrams`; on
PostgreSQL a GIN index over the results of the SQL function trellis_trigrams for each name.
"""

from contextlib import suppress
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import sqlite
from trellis.store.counters import find_last, set_counter
from trellis.store.engine import OfRows, Row, Statement, Transaction
from trellis.store.lists import journal
from trellis.store.lists.journal import find_range
from trellis.store.tables import node_changes, search_names

INDEXED_FIELDS: Final = frozenset({"type"})  # fields with an index like nodes_by_type, in which the rows are ordered by id
COUNTER: Final = "search"  # its `last` is the last journal entry that was indexed; -1: the index has to be rebuilt
_TRIGRAM: Final = 3
_MAX_TRIGRAMS: Final = 12  # trigrams of a text that are looked up, at most
_MAX_PROBED: Final = 100  # occurrences read to find how frequent a trigram is
_AT_ONCE: Final = 10_000  # names that one statement adds when the index is rebuilt
_RARE: Final = 10  # a trigram with at most this many occurrences is rare enough
_j, _n = node_changes.c, search_names.c

_UNINDEXED: Final = Statement(
    sa.select(_j.id)
    .where(_j.kind == bindparam("kind"), _j.seq > bindparam("last"))
    .distinct()
    .limit(bindparam("limit", type_=sa.Integer))
)
_PROBE: Final = Statement(sa.text("SELECT rowid FROM search_trigrams WHERE search_trigrams MATCH :match LIMIT :limit"))
_MATCH_SQLITE: Final = Statement(
    sa.text(  # CROSS JOIN fixes the order of the join: SQLite would begin with every name
        "SELECT search_names.id, instr(search_names.name_key, :text) "
        "FROM search_trigrams CROSS JOIN search_names ON search_names.document_id = search_trigrams.rowid "
        "WHERE search_trigrams MATCH :match AND search_names.kind = :kind LIMIT :limit"
    )
)
_MATCH_POSTGRESQL: Final = Statement(
    sa.text(
        "SELECT id, strpos(name_key, :text) FROM search_names "
        "WHERE kind = :kind AND trellis_trigrams(name_key) @> CAST(:trigrams AS TEXT[]) LIMIT :limit"
    )
)


def find_candidates(tx: Transaction, kind: str, text: str, most: int) -> list[int] | None:
    """Return the ids of all nodes whose folded names contain a text, and of some whose names do not.

    None if there might be more than `most`, if the text is shorter than a trigram, or if there is no complete index.
    """
    if len(text) < _TRIGRAM or "\0" in text or not is_usable(tx) or (last := _last_indexed(tx)) < 0:
        return None
    unindexed = [row[0] for row in tx.fetch(_UNINDEXED, kind=kind, last=last, limit=most + 1)]
    if len(unindexed) > most:
        return None
    found = (_match_sqlite if tx.sqlite else _match_postgresql)(tx, kind, text, most + 1)
    return None if len(found) > most else sorted({node for node, at in found if at}.union(unindexed))


def is_usable(tx: Transaction) -> bool:
    """Return whether there is an index. There is none if SQLite lacks FTS5, or lacked it when the database was created."""
    if (usable := tx.cache.get(("search index",))) is None:
        usable = True
        if tx.sqlite:
            usable = False
            with suppress(sqlite.StatementError):
                tx.raw.execute("SELECT rowid FROM search_trigrams WHERE search_trigrams MATCH '\"abc\"' LIMIT 1").fetchall()
                usable = True
        tx.cache.put(("search index",), usable)
    return bool(usable)


def _trigrams(text: str) -> list[str]:
    """Return the distinct trigrams of a text; of a long text only some, evenly spread."""
    every = list(dict.fromkeys(text[at : at + _TRIGRAM] for at in range(len(text) - _TRIGRAM + 1)))
    return every[:: -(-len(every) // _MAX_TRIGRAMS)]


def _match_sqlite(tx: Transaction, kind: str, text: str, limit: int) -> list[Row]:
    """Look up only the rarest trigrams: reading the long list of a frequent trigram costs more than it saves."""
    rare: list[tuple[int, str]] = []  # number of occurrences, and the trigram as a phrase of FTS5
    frequent: list[tuple[float, str]] = []  # for the others the density of their first occurrences, and the phrase
    for trigram in _trigrams(text):
        phrase = '"' + trigram.replace('"', '""') + '"'
        probed = tx.fetch(_PROBE, match=phrase, limit=_MAX_PROBED)
        if len(probed) == _MAX_PROBED:
            frequent.append((1 / probed[-1][0], phrase))
            continue
        rare.append((len(probed), phrase))
        if len(probed) <= _RARE:
            break
    least = min(frequent)[0] if frequent else 0
    phrases = [min(rare)[1]] if rare else [phrase for density, phrase in frequent if density <= 4 * least]
    return tx.fetch(_MATCH_SQLITE, match=" ".join(phrases), text=text, kind=kind, limit=limit)


def _match_postgresql(tx: Transaction, kind: str, text: str, limit: int) -> list[Row]:
    return tx.fetch(_MATCH_POSTGRESQL, kind=kind, trigrams=_trigrams(text), text=text, limit=limit)


# --- updating -----------------------------------------------------------------------------------------------------

_PAIR: Final = {"kind": "TEXT", "id": "BIGINT"}
_OUTDATED: Final = Statement(
    OfRows(
        "SELECT search_names.document_id "
        "FROM {rows} {join} search_names ON search_names.kind = given.kind AND search_names.id = given.id "
        "LEFT JOIN nodes ON nodes.kind = given.kind AND nodes.id = given.id "
        "WHERE nodes.name_key IS NULL OR nodes.name_key <> search_names.name_key",
        _PAIR,
    )
)
_ADD_NAMES: Final = Statement(
    OfRows(
        "INSERT INTO search_names (kind, id, name_key) SELECT nodes.kind, nodes.id, nodes.name_key "
        "FROM {rows} {join} nodes ON nodes.kind = given.kind AND nodes.id = given.id "
        "LEFT JOIN search_names ON search_names.kind = given.kind AND search_names.id = given.id "
        "WHERE search_names.document_id IS NULL",
        _PAIR,
    )
)
_ADD_NEXT_NAMES: Final = Statement(
    sa.text(
        "INSERT INTO search_names (kind, id, name_key) SELECT kind, id, name_key FROM nodes WHERE (kind, id) > (:kind, :node) "
        "ORDER BY kind, id LIMIT :limit"
    )
)
_NEWEST_NAME: Final = Statement(sa.select(_n.kind, _n.id).order_by(_n.document_id.desc()).limit(sa.literal_column("1")))
# FTS5 does not follow the table that it indexes: a document has to be removed with its old text, and added with the new one.
_UNINDEX: Final = Statement(
    sa.text(
        "INSERT INTO search_trigrams (search_trigrams, rowid, name_key) "
        "SELECT 'delete', document_id, name_key FROM search_names WHERE document_id IN (SELECT value FROM json_each(:documents))"
    )
)
_INDEX: Final = Statement(
    sa.text(
        "INSERT INTO search_trigrams (rowid, name_key) SELECT document_id, name_key FROM search_names WHERE document_id > :above"
    )
)


def _last_indexed(tx: Transaction) -> int:
    """Return the last journal entry that was indexed; -1 if the index has to be rebuilt."""
    last = find_last(tx, COUNTER)
    return -1 if last is None else last


def is_search_index_behind(tx: Transaction) -> bool:
    """Return whether the search index has to be updated."""
    return _last_indexed(tx) != (find_range(tx).last if is_usable(tx) else -1)


def trim_journal(tx: Transaction) -> int:
    """Delete old entries of the change journal that have been indexed, at most several thousand; return their number."""
    last = _last_indexed(tx)
    return journal.trim(tx, find_range(tx).last if last < 0 else last)


def update_search_index(tx: Transaction, most: int = 250) -> int:
    """Bring the search index up to date with the next entries of the journal, at most `most`; return their number.

    If the index has to be rebuilt, one call rebuilds all of it and returns 0.
    """
    if not is_usable(tx):
        set_counter(tx, COUNTER, -1)
        return 0
    if (last := _last_indexed(tx)) < 0:
        rebuild_search_index(tx)
        return 0
    batch = tx.connection.execute(sa.select(_j.seq, _j.kind, _j.id).where(_j.seq > last).order_by(_j.seq).limit(most)).all()
    if batch:
        _index(tx, tx.encode(list(dict.fromkeys((kind, node) for _, kind, node in batch))))
        set_counter(tx, COUNTER, batch[-1][0])
    return len(batch)


def _index(tx: Transaction, pairs: str) -> None:
    """Replace the indexed names of some nodes by their current ones: `pairs` is a JSON list of [kind, id]."""
    outdated = [row[0] for row in tx.fetch(_OUTDATED, rows=pairs)]
    if outdated:
        if tx.sqlite:
            tx.execute(_UNINDEX, documents=tx.encode(outdated))
        tx.connection.execute(sa.delete(search_names).where(_n.document_id.in_(outdated)))
    above = tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(_n.document_id), 0))).scalar_one()
    if tx.execute(_ADD_NAMES, rows=pairs) and tx.sqlite:
        tx.execute(_INDEX, above=above)


def rebuild_search_index(tx: Transaction) -> None:
    """Rebuild the search index from the nodes, in batches: on PostgreSQL, the time of each statement is limited."""
    tx.connection.execute(sa.delete(search_names))
    kind, node = "", 0
    while tx.execute(_ADD_NEXT_NAMES, kind=kind, node=node, limit=_AT_ONCE):
        kind, node = tx.fetch(_NEWEST_NAME)[0]
    if tx.sqlite:
        tx.raw.execute("INSERT INTO search_trigrams (search_trigrams) VALUES ('rebuild')")
    set_counter(tx, COUNTER, find_range(tx).last)


# --- the check ----------------------------------------------------------------------------------------------------

_SAMPLE: Final = 200
# EXCEPT reads the entries that are still to be indexed once; NOT EXISTS would read them for each name.
_WRONG: Final = """
    SELECT count(*) FROM (
        SELECT one.kind, one.id FROM {one} AS one LEFT JOIN {other} AS other ON other.kind = one.kind AND other.id = one.id
        WHERE other.name_key IS NULL{or_other}
        EXCEPT SELECT kind, id FROM node_changes WHERE seq > {last}) AS wrong
"""


def check_search_index(tx: Transaction) -> int:
    """Count the names that are missing or wrong in the search index, excluding those that are still to be indexed."""
    if not is_usable(tx) or (last := _last_indexed(tx)) < 0:
        return 0
    directions = (
        {"one": "nodes", "other": "search_names", "or_other": " OR other.name_key <> one.name_key"},
        {"one": "search_names", "other": "nodes", "or_other": ""},
    )
    found = sum(tx.raw.execute(_WRONG.format(**tables, last=last)).fetchone()[0] for tables in directions)
    return int(found) or _count_lost(tx)


def _count_lost(tx: Transaction) -> int:
    """Count the names in a sample of `search_names` that SQLite's full-text index does not find."""
    if not tx.sqlite:
        return 0
    top = tx.connection.execute(sa.select(sa.func.coalesce(sa.func.max(_n.document_id), 0))).scalar_one()
    ids = range(1, top + 1, max(1, top // _SAMPLE))[:_SAMPLE]
    sample = tx.connection.execute(sa.select(_n.document_id, _n.name_key).where(_n.document_id.in_(ids))).all()
    probe = "SELECT count(*) FROM search_trigrams WHERE search_trigrams MATCH ? AND rowid = ?"
    lost = 0
    for document, name in sample:
        if len(name) >= _TRIGRAM:
            match = " ".join('"' + trigram.replace('"', '""') + '"' for trigram in _trigrams(name))
            lost += not tx.raw.execute(probe, (match, document)).fetchone()[0]
    return lost
