"""What a list of nodes is filtered and sorted by, as SQL conditions on `nodes`, or on what was there before a change."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Contains, JsonMember, NodeIdIn, WithoutIndex
from trellis.store.tables import nodes

SortBy = Literal["id", "name", "position", "createdAt", "updatedAt"]
SORT_COLUMNS: Final[Mapping[SortBy, str]] = {  # `position` is no column: see `siblings.POSITION`
    "id": "id",
    "name": "name_key",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}

_BY_ID: Final = frozenset({"ids", "candidates", "matches"})  # filters that list the ids
_Column = Callable[[str], sa.ColumnElement[Any]]
_FILTERS: Final[Mapping[str, Callable[[_Column], sa.ColumnElement[bool]]]] = {
    "ids": lambda column: NodeIdIn(column("id"), "ids"),
    "candidates": lambda column: NodeIdIn(column("id"), "candidates"),  # what the search index gives: see search.py
    "matches": lambda column: NodeIdIn(column("id"), "matches"),  # what is known to match: see results.py
    "search": lambda column: Contains(column("name_key"), "search"),
    "updatedSince": lambda column: column("updated_at") >= bindparam("updatedSince"),
    "top": lambda column: column("parent_id").is_(None),
    "parent": lambda column: column("parent_id") == bindparam("parent"),
}


def match(names: Sequence[str], table: sa.Table = nodes, *, without_index: bool = False) -> sa.ColumnElement[bool]:
    """Build the condition that a row is of `:kind` and passes the filters, each of which takes the parameter of its name.

    A name that is no filter is a field of the kind. `without_index` keeps SQLite from looking rows up by any of the filters.
    """

    def column(name: str) -> sa.ColumnElement[Any]:
        return WithoutIndex(table.c[name]) if without_index else table.c[name]

    def field(name: str) -> sa.ColumnElement[bool]:
        member = JsonMember(table.c["fields"], name)
        return (WithoutIndex(member) if without_index else member) == bindparam(name)

    kind = table.c.kind if _BY_ID.isdisjoint(names) else WithoutIndex(table.c.kind)
    conditions = (_FILTERS[name](column) if name in _FILTERS else field(name) for name in names)
    return sa.and_(kind == bindparam("kind"), *conditions)
