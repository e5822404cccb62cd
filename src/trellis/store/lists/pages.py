"""Pages of nodes: filtered, sorted and counted, without reading many more rows than they contain.

An unfiltered page by id is found by counting deleted ids, a page by position from the tree of siblings. Other pages
near the beginning or the end of their order are read with OFFSET, and those in between from a page anchor.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from trellis.store import nodes, siblings
from trellis.store.counters import read_total
from trellis.store.engine import Row, Transaction
from trellis.store.lists import journal, search, statements
from trellis.store.lists.filters import DIRECT, ONE_OF, SortBy
from trellis.store.lists.inside import BY_ID, find_ids_inside
from trellis.store.lists.results import MAX_IDS, Anchor, MaterialisedResult, Order
from trellis.store.lists.statements import Columns, Start, Strategy
from trellis.store.nodes import AT_ONCE, Node, Room, decode_node, deleted_ids, fold_name, read_nodes

_MAX_SKIPPED: Final = 1000  # rows that OFFSET may skip before an anchor is used instead
_ANCHOR_DISTANCE: Final = 500  # ranks from one anchor to the next, at least
_ALWAYS_SORTED: Final = 200  # up to so many matches are always sorted
_MAX_CANDIDATES: Final = 5000  # names that a search compares one by one; a twentieth of all if that is less, but at least 200
_MAX_ORDERED: Final = 50_000  # up to so many nodes inside a bound are also kept in each order that is asked for, besides by id
_ALL_INSIDE: Final = frozenset({("inside",), ("other_than", "inside")})  # filters that select all of a part, or all below its root
_ALL_CHILDREN: Final = frozenset({("parent",), ("top",)})  # filters that select all children of one parent


class NodePart(NamedTuple):
    """A part of the nodes of a kind: those with the ids in `roots` and, if the kind is a tree, all nodes below them."""

    roots: tuple[int, ...]
    is_tree: bool


@dataclass(frozen=True)
class Query:
    """A query for a page of a list.

    `filters` may contain ids, externalIds, name, search (folded as `name_key` is), updatedSince, top (True), parent, under, and
    fields of the kind by name, or by name and ONE_OF for several values; `matches` alone are the ids of nodes that are known to
    match. With `part`, pages contain only the nodes of that part.
    """

    filters: Mapping[str, Any]
    sort_by: SortBy = "id"
    descending: bool = False
    limit: int = 25
    offset: int = 0
    part: NodePart | None = None


def read_page(tx: Transaction, kind: str, query: Query) -> tuple[int, list[Node]]:
    """Return the number of nodes on all pages, and the nodes of one page: none beyond the last page. Raises TooMuch (text)."""
    if query.part is not None:
        query = _narrow(tx, kind, query, query.part)
    if "under" in query.filters:
        query = _look_under(query)
    total, page = _Page(tx, kind, query).count()
    return total, page.read(total) if query.offset < total else []


def _narrow(tx: Transaction, kind: str, query: Query, part: NodePart) -> Query:
    """Turn `part` into the cheapest filter: none if the other filters imply it, a few ids, or a condition on each node."""
    filters, roots = dict(query.filters), part.roots
    above = {filters[name] for name in ("parent", "under") if name in filters}
    if above - nodes.find_inside(tx, kind, roots, above):  # below what is outside there is nothing, as if it did not exist
        filters["ids"] = ()
    elif above:  # all nodes below it are inside too
        return replace(query, part=None)
    elif "ids" in filters:
        filters["ids"] = sorted(nodes.find_inside(tx, kind, roots, filters["ids"]))
    elif not part.is_tree or "top" in filters:  # at the top level, only roots are inside
        filters["ids"] = roots
    else:
        filters |= _inside(filters, roots)
    return replace(query, filters=filters, part=None)


def _look_under(query: Query) -> Query:
    """Turn `under` into filters for what is inside that node, and is not the node itself."""
    filters = dict(query.filters)
    root = filters.pop("under")
    return replace(query, filters=filters | _inside(filters, (root,)) | {"other_than": root})


def _inside(filters: Mapping[str, Any], roots: tuple[int, ...]) -> dict[str, Any]:
    """Return the filter for what is inside the roots: if the other filters find few rows, each of these is checked."""
    return {"inside" if DIRECT.isdisjoint(filters) else "leads_inside": roots}


def _choose_columns(rows: int) -> Columns:
    """Return the columns that one statement may read or sort for so many rows: for many, only ids, to read them in batches."""
    return statements.WHOLE if rows <= AT_ONCE else statements.ONLY_IDS


class _Page:
    """A page of a query: `count` says how many nodes match, and which page to `read`."""

    def __init__(self, tx: Transaction, kind: str, query: Query) -> None:
        self.tx = tx
        self.query = query
        self.names = tuple(sorted(query.filters))
        self.params = {"kind": kind} | {name: value for name, value in query.filters.items() if name != "top"}
        # The key of the stored result. Queries that list ids are not stored, so ids are not part of it.
        self.cache_key = (kind, self.names, *(query.filters[name] for name in self.names if name not in {"ids", "matches"}))
        self.is_direct = self.names == ("matches",) or not DIRECT.isdisjoint(self.names)
        for name in self.names:
            if name in {"ids", "externalIds", "inside", "matches"} or name.endswith(ONE_OF):
                self.params[name] = tx.id_list(query.filters[name])
        if "leads_inside" in self.names:
            self.params["inside"] = tx.id_list(query.filters["leads_inside"])
        if "name" in self.names:
            self.params["name_key"] = fold_name(query.filters["name"])

    # --- how many -------------------------------------------------------------------------------------------------

    def count(self) -> "tuple[int, _Page]":
        """Count the matches; also return the page to read, which is this one, or the same by the ids of the matches if known."""
        if not self.names:
            return read_total(self.tx, self.params["kind"]), self
        if self.names in _ALL_CHILDREN:
            return siblings.count_children(self.tx, self.params["kind"], self.query.filters.get("parent")), self
        if self.is_direct:
            return int(self.tx.fetch(statements.count_matches(self.names), **self.params)[0][0]), self
        if self.names in _ALL_INSIDE:
            return self._count_inside()
        result = self._kept_result()
        if result is None or result.total is None:
            result = self._compute_result()
            self._keep(result)
        if result.ids is None:
            return result.total or 0, self
        by_id = self.query.sort_by == "id"
        return result.total or 0, self._by_sorted_ids(sorted(result.ids)) if by_id else self._by_ids(result.ids, self.query.offset)

    def _count_inside(self) -> "tuple[int, _Page]":
        """Count the nodes inside. The page is read by its ids if all ids are in order, or few enough to be sorted."""
        sort_by = self.query.sort_by
        ids = self._find_all_inside(BY_ID)
        total = len(ids)
        if sort_by == "id":
            return total, self._by_sorted_ids(ids)
        if sort_by == "position" or total > _MAX_ORDERED:
            return total, self
        first, last = self.query.offset, self.query.offset + self.query.limit
        return total, self._by_ids(self._find_all_inside((sort_by, self.query.descending))[first:last])

    def _find_all_inside(self, order: Order) -> Sequence[int]:
        filters = self.query.filters
        return find_ids_inside(self.tx, self.params["kind"], filters["inside"], order, filters.get("other_than"))

    def _by_sorted_ids(self, ids: Sequence[int]) -> "_Page":
        """Return this page by its ids, given the ids of all matches in ascending order, if its own order is by id."""
        first, last = self.query.offset, self.query.offset + self.query.limit
        total = len(ids)
        return self._by_ids(ids[max(0, total - last) : max(0, total - first)] if self.query.descending else ids[first:last])

    def _by_ids(self, ids: Collection[int], offset: int = 0) -> "_Page":
        """Return this page as a page of the nodes with these ids, of which `offset` come before it."""
        return _Page(self.tx, self.params["kind"], replace(self.query, filters={"matches": list(ids)}, offset=offset))

    # --- materialised results -------------------------------------------------------------------------------------

    def _compute_result(self) -> MaterialisedResult:
        seq, names, params = journal.find_range(self.tx).last, self.names, self.params
        if "search" in names:
            most = min(_MAX_CANDIDATES, max(_ALWAYS_SORTED, read_total(self.tx, params["kind"]) // 20))
            candidates = search.find_candidates(self.tx, params["kind"], params["search"], most)
            if candidates is not None:
                names, params = (*names, "candidates"), params | {"candidates": self.tx.id_list(candidates)}
        some = self.tx.fetch(statements.find_matches(names), **params, limit=MAX_IDS + 1)
        if len(some) <= MAX_IDS:
            return MaterialisedResult(seq, len(some), frozenset(row[0] for row in some))
        return MaterialisedResult(seq, int(self.tx.fetch(statements.count_matches(names), **params)[0][0]))

    def _kept_result(self) -> MaterialisedResult | None:
        """Return the stored result of this query, brought up to date; None if there is none, or if too much has changed."""
        result: MaterialisedResult | None = self.tx.cache.get(self.cache_key)
        if result is None:
            return None
        delta = journal.find_delta(self.tx, self.cache_key[1], self.params, result.seq)
        if delta is None:
            return None
        if delta.last != result.seq:
            result = result.apply_delta(delta)
            self._keep(result)
        return result

    def _keep(self, result: MaterialisedResult) -> None:
        self.tx.cache.put(self.cache_key, result)

    # --- which ----------------------------------------------------------------------------------------------------

    def read(self, total: int) -> list[Node]:
        """Read the nodes of the page, given the number of matches. Raises TooMuch."""
        query = self.query
        if query.sort_by == "position":
            return self._read_by_position(total)
        if not self.names and query.sort_by == "id" and query.offset > _MAX_SKIPPED:
            return self._read_by_rank(total)
        if self.is_direct or (not self.names and query.offset <= _MAX_SKIPPED):
            return self._read(total, "filter" if self.names == ("matches",) else "planner", "first", query.offset)
        if query.offset <= _MAX_SKIPPED:
            return self._read(total, self._choose(total, query.offset), "first", query.offset)
        if (behind := total - query.offset - query.limit) <= _MAX_SKIPPED:
            return self._read_from_end(total, max(0, behind))
        return self._read_from_anchor(total)

    def _read_by_position(self, total: int) -> list[Node]:
        """Read a page by position: directly if it lists all children of one parent, otherwise by sorting."""
        query, kind, parent = self.query, self.params["kind"], self.query.filters.get("parent")
        if self.names in _ALL_CHILDREN or (not self.names and siblings.count_children(self.tx, kind, None) == total):
            first = total - query.offset - query.limit if query.descending else query.offset
            bounds = max(0, first), first + query.limit - 1
            columns = _choose_columns(query.limit)
            return self._finish(columns, siblings.read_range(self.tx, kind, parent, *bounds, columns, descending=query.descending))
        columns = _choose_columns(max(query.limit, total))
        statement = statements.page_by_position(columns, self.names, query.descending)
        params = self._page_params(query.offset, query.limit, None)
        return self._finish(columns, self.tx.fetch(statement, **params, end=query.offset + query.limit))

    def _read_by_rank(self, total: int) -> list[Node]:
        """Read a page by id. Ranks are counted from the lowest id, so a descending page is read forwards and reversed."""
        query = self.query
        rank = total - 1 - query.offset if query.descending else query.offset
        first = max(0, rank - query.limit + 1) if query.descending else rank
        start, offset = deleted_ids.find_nth(self.tx, self.params["kind"], first)
        limit = min(query.limit, total - first)
        columns = _choose_columns(limit)
        statement = statements.page_from_id(columns)
        rows = self.tx.fetch(statement, kind=self.params["kind"], start=start, offset=offset, limit=limit)
        return self._finish(columns, rows[rank - first :: -1] if query.descending else rows)

    def _choose(self, total: int, skipped: int) -> Strategy:
        """Choose between sorting the matches and walking along the order, past `skipped` matches and all other rows.

        With matches spread evenly, a walk passes (skipped + limit) × nodes ÷ matches rows; it pays if these are fewer than the
        matches. The engines' statistics do not cover this; SQLite has none at all.
        """
        if not self.names or (self.query.sort_by, self.names) == ("updatedAt", ("updatedSince",)):
            return "planner"
        if self.query.sort_by == "id" and len(self.names) == 1 and self.names[0] in search.INDEXED_FIELDS:
            return "planner"
        if total <= _ALWAYS_SORTED:
            return "filter"
        return "order" if total * total > read_total(self.tx, self.params["kind"]) * (skipped + self.query.limit) else "filter"

    def _read_from_end(self, total: int, behind: int) -> list[Node]:
        limit = min(self.query.limit, total - self.query.offset)
        return self._read(total, self._choose(total, behind), "last", behind, limit)[::-1]

    def _read_from_anchor(self, total: int) -> list[Node]:
        """Walk to a page from the nearest anchor before it, and store anchors along the way."""
        query, order = self.query, (self.query.sort_by, self.query.descending)
        result = self._kept_result() or MaterialisedResult(journal.find_range(self.tx).last)
        at = result.find_anchor(order, query.offset)
        strategy = self._choose(total, query.offset - (at.rank if at else 0))
        if strategy == "filter":  # all matches are sorted in any case, wherever the page begins
            return self._read(total, strategy, "first", query.offset)
        distance, rank = max(_ANCHOR_DISTANCE, total // 1000), at.rank if at else 0
        if last := query.offset - rank:
            statement = statements.anchors(self.names, *order, strategy, "anchor" if at else "first")
            params = self._page_params(0, last + 1, at) | {"distance": distance, "last": last}
            passed = [Anchor(rank + before, *found) for before, *found in self.tx.fetch(statement, **params)]
            self._keep(result.add_anchors(order, passed, distance // 2))
            at = passed[-1]
        return self._read(total, strategy, "anchor", 0, at=at)

    def _read(
        self, total: int, strategy: Strategy, start: Start, offset: int, limit: int | None = None, at: Anchor | None = None
    ) -> list[Node]:
        query = self.query
        limit = limit or query.limit
        columns = _choose_columns(max(limit, total) if strategy == "filter" else limit)
        statement = statements.page(columns, self.names, query.sort_by, query.descending, strategy, start)
        return self._finish(columns, self.tx.fetch(statement, **self._page_params(offset, limit, at)))

    def _finish(self, columns: Columns, rows: Sequence[Row]) -> list[Node]:
        """Return the nodes of `rows`, which are whole or contain only ids, depending on `columns`. Raises TooMuch."""
        if columns is statements.WHOLE:
            if self.tx.is_brief:
                self.tx.check_brief(sum(len(row[4]) + len(row[5]) for row in rows))
            return [decode_node(row, self.tx) for row in rows]
        return read_nodes(self.tx, self.params["kind"], [row[0] for row in rows], Room(len(rows)))

    def _page_params(self, offset: int, limit: int, at: Anchor | None) -> dict[str, Any]:
        anchor = {} if at is None else {"from_key": at.key, "from_id": at.id}
        return self.params | {"offset": offset, "limit": limit} | anchor
