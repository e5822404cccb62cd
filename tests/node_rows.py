"""Every row of every kind of node, as it is kept, to compare the states of a community."""

from dataclasses import asdict
from typing import Any

from trellis.core.gate import Gate
from trellis.kinds import KINDS
from trellis.store.nodes import rows

Rows = dict[tuple[str, int], dict[str, Any]]


def read_rows(gate: Gate) -> Rows:
    """Read all nodes: (kind, id) → row."""
    with gate.store.reading() as tx:
        return {(kind.name, node.id): asdict(node) for kind in KINDS for node in rows.find_all(tx, kind.name)}


def timeless(found: Rows) -> Rows:
    """Return the rows without the time of their last change: undoing is a change."""
    return {key: row | {"updated_at": ""} for key, row in found.items()}
