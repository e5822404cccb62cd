"""The grid of grants: a row for each resource, a column for each verb, and a box for each endpoint.

Everything in it comes from the catalogue. Without scripts, submit buttons tick a row, a column, or all reading operations: `press`
does on the server what the script does in the page.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from trellis.core.catalogue import Catalogue
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.http.routes import build_routes, find_in_reference
from trellis.sentences import say


@dataclass(frozen=True, slots=True)
class Box:
    """One operation that can be granted: its name, what it does, where it is served."""

    name: str
    summary: str
    column: str
    reads: bool
    method: str
    path: str
    is_plan: bool
    is_about_events: bool
    reference: str  # the address of its entry in the reference, or of the entry of the operation that forks into it


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One resource: a box for each column, or None where the resource has no such endpoint."""

    resource: str
    application: str
    title: str
    boxes: tuple[Box | None, ...]

    @property
    def endpoints(self) -> tuple[Box, ...]:
        """The boxes of the resource's endpoints."""
        return tuple(box for box in self.boxes if box is not None)


class GrantGrid:
    """The grid. `columns` are the headings by verb, `rows` the resources, `others` the boxes of operations without a column.

    `operations` are all operations that have a box.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        served = {
            name: (route.method, route.path, find_in_reference(route.operation))
            for route in build_routes(catalogue)
            for name in (route.operation.fork.to if route.operation.fork else (route.operation.name,))
        }
        by_resource: dict[str, dict[str, Box]] = {}
        kinds: dict[str, NodeKind] = {}
        others: list[Box] = []
        self.operations = tuple(catalogue.grantable)
        self.columns = _columns(catalogue)
        for operation in catalogue.grantable:
            box = _box(operation, *served.get(operation.name, ("", "", find_in_reference(operation))))
            if box.column and operation.kind is not None:
                by_resource.setdefault(operation.resource, {})[box.column] = box
                kinds[operation.resource] = operation.kind
            else:
                others.append(box)
        self.rows = tuple(
            GrantRow(name, kinds[name].application, kinds[name].title, tuple(found.get(column) for column in self.columns))
            for name, found in by_resource.items()
        )
        self.others = tuple(others)
        self._needed = {one.name: one.needed for one in catalogue.values() if one.path is not None}

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """All boxes, in their order."""
        return tuple(box for row in self.rows for box in row.endpoints) + self.others

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all operations that can be granted."""
        return frozenset(box.name for box in self.boxes)

    def find_missing(self, operation: str | None, grants: Collection[str]) -> str:
        """Return the first grant that an operation needs and `grants` lacks; "" if there is none that can be given."""
        needed = self._needed.get(operation or "", ())
        return next((name for name in needed if name in self.names and name not in grants), "")

    @cached_property
    def reading(self) -> frozenset[str]:
        """The names of the operations that change nothing."""
        return frozenset(box.name for box in self.boxes if box.reads)

    @cached_property
    def reads_of_nodes(self) -> frozenset[str]:
        """The names of the operations that read nodes, of every kind."""
        return frozenset(box.name for row in self.rows for box in row.endpoints if box.reads)

    @cached_property
    def ticks(self) -> dict[str, frozenset[str]]:
        """The operations that each button ticks. Buttons are named `all`, `none`, `read`, `row:forums`, `column:list`."""
        found = {"all": self.names, "none": frozenset[str](), "read": self.reading}
        found |= {f"row:{row.resource}": frozenset(box.name for box in row.endpoints) for row in self.rows}
        return found | {f"column:{name}": frozenset(box.name for box in self.boxes if box.column == name) for name in self.columns}

    def press(self, button: str, chosen: Iterable[str]) -> tuple[str, ...]:
        """Return the operations that are ticked after a button was pressed. A full row or column is cleared."""
        before = frozenset(chosen)
        what = self.ticks.get(button)
        if what is None:
            after = before
        elif button in {"all", "none", "read"}:
            after = what
        else:
            after = before - what if what <= before else before | what
        return tuple(box.name for box in self.boxes if box.name in after)

    def describe(self, grants: Iterable[str]) -> str:
        """Describe some grants in a few words."""
        held = self.names & frozenset(grants)
        if not held:
            return say("Nothing yet")
        if held == self.names:
            return say("Everything")
        if held == self.reading:
            return say("Read everything")
        if row := next((one for one in self.rows if held == self.ticks[f"row:{one.resource}"]), None):
            return say("All operations on {title}", title=say(row.title.lower()))
        if len(held) == 1:
            return say(next(box.summary for box in self.boxes if box.name in held))
        return say("{count} of {all} operations", count=len(held), all=len(self.names))

    def find(self, name: str) -> Box | None:
        """Find the box of an operation."""
        return next((box for box in self.boxes if box.name == name), None)


def _columns(catalogue: Catalogue) -> dict[str, str]:
    """Return the headings of the verbs of nodes by name, in the order of the catalogue."""
    verbs = (operation.verb for operation in catalogue.values() if operation.kind is not None)
    return {one.name: one.column for one in verbs if one is not None and one.column}


def _box(operation: Operation, method: str, path: str, reference: str) -> Box:
    column = operation.verb.name if operation.kind is not None and operation.verb is not None and operation.verb.column else ""
    return Box(
        operation.name,
        operation.summary,
        column,
        not operation.writes,
        method,
        path,
        operation.is_plan,
        operation.access.is_about_events,
        reference,
    )
