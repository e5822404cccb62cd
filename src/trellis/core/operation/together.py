"""Running calls of one operation together, which is quicker than one by one, where the result is the same."""

from collections.abc import Container, Iterable, Sequence
from typing import Final

from trellis.core.operation.call import Call
from trellis.core.operation.operation import Context
from trellis.core.operation.outcome import Outcome
from trellis.errors import Refused
from trellis.store import nodes
from trellis.store.nodes import Node

_MOST_BYTES: Final = 8 * 2**20  # of nodes that are changed together: memory holds them as they were, as they are, and as records


class OneByOne(Exception):
    """Raised by a function that runs several calls together, before it writes anything, if they have to be run one by one."""


def check_weight(found: Iterable[Node]) -> None:
    """Raise OneByOne if the texts of nodes are so long that together they take too much memory."""
    if sum(map(nodes.weigh_node, found)) > _MOST_BYTES:
        raise OneByOne


def run_together(context: Context, calls: Sequence[Call], final: Container[int] = ()) -> list[Outcome] | None:
    """Run calls of one operation together, as part of another call.

    Returns None, and has changed nothing, if they have to be run one by one: for example because one of them will be refused.
    Raises Refused only if its status is in `final`.
    """
    if not calls:
        return None
    try:
        with context.tx.savepoint():
            return context.run_many(calls)
    except OneByOne:
        return None
    except Refused as refused:
        if refused.status in final:
            raise
        return None
