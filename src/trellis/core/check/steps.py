"""How far a check is: for its progress, and for the repair that continues it."""

from dataclasses import dataclass
from typing import Final, Self

from trellis.core.nodes import NodeKind
from trellis.core.operation import Context
from trellis.store import check

_NODE: Final = 20  # steps for a node that is examined; a row that is scanned is one


@dataclass(slots=True)
class Steps:
    """How far a check is, for its progress: the rows that it has scanned, and the nodes that it has examined."""

    context: Context
    scanned: int  # all rows that it will scan
    total: int
    done: int = 0
    kind: str = ""  # the kind and the id of the last node of the last batch that was examined
    node: int = 0

    @classmethod
    def count(cls, context: Context) -> Self:
        scanned = check.count_scanned(context.tx)
        return cls(context, scanned, scanned + _NODE * sum(size for size, _ in check.count_rows(context.tx).values()))

    def scan(self, rows: int) -> None:
        self._tell(min(self.done + rows, self.scanned))

    def examine(self, kind: NodeKind, node: int, count: int) -> None:
        self.kind, self.node = kind.name, node
        self._tell(min(max(self.done, self.scanned) + _NODE * count, self.total))

    def _tell(self, done: int) -> None:
        self.done = done
        self.context.call.progress(done, self.total)
