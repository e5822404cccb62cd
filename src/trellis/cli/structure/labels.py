"""Labels for the ids in a plan: groups by their external ids or names, parents by their paths."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from trellis.cli.community import act
from trellis.core.fields import EVERYONE
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind

_MOST: Final = 100  # ids per request for a list, which returns all texts of their nodes
PARENT: Final = "parentId"


class Labels:
    """The labels of the records that a plan names: records of the community, and records that the plan creates or deletes."""

    def __init__(self, gate: Gate, kinds: Sequence[NodeKind], changes: Iterable[Mapping[str, Any]]) -> None:
        self._gate = gate
        self._group_fields = {kind.name: {f.name for f in kind.group_fields} for kind in kinds}
        self._groups = next(kind for kind in kinds if kind.is_group)
        self._known: dict[tuple[str, int], str] = {}
        self._read(changes)

    def describe(self, resource: str, member: str, value: Any) -> Any:
        """Return a value as a plan shows it: ids of groups and parents as names, anything else as it is."""
        if member.startswith("permissions.") or member in self._group_fields.get(resource, ()):
            return self._describe_groups(value)
        if member == PARENT:
            return "top level" if value is None else self._known.get((resource, value), f"{resource} {value}")
        return value

    def _describe_groups(self, who: Any) -> str:
        if who == EVERYONE:
            return "every group"
        return ", ".join(self._known.get((self._groups.name, one), f"group {one}") for one in who or ()) or "nobody"

    def _read(self, changes: Iterable[Mapping[str, Any]]) -> None:
        """Look up the records that the differences name."""
        wanted: dict[str, set[int]] = defaultdict(set)
        made: dict[tuple[str, int], str] = {}
        for change in changes:
            resource = change["resource"]
            if change["id"] is not None:
                made[resource, change["id"]] = (change["externalId"] if resource == self._groups.name else None) or change["path"]
            for difference in change["differences"]:
                for value in (difference["before"], difference["after"]):
                    if difference["member"] == PARENT and value is not None:
                        wanted[resource].add(value)
                    elif isinstance(value, list):
                        wanted[self._groups.name].update(one for one in value if isinstance(one, int))
        for resource, ids in wanted.items():
            self._look_up(resource, sorted(ids))
        for record, label in made.items():
            self._known.setdefault(record, label)

    def _look_up(self, resource: str, ids: Sequence[int]) -> None:
        is_group = resource == self._groups.name
        for first in range(0, len(ids), _MOST):
            some = ",".join(map(str, ids[first : first + _MOST]))
            for record in act(self._gate, f"{resource}.list", {"ids": some, "perPage": _MOST}).value["results"]:
                label = record["externalId"] or self._groups.built_in.get(record["id"]) if is_group else None
                self._known[resource, record["id"]] = label or record.get("path") or record["name"]
