"""Reading very many nodes, each of which may have long texts, within a limit of memory."""

from collections.abc import Mapping, Sequence
from sys import getsizeof
from typing import Any, Final

from trellis.store.engine import Transaction
from trellis.store.nodes.rows import AT_ONCE, Node, find_by_ids, split_into_batches

MOST_BYTES: Final = 64 * 2**20  # bytes of nodes that are in memory together
_NODE: Final = 1024  # bytes of a node without its texts, about
_FEW: Final = 20  # nodes that are read at once on an event loop
_NUMBER: Final = 40  # bytes of a number in a list, about


class TooMuch(Exception):
    """There are more nodes than allowed or, if `mib` is given, their texts take more than so many MiB."""

    def __init__(self, mib: int | None = None) -> None:
        super().__init__()
        self.mib = mib


class Room:
    """How many more nodes may be read, and how many more bytes they may take."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.size = MOST_BYTES

    def take(self, node: Node) -> None:
        """Subtract the bytes of a node that was read. Raises TooMuch."""
        self.take_bytes(weigh_node(node))

    def take_bytes(self, count: int) -> None:
        """Subtract so many bytes. Raises TooMuch."""
        self.size -= count
        if self.size < 0:
            raise TooMuch(MOST_BYTES >> 20)


def weigh_node(node: Node) -> int:
    """Return approximately how many bytes of memory a node takes."""
    return _NODE + weigh(node.fields) + weigh(node.permissions)


def weigh(value: Mapping[str, Any] | None) -> int:
    """Return approximately how many bytes the value of a JSON column takes in memory: the same on both engines; 0 for None."""
    size = 0
    for part in (value or {}).values():  # most parts are none of these, and a call for each would double the time of a list
        if isinstance(part, str):
            size += getsizeof(part)
        elif isinstance(part, list):
            size += _NUMBER * len(part)
        elif isinstance(part, dict):
            size += weigh(part)
    return size


def read_nodes(tx: Transaction, kind: str, ids: Sequence[int], room: Room) -> list[Node]:
    """Read nodes in the order of the list of ids; those that do not exist are left out. Raises TooMuch.

    At most the nodes of one statement are read beyond the room.
    """
    tx.check_brief(_NODE * len(ids))
    room.nodes -= len(ids)
    if room.nodes < 0:
        raise TooMuch
    read: list[Node] = []
    free = room.size
    for batch in split_into_batches(ids, _FEW if tx.is_brief else AT_ONCE):
        found = find_by_ids(tx, kind, batch)
        for node in (found[number] for number in batch if number in found):
            room.take(node)
            read.append(node)
        tx.check_brief(free - room.size)
    return read
