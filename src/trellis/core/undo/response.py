"""The response to an undo, which lists what was undone and what could not be, and the outcome that contains it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from trellis.core.fields import Field, Ids, Integer, ListOf, NodeId, Nullable, ObjectOf, Text
from trellis.core.nodes import NodeKind
from trellis.core.operation import Outcome
from trellis.store.events import Event

_SHOWN: Final = 1000  # the most ids that a response lists; the counts include all
LeftRecord = dict[str, Any]


class Done(NamedTuple):
    """What an undo has done with the nodes of a kind.

    `restored` and `deleted` are their ids, beginning with that of the event's own, and `moved` are the ids of its children.
    `regrouped` are the nodes of any kind whose permissions have changed, as (kind, id), and `left` those that have not, and why.
    `lost` are the groups that no longer exist.
    """

    restored: Sequence[int] = ()
    deleted: Sequence[int] = ()
    moved: Sequence[int] = ()
    regrouped: Sequence[tuple[str, int]] = ()
    left: Sequence[LeftRecord] = ()
    lost: Iterable[int] = ()


def build_outcome(
    kind: NodeKind,
    event: Event,
    record_id: int | None,
    done: Done,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    changed: tuple[str, ...] = (),
) -> Outcome:
    """Return the outcome of undoing an event. `before` and `after` are its record before and after that."""
    result = {
        "event": event.seq,
        "operation": event.operation,
        "record": after,
        "restored": _list_ids(done.restored),
        "deleted": _list_ids(done.deleted),
        "moved": _list_ids(done.moved),
        "changed": {
            "count": len(done.regrouped),
            "nodes": [{"resource": name, "id": i} for name, i in done.regrouped[:_SHOWN]],
        },
        "left": {"count": len(done.left), "nodes": list(done.left[:_SHOWN])},
        "lostGroups": sorted(done.lost),
    }
    others = (("restored", done.restored[1:]), ("deleted", done.deleted[1:]), ("moved", done.moved))
    touched = [{"resource": kind.name, "id": i, "how": how} for how, ids in others for i in ids]
    touched += [{"resource": name, "id": i, "how": "changed"} for name, i in done.regrouped]
    return Outcome(
        result,
        resource_id=record_id,
        before=before,
        after=after,
        changed=changed,
        touched=tuple(touched),
        plan=result | {"dryRun": True},
        undoes=event.seq,
    )


def _list_ids(ids: Sequence[int]) -> dict[str, Any]:
    return {"count": len(ids), "ids": list(ids[:_SHOWN])}


# --- for the reference ---------------------------------------------------------------------------------------------

_RECORD: Final = (Field("resource", Text(), "The resource."), Field("id", NodeId(), "The record's id."))
_NODES: Final = ListOf(_RECORD)
_LEFT: Final = ListOf((*_RECORD, Field("why", Text(), "Why it was not changed.")))


def _counted(type_: Any, name: str) -> ObjectOf:
    return ObjectOf((Field("count", Integer(), "Their number."), Field(name, type_, "A list of at most 1,000 of them.")))


_NONE: Final[dict[str, Any]] = {"count": 0, "ids": []}
ANSWERS: Final = (
    Field("event", NodeId(), "The event that was undone.", example=12),
    Field("operation", Text(), "Its operation.", example="forums.delete"),
    Field(
        "record",
        Nullable(ObjectOf()),
        "The record after the undo; null if the undo deleted it.",
        example={"id": 7, "name": "Garden diaries"},
    ),
    Field(
        "restored",
        _counted(Ids(), "ids"),
        "The restored records, beginning with the event's own.",
        example={"count": 1, "ids": [7]},
    ),
    Field(
        "deleted",
        _counted(Ids(), "ids"),
        "The records that the event had created and the undo deleted, beginning with the event's own.",
        example=_NONE,
    ),
    Field("moved", _counted(Ids(), "ids"), "The children that the delete had moved away and that were moved back.", example=_NONE),
    Field(
        "changed",
        _counted(_NODES, "nodes"),
        "The records whose permissions name a restored group again.",
        example={"count": 0, "nodes": []},
    ),
    Field("left", _counted(_LEFT, "nodes"), "The records that were not changed, and why.", example={"count": 0, "nodes": []}),
    Field("lostGroups", Ids(), "Groups that no longer exist and were therefore removed from the restored permissions.", example=[]),
)
