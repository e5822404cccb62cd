"""What a list of nodes takes: filters and sorting, and the query they make."""

from typing import Any, Final

from trellis.core.fields import Anything, Choice, Field, Ids, Input, ParentId, Text, Timestamp
from trellis.core.kind import NodeKind
from trellis.core.paging import PAGING, PER_PAGE
from trellis.store.lists import Query, SortBy
from trellis.store.nodes import fold_name

_SORTING: Final = (
    Field(
        "sortBy",
        Choice(
            {
                "id": "By id.",
                "name": "By name, capitals and small letters alike.",
                "position": "By place among the siblings.",
                "createdAt": "By when it was made.",
                "updatedAt": "By when it was last changed.",
            }
        ),
        "What to sort by; what is equal is sorted by id.",
        default="id",
    ),
    Field("sortDir", Choice({"asc": "Upwards.", "desc": "Downwards."}), "Which way.", default="asc"),
)


def list_fields(kind: NodeKind) -> tuple[Field, ...]:
    """Give the parameters of a kind's list."""
    parent = Field(
        "parentId",
        ParentId(filter=True),
        "Only the children of this one; `root` is the top level.",
        also=("parent",),
        example="root",
    )
    filters = (
        Field("ids", Ids(), "Only these ids, with commas between.", example=[1, 2]),
        *((parent,) if kind.tree else ()),
        Field("search", Text(255), "Only those whose name holds this text, capitals and small letters alike."),
        *(Field(f.name, f.type, f"Only those of this {f.name}.", also=f.also) for f in kind.fields if f.listed),
        Field("updatedSince", Timestamp(), "Only those changed at or after this moment."),
    )
    return (*PAGING, *filters, *_SORTING, Field("clubs", Anything(), "Taken for older clients; means nothing here."))


def build_query(kind: NodeKind, given: Input) -> tuple[Query, int, int]:
    """Make the store's query of a list's parameters; give it with the page's number and size."""
    page, per_page = given.get("page", 1), given.get("perPage", PER_PAGE)
    filters: dict[str, Any] = {name: given.get(name) for name in ("ids", "updatedSince") if name in given}
    filters |= {f.name: given.get(f.name) for f in kind.fields if f.listed and f.name in given}
    if search := given.get("search"):
        filters["search"] = fold_name(search)
    if "parentId" in given:
        parent = given.get("parentId")
        filters |= {"top": True} if parent is None else {"parent": parent}
    sort_by: SortBy = given.get("sortBy", "id")
    return Query(filters, sort_by, given.get("sortDir") == "desc", per_page, (page - 1) * per_page), page, per_page
