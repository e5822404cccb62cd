"""The filters and sort orders of lists, as SQL conditions on `nodes` or on the old rows in the change journal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Contains, JsonMember, NodeIdIn, TextIn, WithoutIndex
from trellis.store.nodes import is_inside, leads_inside
from trellis.store.tables import nodes

SortBy = Literal["id", "name", "position", "createdAt", "updatedAt"]
SORT_COLUMNS: Final[Mapping[SortBy, str]] = {  # `position` is no column: see `siblings.POSITION`
    "id": "id",
    "name": "name_key",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}

ONE_OF: Final = "__one_of"  # a suffix of a field's name: the filter lists several values of the field
_BY_ID: Final = frozenset({"ids", "candidates", "matches"})  # filters that are lists of ids
DIRECT: Final = frozenset({"ids", "externalIds", "name"})  # filters whose results are not stored: they find their matches directly
_Column = Callable[[str], sa.ColumnElement[Any]]
_FILTERS: Final[Mapping[str, Callable[[_Column], sa.ColumnElement[bool]]]] = {
    "ids": lambda column: NodeIdIn(column("id"), "ids"),
    "candidates": lambda column: NodeIdIn(column("id"), "candidates"),  # the results of the search index: see search.py
    "matches": lambda column: NodeIdIn(column("id"), "matches"),  # nodes known to match: see results.py
    "externalIds": lambda column: TextIn(column("external_id"), "externalIds"),
    "name": lambda column: sa.and_(column("name_key") == bindparam("name_key"), column("name") == bindparam("name")),
    "search": lambda column: Contains(column("name_key"), "search"),
    "updatedSince": lambda column: column("updated_at") >= bindparam("updatedSince"),
    "inside": lambda column: is_inside(column("id")),
    "other_than": lambda column: column("id") != bindparam("other_than"),
    "leads_inside": lambda column: leads_inside(column("kind"), column("id"), column("parent_id")),
    "top": lambda column: column("parent_id").is_(None),
    "parent": lambda column: column("parent_id") == bindparam("parent"),
}


def match(names: Sequence[str], table: sa.Table = nodes, *, without_index: bool = False) -> sa.ColumnElement[bool]:
    """Build the condition that a row is of `:kind` and passes the filters.

    A name that is not a filter is a field of the kind. The parameters are named as the filters, except that `name`
    also has `:name_key`, `leads_inside` has `:inside`, and `top` has none. `without_index` keeps SQLite from looking rows up by one
    of the columns or fields.
    """

    def column(name: str) -> sa.ColumnElement[Any]:
        return WithoutIndex(table.c[name]) if without_index else table.c[name]

    def field(name: str) -> sa.ColumnElement[bool]:
        member = JsonMember(table.c["fields"], name.removesuffix(ONE_OF))
        found = WithoutIndex(member) if without_index else member
        return TextIn(found, name) if name.endswith(ONE_OF) else found == bindparam(name)

    if without_index:  # few rows are examined
        names = ["leads_inside" if name == "inside" else name for name in names]
    kind = [table.c.kind == bindparam("kind")] if _BY_ID.isdisjoint(names) else []  # otherwise it is part of the conditions on ids
    return sa.and_(*kind, *(_FILTERS[name](column) if name in _FILTERS else field(name) for name in names))
