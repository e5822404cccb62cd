"""A kind's nodes as its page lists them: levels of a tree, some of them open, or a flat list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin.forms import read_id, read_ids
from trellis.admin.nodes.versions import node_version
from trellis.admin.page import PageRequest
from trellis.admin.submitted import parse_page_number
from trellis.core.fields import EVERYONE, Boolean, Color
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.sentences import say

PER_LEVEL: Final = 100
MOST_OPEN: Final = 40  # nodes, in the address of a page
_MAX_ROWS: Final = 400  # on one page, besides its first level; further levels are shown on pages of their own
_GUESTS: Final = "guests"  # the built-in group of visitors who have not signed in
_MAX_DEPTH: Final = 8  # levels below each other on one page; deeper nodes are shown on a page of their own


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node in its level. `count` is the number of its children; `level` contains them if it is open.

    `toggle` is the address that opens or closes the node. If `on_own_page`, or if too many nodes are open to open this one as well,
    it is the address of the page that shows its children.
    """

    record: Mapping[str, Any]
    count: int
    leaf_only: bool
    version: str
    toggle: str
    on_own_page: bool
    level: "Level | None" = None


@dataclass(frozen=True, slots=True)
class Level:
    """Some children of a node, or of the top level (`parent` is None); `left` is how many come after them."""

    parent: int | None
    rows: tuple[NodeRow, ...]
    total: int
    page: int
    pages: int
    left: int


@dataclass(frozen=True, slots=True)
class TreeQuery:
    """The query in a tree's address: the node whose children are shown, which page of them, and which nodes are open."""

    under: int | None = None
    page: int = 1
    open: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> "TreeQuery":
        """Read the query of an address; invalid values are ignored."""
        opened = read_ids([query.get("open", "")])[:MOST_OPEN]
        return cls(read_id(query.get("under", "")), parse_page_number(query), frozenset(opened))

    def address(self, kind: NodeKind, *, toggle: int = 0) -> str:
        """Return the address, without /admin, with one node opened or closed."""
        opened = self.open ^ {toggle} if toggle else self.open
        values = {"under": self.under, "page": self.page if self.page > 1 else None}
        query = {name: str(value) for name, value in values.items() if value}
        if opened or toggle:
            query["open"] = ",".join(str(number) for number in sorted(opened))
        return f"/{kind.name}?{urlencode(query, safe=',')}" + (f"#node-{toggle}" if toggle else "")


async def read_level(request: PageRequest, kind: NodeKind, query: TreeQuery, depth: int = 0) -> Level:
    """Read one page of a level, and the levels below its open nodes."""
    return await _LevelReader(request, kind, query).read(query.under, query.page, depth)


class _LevelReader:
    """Reads the levels of one page, within its limits."""

    def __init__(self, request: PageRequest, kind: NodeKind, query: TreeQuery) -> None:
        self._request, self._kind, self._query = request, kind, query
        self._rows_left = _MAX_ROWS

    async def read(self, parent: int | None, page: int, depth: int) -> Level:
        raw: dict[str, Any] = {"perPage": PER_LEVEL, "page": page}
        if self._kind.tree:
            raw["parentId"] = "root" if parent is None else parent
        found = await self._request.fetch(f"{self._kind.name}.level", raw)
        pairs = zip(found["results"], found["children"], strict=True)
        rows = [await self._row(record, count, depth) for record, count in pairs]
        left = max(0, found["totalResults"] - page * PER_LEVEL)
        return Level(parent, tuple(rows), found["totalResults"], page, found["totalPages"], left)

    async def _row(self, record: Mapping[str, Any], count: int, depth: int) -> NodeRow:
        number = record["id"]
        wanted = bool(count) and number in self._query.open
        here = depth + 1 < _MAX_DEPTH and not (wanted and self._rows_left <= 0)
        below = None
        if here and wanted:
            self._rows_left -= min(count, PER_LEVEL)
            below = await self.read(number, 1, depth + 1)
        is_toggled = here and (number in self._query.open or len(self._query.open) < MOST_OPEN)
        toggle = self._query.address(self._kind, toggle=number) if is_toggled else TreeQuery(number).address(self._kind)
        return NodeRow(record, count, self._kind.leaf_only(record), node_version(record), toggle, on_own_page=not here, level=below)


def node_badges(kind: NodeKind, record: Mapping[str, Any]) -> list[str]:
    """Return the words that are shown beside a node's name: of choices that lists filter by, and of derived facts."""
    choices: list[str] = [say(str(record[f.name]).capitalize()) for f in kind.fields if f.listed and record[f.name] != f.default]
    derived = (f for f in kind.response_fields if f.read_only and isinstance(f.type, Boolean))
    return choices + [say(f.label) for f in derived if record[f.name] is True]


def node_colour(kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Return a node's colour, or ""."""
    return next((record[f.name] or "" for f in kind.fields if isinstance(f.type, Color)), "")


def find_guests(kinds: Iterable[NodeKind]) -> frozenset[int]:
    """Find the built-in groups of visitors who have not signed in."""
    return frozenset(number for one in kinds for number, name in one.built_in.items() if one.is_group and name == _GUESTS)


def describe_lock(guests: frozenset[int], kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Return a text on who cannot view a node; "" if guests can. A kind's first option is the right to see that a node exists."""
    option = next(iter(kind.options), "")
    who = record.get("permissions", {}).get(option, EVERYONE) if option else EVERYONE
    if who == EVERYONE or not guests.isdisjoint(who):
        return ""
    may = say(option)
    return say("Guests cannot {option} it", option=may) if who else say("Nobody may {option} it", option=may)


async def tree_address(request: PageRequest, kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Return the address, without /admin, of the page that shows a node among its siblings.

    If its ancestors cannot be read now, it is that of the node: what has just been written is told in any case.
    """
    number = record["id"]
    if not kind.ordered:
        return f"/{kind.name}/{number}"
    try:
        path = (await request.fetch(f"{kind.name}.ancestors", {"ids": [number]}))[number] if kind.tree else []
    except Refused:
        return f"/{kind.name}/{number}"
    if not path:
        return _level_address(kind, None, record["position"], number)
    shallow = len(path) <= _MAX_DEPTH and all(node["position"] < PER_LEVEL for node in path[1:])
    if not shallow:
        return _level_address(kind, path[-1]["parentId"], path[-1]["position"], number)
    opened = frozenset(node["id"] for node in path[:-1])
    return TreeQuery(None, path[0]["position"] // PER_LEVEL + 1, opened).address(kind) + f"#node-{number}"


def _level_address(kind: NodeKind, parent: int | None, position: int, number: int) -> str:
    return TreeQuery(parent, position // PER_LEVEL + 1).address(kind) + f"#node-{number}"
