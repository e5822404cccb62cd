"""Which events can be undone, and which delete a record is gone by."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trellis.admin.page import Visit
from trellis.core.nodes import NodeKind
from trellis.core.undo import find_undoing_events
from trellis.store import snapshots
from trellis.store.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """How it stands with an event that can be undone as such: whether its rows are kept, and what undid it already."""

    kept: bool
    undone_by: int | None

    @property
    def open(self) -> bool:
        """Whether there is anything to undo."""
        return self.kept and self.undone_by is None


async def standings(visit: Visit, events: Iterable[Mapping[str, Any]]) -> dict[int, Standing]:
    """Say how it stands with each of some events, by number; those that cannot be undone by their nature are left out."""
    kinds = {kind.name for kind in visit.house.gate.environment.kinds}
    rows = {
        event["seq"]: 1 + len(event["touched"]) if event["before"] else 0  # to undo that something was made takes no rows
        for event in events
        if event["resource"] in kinds and (event["before"] or _is_undone_by_deleting(visit, event))
    }
    by, kept = await visit.read(lambda tx: (find_undoing_events(tx, rows), snapshots.count_by_event(tx, rows)))
    return {seq: Standing(kept.get(seq, 0) >= count, by.get(seq)) for seq, count in rows.items()}


def _is_undone_by_deleting(visit: Visit, event: Mapping[str, Any]) -> bool:
    operation = visit.house.gate.catalogue.get(event["operation"])
    return operation is not None and operation.verb is not None and operation.verb.undone_by_deleting


async def deletion(visit: Visit, kind: NodeKind, node: int) -> Snapshot | None:
    """Give what is kept of a node that is gone by the event that deleted it, alone or with what stood above it."""
    last = await visit.read(lambda tx: snapshots.find_latest(tx, kind.name, node))
    return last if last is not None and last.change == "deleted" else None
