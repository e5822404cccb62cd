"""The changes that applying a document makes, as a plan lists them: one for each event, with the members that differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from trellis.core.events import PLACE
from trellis.core.fields import isolate
from trellis.core.kind import NodeKind
from trellis.core.operation import Context, Outcome
from trellis.core.structure.entries import Location, NodeEntry, Section
from trellis.store import events
from trellis.store.nodes import Node

APPLY: Final = "structure.apply"
_LONGEST: Final = 200  # characters of a value that a plan shows


@dataclass(slots=True)
class Change:
    """One change. `action` is create, update, move or delete; `id` is the record's id; `path` joins the names from the top to it.

    `differences` lists the members that differ, with their values `before` and `after`. `drift` is the event that has changed a
    managed node since the last apply. `deleted` is the number of nodes that a delete removes; `touched` lists the nodes that it
    changes.
    """

    action: str
    resource: str
    id: int | None
    external_id: str | None
    path: str
    location: Location | None = None
    differences: list[dict[str, Any]] = field(default_factory=list)
    adopted: bool = False
    drift: dict[str, Any] | None = None
    deleted: int = 0
    touched: list[Mapping[str, Any]] = field(default_factory=list)

    def serialize(self) -> dict[str, Any]:
        """Serialise the change for the list of changes in a plan."""
        return {
            "action": self.action,
            "resource": self.resource,
            "id": self.id,
            "externalId": self.external_id,
            "path": self.path,
            "file": self.location.file or None if self.location else None,
            "line": self.location.line if self.location else None,
            "differences": self.differences,
            "adopted": self.adopted,
            "drift": self.drift,
            "deleted": self.deleted,
            "touched": self.touched,
        }


class NodeCall(NamedTuple):
    """An operation to run on a node: on that of an entry of a section, or on one that the document does not contain.

    `node` is the node as it was before the run, and `target` its id; `raw` is the input of the operation.
    """

    section: Section
    entry: NodeEntry | None
    node: Node | None
    raw: Mapping[str, Any]
    target: int | None
    adopted: bool = False

    @property
    def kind(self) -> NodeKind:
        return self.section.kind


def describe_change(node_call: NodeCall, outcome: Outcome, document: str | None, drift: dict[str, Any] | None) -> Change:
    """Describe what an operation of a run has done. `drift` is included only if the document managed the record before."""
    record: Mapping[str, Any] = outcome.after or outcome.before or {}
    change = Change(
        _find_action(outcome),
        node_call.kind.name,
        outcome.resource_id,
        record.get("externalId"),
        str(record.get("path") or record.get("name")),
        None if node_call.entry is None else node_call.entry.location,
        adopted=node_call.adopted,
    )
    if outcome.after is None:
        change.deleted = int(outcome.plan["deleted"]["count"])
        change.touched = list(outcome.plan["changed"]["nodes"])
    elif outcome.before is not None:
        derived = {f.name for f in node_call.kind.response_fields if f.read_only} - {"managedBy"}
        changed = [member for member in outcome.changed if member not in derived]
        change.differences = list(_list_differences(outcome.before, outcome.after, changed))
    if outcome.before is not None and outcome.before.get("managedBy") == document:
        change.drift = drift
    return change


def find_drifts(context: Context, node_calls: Sequence[NodeCall], document: str | None, revision: int) -> dict[int, dict[str, Any]]:
    """Return, by node id, the event that last changed each node that the document manages, unless that was an apply.

    The nodes are of one kind, and `revision` is the newest event before the run. Nodes that the run adopts are left out.
    """
    managed = [one.target for one in node_calls if one.target and (one.node is None or one.node.managed_by == document)]
    if not managed:
        return {}
    last = events.find_last_changes(context.tx, node_calls[0].kind.name, managed, revision + 1)
    by_others = {node: change for node, change in last.items() if change.began != APPLY}
    return {node: {"event": one.event, "operation": one.operation, "at": one.at} for node, one in by_others.items()}


def _find_action(outcome: Outcome) -> str:
    if outcome.before is None:
        return "create"
    if outcome.after is None:
        return "delete"
    return "move" if PLACE.issuperset(outcome.changed) else "update"


def _list_differences(before: Mapping[str, Any], after: Mapping[str, Any], changed: Sequence[str]) -> Iterator[dict[str, Any]]:
    for member in changed:
        if member == "permissions":
            for option, who in after[member].items():
                if before[member].get(option) != who:
                    yield {"member": f"{member}.{option}", "before": before[member].get(option), "after": who}
        elif member not in after:  # a password: it is not shown
            yield {"member": member, "before": None, "after": None}
        else:
            yield {"member": member, "before": _shorten(before.get(member)), "after": _shorten(after[member])}


def _shorten(value: Any) -> Any:
    return isolate(value[:_LONGEST]) + "…" if isinstance(value, str) and len(value) > _LONGEST else value
