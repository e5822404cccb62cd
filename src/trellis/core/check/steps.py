"""How far a check is: for its progress, and for the repair that continues it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Self

from trellis.core.nodes import NodeKind
from trellis.core.operation import Context
from trellis.store import check

_NODE: Final = 20  # steps for a node that is examined; a row that is scanned is one


@dataclass(slots=True)
class Steps:
    """How far a check is, for its progress: the rows that it has scanned, and the nodes that it has examined.

    `sizes` are the number of nodes of each kind, and the highest id: see `check.count_rows`. No repair changes them.
    """

    context: Context
    sizes: Mapping[str, tuple[int, int]]
    scanned: int  # all rows that it will scan
    total: int
    done: int = 0
    kind: str = ""  # the kind and the id of the last node of the last batch that was examined
    node: int = 0

    @classmethod
    def count(cls, context: Context, after: tuple[str, int] | None = None) -> Self:
        """Count what a check will read, or what a repair will that continues `after` a kind and an id, about."""
        scanned, passed = check.count_scanned(context.tx) if after is None else 0, 0.0
        sizes = check.count_rows(context.tx)
        if after is not None:
            for kind in takewhile(lambda kind: kind.name != after[0], context.environment.kinds):
                passed += sizes.get(kind.name, (0, 0))[0]
            count, highest = sizes.get(after[0], (0, 0))
            passed += count * min(1, max(0, after[1]) / max(1, highest))
        return cls(context, sizes, scanned, scanned + _NODE * sum(size for size, _ in sizes.values()), _NODE * int(passed))

    def scan(self, rows: int) -> None:
        self._tell(min(self.done + rows, self.scanned))

    def examine(self, kind: NodeKind, node: int, count: int) -> None:
        self.kind, self.node = kind.name, node
        self._tell(min(max(self.done, self.scanned) + _NODE * count, self.total))

    def _tell(self, done: int) -> None:
        self.done = done
        self.context.call.progress(done, self.total)
