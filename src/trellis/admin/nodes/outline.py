"""A kind's nodes as its page lists them: levels of a tree, of which some are open, or one row after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin.conflicts import own
from trellis.admin.page import Visit
from trellis.core.fields import MAX_ID, Boolean, Color, Field
from trellis.core.nodes import NodeKind
from trellis.store import siblings
from trellis.store.nodes import outline

PER_LEVEL: Final = 100
_MOST_OPEN: Final = 40
_MOST_ROWS: Final = 400  # on one page, beside its first level; what would come after them leads to a page of its own too
_DEEPEST: Final = 8  # levels below each other on one page; further down a node leads to a page of its own


@dataclass(frozen=True, slots=True)
class Row:
    """One node in its level. `count` is the number of its children; `level` holds them if it is open.

    `toggle` is the address that opens or closes it; where it `leads_away`, its children are shown on a page of their own.
    """

    record: Mapping[str, Any]
    count: int
    leaf_only: bool
    version: str
    toggle: str
    leads_away: bool
    level: "Level | None" = None


@dataclass(frozen=True, slots=True)
class Level:
    """Some children of a node, or of the top level (`parent` is None); `left` is how many come after them."""

    parent: int | None
    rows: tuple[Row, ...]
    total: int
    page: int
    pages: int
    left: int


@dataclass(frozen=True, slots=True)
class Wish:
    """What the address asks for: the node whose children are shown, the page of them, and which nodes are open."""

    under: int | None = None
    page: int = 1
    open: frozenset[int] = frozenset()

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "Wish":
        """Read it from an address; what makes no sense there is passed over."""
        opened = [number for word in query.get("open", "").split(",")[:_MOST_OPEN] if (number := _number(word))]
        return cls(_number(query.get("under", "")) or None, _number(query.get("page", "")) or 1, frozenset(opened))

    def address(self, kind: NodeKind, *, toggle: int = 0) -> str:
        """Write it as the end of an address, with one node opened or closed."""
        opened = self.open ^ {toggle} if toggle else self.open
        values = {"under": self.under, "page": self.page if self.page > 1 else None}
        told = {name: value for name, value in values.items() if value} | ({"open": _listed(opened)} if opened or toggle else {})
        return f"/{kind.name}?{urlencode(told, safe=',')}" + (f"#node-{toggle}" if toggle else "")


def _number(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 19 and int(word) <= MAX_ID else 0


def _listed(ids: frozenset[int]) -> str:
    return ",".join(str(number) for number in sorted(ids))


async def level(visit: Visit, kind: NodeKind, wish: Wish, depth: int = 0) -> Level:
    """Read one page of a level, and the levels of those of its nodes that are open."""
    return await _Reading(visit, kind, wish).level(wish.under, wish.page, depth)


class _Reading:
    """The reading of one page of the tree."""

    def __init__(self, visit: Visit, kind: NodeKind, wish: Wish) -> None:
        self._visit, self._kind, self._wish = visit, kind, wish
        self._room = _MOST_ROWS

    async def level(self, parent: int | None, page: int, depth: int) -> Level:
        kind = self._kind
        asked: dict[str, Any] = {"sortBy": "position", "perPage": PER_LEVEL, "page": page}
        if kind.tree:
            asked["parentId"] = "root" if parent is None else parent
        found = (await self._visit.perform(kind.operation("list"), asked)).value
        counts = await _counts(self._visit, kind, [record["id"] for record in found["results"]])
        rows = [await self._row(record, counts.get(record["id"], 0), depth) for record in found["results"]]
        left = max(0, found["totalResults"] - page * PER_LEVEL)
        return Level(parent, tuple(rows), found["totalResults"], page, found["totalPages"], left)

    async def _row(self, record: Mapping[str, Any], count: int, depth: int) -> Row:
        number = record["id"]
        wanted = bool(count) and number in self._wish.open
        here = depth + 1 < _DEEPEST and not (wanted and self._room <= 0)
        below = None
        if here and wanted:
            self._room -= min(count, PER_LEVEL)
            below = await self.level(number, 1, depth + 1)
        toggle = self._wish.address(self._kind, toggle=number) if here else Wish(number).address(self._kind)
        return Row(record, count, self._kind.leaf_only(record), own(record), toggle, leads_away=not here, level=below)


async def _counts(visit: Visit, kind: NodeKind, ids: list[int]) -> dict[int, int]:
    return await visit.read(lambda tx: siblings.count_children_by_parent(tx, kind.name, ids)) if kind.tree else {}


def _telling(kind: NodeKind) -> tuple[tuple[Field, ...], tuple[Field, ...], Field | None]:
    """Choose the fields that are told beside a name: choices that lists filter by, what is so by itself, and the colour."""
    chosen = tuple(f for f in kind.fields if f.listed)
    so = tuple(f for f in kind.answered if f.read_only and isinstance(f.type, Boolean))
    return chosen, so, next((f for f in kind.fields if isinstance(f.type, Color)), None)


def marks(kind: NodeKind, record: Mapping[str, Any]) -> list[str]:
    """Give the few words that stand beside a node's name."""
    chosen, so, _ = _telling(kind)
    words = [str(record[f.name]).capitalize() for f in chosen if record[f.name] != f.default]
    return words + [f.label for f in so if record[f.name] is True]


def colour(kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Give a node's colour, or ""."""
    field = _telling(kind)[2]
    return "" if field is None else record[field.name] or ""


async def shown_at(visit: Visit, kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Give the address, without /admin, at which a node is seen among its siblings."""
    number = record["id"]
    if not kind.ordered:
        return f"/{kind.name}/{number}"
    way = await visit.read(lambda tx: outline.find_path(tx, kind.name, number)) if kind.tree else []
    if not way:
        return _among(kind, None, record["position"], number)
    shallow = len(way) <= _DEEPEST and all(node.position < PER_LEVEL for node in way[1:])
    if not shallow:
        return _among(kind, way[-1].parent_id, way[-1].position, number)
    opened = frozenset(node.id for node in way[:-1])
    return Wish(None, way[0].position // PER_LEVEL + 1, opened).address(kind) + f"#node-{number}"


def _among(kind: NodeKind, parent: int | None, position: int, number: int) -> str:
    return Wish(parent, position // PER_LEVEL + 1).address(kind) + f"#node-{number}"
