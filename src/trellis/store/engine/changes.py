"""What commits have changed, and therefore which cached answers are still valid.

The change journal, `node_changes`, lists what each commit has changed. Triggers on `nodes` write it in the transaction of the
change, except that the code that changes the order of siblings (`store.siblings`) notes this itself. An answer declares what it
shows (see `Shown`) and stays valid until something of that changes. An answer without a declaration stays valid until anything
changes.

Times are *stamps*: numbers that only grow within a process. A change is stamped when this process learns of it, not when it
happens, so a stamp may be newer than the change. Therefore an answer is dropped too early rather than too late.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

MOST: Final = 300  # journal entries that are examined; if there are more, everything counts as changed
_REMEMBERED: Final = 50_000  # changes that are remembered; after that everything counts as changed
_LOOKED_AT: Final = 1000  # inserts and deletes that are examined; beyond that, any node may have been inserted or deleted
_OF_WHAT_STAYS: Final = frozenset(("update", "edit"))  # changes that neither insert nor delete a node
_STAMPS: Final = count(1)  # shared by all databases of a process, so that no stamp is ever used twice


def next_stamp() -> int:
    """Return a stamp that is newer than all earlier ones."""
    return next(_STAMPS)


class Shown(NamedTuple):
    """What an answer shows of the nodes of a kind.

    `rows` are the ids of the nodes in the answer, `above` the ids of their ancestors, whose names it shows. `orders` are the
    parents (0: the top level) whose children's positions it shows; `children` are the parents for which it depends on which
    children they have, and in which order. With `members`, the answer depends on which nodes exist; if `up_to` is given, only on
    those with ids up to this one, and on the number of the others. With `whole`, it depends on everything about the kind.
    """

    kind: str
    rows: tuple[int, ...] = ()
    above: tuple[int, ...] = ()
    orders: tuple[int, ...] = ()
    children: tuple[int, ...] = ()
    members: bool = False
    whole: bool = False
    up_to: int | None = None


class NodeChange(NamedTuple):
    """An entry of the journal. `parent` is the node's parent before the change, for an insert its new parent; 0 is the top level.

    `change` is "insert", "update" or "delete"; "edit" for an update that leaves name and parent as they were; "order" if children
    of `parent` have other positions (`id` is 0 then); or "all" if anything may have changed.
    """

    kind: str
    id: int
    parent: int
    change: str


@dataclass(slots=True)
class _Kind:
    """The stamps of the last changes of a kind: of the kind as a whole, and by node or parent."""

    whole: int = 0
    members: int = 0
    came_or_went: list[tuple[int, int]] = field(default_factory=list)  # (stamp, id) of inserted and deleted nodes, the latest last
    rows: dict[int, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)  # by node: its name or parent was changed
    orders: dict[int, int] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)

    def add(self, change: NodeChange, stamp: int) -> None:
        """Note a change. `whole`, which `has_changed` reads first, is written last."""
        if change.change == "order":
            self.orders[change.parent] = self.children[change.parent] = stamp
        else:
            self.rows[change.id] = stamp
            if change.change != "edit":
                self.places[change.id] = stamp
            if change.change not in _OF_WHAT_STAYS:
                self.came_or_went.append((stamp, change.id))
                self.members = self.children[change.parent] = stamp
        self.whole = stamp

    def has_changed(self, shown: Shown, since: int, *, but_total: bool = False) -> bool:
        if self.whole <= since:
            return False
        return (
            shown.whole
            or (shown.members and self.members > since and not (but_total and self._came_or_went_behind(shown.up_to, since)))
            or _is_newer(self.rows, shown.rows, since)
            or _is_newer(self.places, shown.above, since)
            or _is_newer(self.orders, shown.orders, since)
            or _is_newer(self.children, shown.children, since)
        )

    def _came_or_went_behind(self, up_to: int | None, since: int) -> bool:
        """Return whether all nodes inserted or deleted since have ids above `up_to`; False if there are too many to examine."""
        if up_to is None:
            return False
        for number, (stamp, node) in enumerate(reversed(self.came_or_went)):
            if stamp <= since:
                return True
            if node <= up_to or number >= _LOOKED_AT:
                return False
        return True


def _is_newer(stamps: dict[int, int], wanted: tuple[int, ...], since: int) -> bool:
    for one in wanted:  # noqa: SIM110  # `any` takes two to seven times as long, and this is asked of each answer after each commit
        if stamps.get(one, 0) > since:
            return True
    return False


class Changes:
    """What this process knows of changes. One thread writes; any thread may ask.

    Whoever asks must have read `stamp` first: everything up to that stamp is recorded here by then.
    """

    def __init__(self) -> None:
        self.stamp = next(_STAMPS)
        self._floor = self.stamp  # what was read under an older stamp counts as changed
        self._kinds: dict[str, _Kind] = {}
        self._noted = 0

    def add(self, changes: Iterable[NodeChange]) -> None:
        """Record the changes of nodes that the entries describe, and that anything other than nodes may have changed too."""
        stamp = next(_STAMPS)
        for change in changes:
            if change.change == "all":
                self.drop_everything()
                return
            if (kind := self._kinds.get(change.kind)) is None:
                kind = self._kinds[change.kind] = _Kind()
            kind.add(change, stamp)
            self._noted += 1
        if self._noted > _REMEMBERED:
            self.drop_everything()
        else:
            self.stamp = stamp

    def drop_everything(self) -> None:
        """Count everything as changed."""
        stamp = next(_STAMPS)
        self._floor = stamp  # set first: a thread that finds the new dictionary must find the new floor too
        self._kinds = {}
        self._noted = 0
        self.stamp = stamp

    def has_changed(self, shown: tuple[Shown, ...] | None, since: int, *, but_total: bool = False) -> bool:
        """Return whether something that an answer shows has changed since the stamp `since`, which was read before the answer.

        With `but_total`, a change in the number of nodes after those that it shows does not count: see `Shown.up_to`.
        """
        if shown is None:
            return self.stamp != since
        kinds = self._kinds
        for one in shown:
            kind = kinds.get(one.kind)
            if kind is not None and kind.has_changed(one, since, but_total=but_total):
                return True
        return self._floor > since
