"""What a list of nodes is filtered and sorted by, as conditions on the rows of nodes or on what they were before."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import AmongOf, Beside, Holds, Member
from trellis.store.tables import nodes

SortBy = Literal["id", "name", "position", "createdAt", "updatedAt"]
SORT: Final[Mapping[SortBy, str]] = {  # `position` is no column: see ordered.py
    "id": "id",
    "name": "name_key",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}

_BOUNDING: Final = frozenset({"ids", "candidates", "found"})  # filters that name the ids
_Column = Callable[[str], sa.ColumnElement[Any]]
_FILTERS: Final[Mapping[str, Callable[[_Column], sa.ColumnElement[bool]]]] = {
    "ids": lambda column: AmongOf(column("id"), "ids"),
    "candidates": lambda column: AmongOf(column("id"), "candidates"),  # see search.py
    "found": lambda column: AmongOf(column("id"), "found"),  # see memory.py
    "search": lambda column: Holds(column("name_key"), "search"),
    "updatedSince": lambda column: column("updated_at") >= bindparam("updatedSince"),
    "top": lambda column: column("parent_id").is_(None),
    "parent": lambda column: column("parent_id") == bindparam("parent"),
}


def where(names: Sequence[str], table: sa.Table = nodes, *, aside: bool = False) -> sa.ColumnElement[bool]:
    """Write the condition that rows are of `:kind` and pass these filters; `aside`: so that none leads SQLite to an index."""

    def column(name: str) -> sa.ColumnElement[Any]:
        return Beside(table.c[name]) if aside else table.c[name]

    def own(name: str) -> sa.ColumnElement[bool]:
        member = Member(table.c["fields"], name)
        return (Beside(member) if aside else member) == bindparam(name)

    kind = table.c.kind if _BOUNDING.isdisjoint(names) else Beside(table.c.kind)
    passed = (_FILTERS[name](column) if name in _FILTERS else own(name) for name in names)
    return sa.and_(kind == bindparam("kind"), *passed)
