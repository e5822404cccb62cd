"""Fills a database of trellis with forums in bulk, as rows of its tables and in one transaction."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from bench.forest import Forum
from trellis.core.gate import Gate
from trellis.kinds.forums import FORUMS
from trellis.store import lists, siblings, tables
from trellis.store.counters import set_counter
from trellis.store.engine.transaction import Transaction
from trellis.store.nodes.rows import fold_name

PERMISSIONS: Final = {"view": "*", "read": "*", "add": [3, 4], "reply": [3, 4], "attachments": [3, 4]}
_WHEN: Final = "2026-01-15T12:00:00.000Z"
_CHUNK: Final = 5000


def fill(gate: Gate, forums: Iterable[Forum], progress: Callable[[int], None]) -> int:
    """Write the forums as if they had been created, but without an event for each; give their number."""
    defaults = {field.name: field.default for field in FORUMS.fields}

    def work(tx: Transaction) -> int:
        done, rows, parents = 0, iter(forums), set[int | None]()
        while chunk := list(islice(rows, _CHUNK)):
            tx.connection.execute(sa.insert(tables.nodes), [_row(forum, defaults) for forum in chunk])
            parents.update(forum.parent_id for forum in chunk)
            done += len(chunk)
            progress(done)
        if not tx.sqlite:
            tx.raw.execute("ANALYZE nodes")  # or the planner takes the table for an empty one
        siblings.build_blocks(tx, FORUMS.name, parents)
        set_counter(tx, FORUMS.name, done, done)
        lists.rebuild_search_index(tx)  # or a service does so beside what is measured
        return done

    return gate.store.write(work).result()


def _row(forum: Forum, defaults: dict[str, Any]) -> dict[str, Any]:
    """Write a forum as a row, in a block 0 of all its siblings, which `build_blocks` splits."""
    return {
        "kind": FORUMS.name,
        "id": forum.id,
        "parent_id": forum.parent_id,
        "block": 0,
        "block_offset": forum.position,
        "name": forum.name,
        "name_key": fold_name(forum.name),
        "fields": defaults | {"description": forum.description},
        "permissions": PERMISSIONS,
        "created_at": _WHEN,
        "updated_at": _WHEN,
    }
