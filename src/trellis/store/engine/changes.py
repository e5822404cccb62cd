"""What commits have changed: which of the answers in memory are still right.

A commit says what it has changed in the change journal, `node_changes`, which triggers on `nodes` write in its own transaction;
only that the order of siblings has changed is noted by the code that changes it (`store.siblings`). An answer says what it shows:
it is right for as long as nothing of that has changed, and one that does not say it, for as long as nothing at all has.

Times are *stamps*: numbers that only grow, in a process. A stamp is given to what is learnt, never to when it happened, so that it
may be newer than the change, and an answer is dropped too early rather than too late.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

MOST: Final = 300  # entries of the journal that are looked at; after more of them everything counts as changed
_REMEMBERED: Final = 50_000  # nodes and orders whose changes are remembered
_LOOKED_AT: Final = 1000  # of the nodes that came or went since, after which any may have
_OF_WHAT_STAYS: Final = frozenset(("update", "edit"))
_STAMPS: Final = count(1)  # of all databases of a process, so that no stamp ever comes back


def next_stamp() -> int:
    """Return a stamp newer than all there are."""
    return next(_STAMPS)


class Shown(NamedTuple):
    """What an answer shows of the nodes of a kind.

    `rows` are the ids of the nodes in it, `above` of those above them, of which it shows the names; `orders` are the parents (0:
    the top level) whose children's positions it shows, and `children` those of whose children it depends which they are, and in
    which order. `members`: it depends on which nodes there are; with `up_to`, on those with ids up to this one, and of the others
    only on how many they are. `whole`: it depends on everything about the kind.
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
    """An entry of the journal. `parent` is that of the node before the change, after it for an insert; 0 is the top level.

    `change` is insert, update, delete; edit, an update that leaves name and parent as they were; order, for which `id` is 0:
    children of `parent` have other positions; or all: everything.
    """

    kind: str
    id: int
    parent: int
    change: str


@dataclass(slots=True)
class _Kind:
    """When what of a kind was changed last."""

    whole: int = 0
    members: int = 0
    came_or_went: list[tuple[int, int]] = field(default_factory=list)  # when which node did, the latest last
    rows: dict[int, int] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)  # name or parent
    orders: dict[int, int] = field(default_factory=dict)
    children: dict[int, int] = field(default_factory=dict)

    def add(self, change: NodeChange, stamp: int) -> None:
        """Note a change. What `has_changed` reads last is written last."""
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
        """Return whether of the nodes that came or went since none has an id up to this one."""
        if up_to is None:
            return False
        for number, (stamp, node) in enumerate(reversed(self.came_or_went)):
            if stamp <= since:
                return True
            if node <= up_to or number >= _LOOKED_AT:
                return False
        return True


def _is_newer(stamps: dict[int, int], wanted: tuple[int, ...], since: int) -> bool:
    return any(stamps.get(one, 0) > since for one in wanted)


class Changes:
    """What has been learnt of changes. One thread writes, any may ask.

    The stamp under which it was asked for must have been read before: then everything up to it is known here.
    """

    def __init__(self) -> None:
        self.stamp = next(_STAMPS)
        self._floor = self.stamp  # what is older counts as changed
        self._kinds: dict[str, _Kind] = {}
        self._noted = 0

    def add(self, changes: Iterable[NodeChange]) -> None:
        """Take in what commits have changed: nodes as the entries say, and whatever else there is besides nodes."""
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
        self._floor = stamp  # first: who finds the new dictionaries is to find it too
        self._kinds = {}
        self._noted = 0
        self.stamp = stamp

    def has_changed(self, shown: tuple[Shown, ...] | None, since: int, *, but_total: bool = False) -> bool:
        """Return whether something that an answer shows has changed since it was read, after the stamp `since` was.

        With `but_total` the number of the nodes behind those that it shows does not count: see `Shown.up_to`.
        """
        if shown is None:
            return self.stamp != since
        kinds = self._kinds
        for one in shown:
            kind = kinds.get(one.kind)
            if kind is not None and kind.has_changed(one, since, but_total=but_total):
                return True
        return self._floor > since
