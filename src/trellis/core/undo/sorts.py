"""The sorts of events that can be undone many at a time, which is far quicker than one by one."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from trellis.core.nodes import NodeKind
from trellis.core.operation import Context, Outcome
from trellis.core.undo.put_back import bring_back, change_back, find_gone, find_unchanged, is_change, is_delete
from trellis.core.undo.unmake_many import delete_untouched, find_untouched, is_creation
from trellis.store import nodes
from trellis.store.engine import Transaction
from trellis.store.events import Event


class Sort(NamedTuple):
    """One sort of events: `fits` recognises them, and `find_ready` returns the numbers of those that `undo` can undo together.

    `at_once` is how many records `undo` can take at once. If `is_cheap`, the events do not count towards the limit on those that
    take long to undo.
    """

    fits: Callable[[NodeKind, Event], bool]
    find_ready: Callable[[Transaction, NodeKind, Sequence[Event]], set[int]]
    undo: Callable[[NodeKind, Sequence[Context], Sequence[Event]], list[Outcome]]
    at_once: int
    is_cheap: bool


_SORTS: Final = (
    Sort(is_creation, find_untouched, delete_untouched, nodes.BATCH, is_cheap=True),
    Sort(is_change, find_unchanged, change_back, nodes.AT_ONCE, is_cheap=False),
    Sort(is_delete, find_gone, bring_back, nodes.AT_ONCE, is_cheap=False),
)


def find_sort(kind: NodeKind, event: Event) -> Sort | None:
    """Return the sort of an event of a kind; None if it has to be undone by itself."""
    return next((sort for sort in _SORTS if sort.fits(kind, event)), None)
