"""The parameters of a list of nodes: filters and sorting, and the query built from them."""

from collections.abc import Sequence
from typing import Any, Final

from trellis.core.fields import (
    Anything,
    Choice,
    Choices,
    ExternalId,
    ExternalIds,
    Field,
    Ids,
    Input,
    NodeId,
    ParentId,
    Text,
    Timestamp,
)
from trellis.core.kind import NodeKind
from trellis.core.paging import PAGING, parse_paging
from trellis.store.engine import Shown
from trellis.store.lists import ONE_OF, Query, SortBy
from trellis.store.nodes import Node, fold_name

_AS_SENT: Final = ("ids", "externalIds", "under", "name", "updatedSince")  # filters that have the same names in the store
INCLUDE: Final = Field(
    "include",
    Choices(Choice({"childCount": "The number of its children."})),
    "What else to include in each record: `childCount`, the number of its children.",
    brief="",
)
_SORT_BY: Final = Field(
    "sortBy",
    Choice(
        {
            "id": "By id.",
            "name": "By name, ignoring case.",
            "position": "By position among the siblings.",
            "createdAt": "By time of creation.",
            "updatedAt": "By time of the last change.",
        }
    ),
    "What to sort by. Records with equal values are sorted by id.",
    default="id",
)
_SORTING: Final = (
    _SORT_BY,
    Field("sortDir", Choice({"asc": "Ascending.", "desc": "Descending."}), "The sort direction.", default="asc"),
)


def list_fields(kind: NodeKind) -> tuple[Field, ...]:
    """Return the parameters of a kind's list."""
    parent = Field(
        "parentId",
        ParentId(filter=True),
        "Only the children of this node; `root` is the top level.",
        also=("parent",),
        example="root",
        brief="root: top level",
    )
    doc = f"Only the children of the {kind.singular} with this external id."
    external_parent = Field("parentExternalId", ExternalId(), doc, for_agents=False)
    doc = f"Only what is below this {kind.singular}, at any depth."
    under = Field("under", NodeId(), doc, brief="at any depth")
    filters = (
        Field("ids", Ids(), "Only records with these ids, separated by commas.", example=[1, 2]),
        *((parent, external_parent) if kind.tree else ()),
        Field("externalIds", ExternalIds(), "Only records with these external ids, separated by commas."),
        *((under,) if kind.tree else ()),
        Field("name", Text(255, 1), "Only records with exactly this name.", brief="exact"),
        Field("search", Text(255), "Only records whose name contains this text, ignoring case.", brief="in names"),
        *(_filter_of(f) for f in kind.fields if f.listed),
        Field("updatedSince", Timestamp(), "Only records changed at or after this time.", brief=""),
    )
    more = (INCLUDE,) if kind.tree else ()
    return (*PAGING, *filters, *_SORTING, *more, Field("clubs", Anything(), "Accepted for older clients and ignored."))


def _filter_of(field: Field) -> Field:
    if isinstance(field.type, Choice):
        return Field(field.name, Choices(field.type), f"Only records with this {field.name}, or one of several.", also=field.also)
    return Field(field.name, field.type, f"Only records with this {field.name}.", also=field.also)


def shown_by_list(given: Input, query: Query, found: Sequence[Node], shown: Shown) -> Shown:
    """Return what a list depends on, given the nodes on its page and what their records show.

    A page in the order of ids depends on which nodes exist. If it is full and nothing is left out, only its total depends on the
    nodes behind it, such as new ones. A page of the children of one node depends on which children it has and in which order. Every
    other list is taken to depend on all nodes, since a change to a node that is not on the page may bring it there.
    """
    if INCLUDE.name not in given:
        if query.sort_by == "id" and query.filters.keys() <= {"ids"}:
            is_full = not (query.filters or query.descending or query.part) and len(found) == query.limit
            return shown._replace(members=True, up_to=found[-1].id if is_full else None)
        if query.sort_by in {"id", "position"} and query.filters.keys() in ({"top"}, {"parent"}):
            parent = query.filters.get("parent", 0)
            return shown._replace(children=(parent,), rows=(parent, *shown.rows))  # it may be given by its external id
    return Shown(shown.kind, whole=True)


def build_query(kind: NodeKind, given: Input) -> tuple[Query, int, int]:
    """Build the store's query from a list's parameters; return it with the page number and size."""
    page, per_page = parse_paging(given)
    filters: dict[str, Any] = {name: given.get(name) for name in _AS_SENT if name in given}
    for name, value in ((f.name, given.get(f.name)) for f in kind.fields if f.listed and f.name in given):
        several = isinstance(value, tuple) and len(value) > 1
        filters[f"{name}{ONE_OF}" if several else name] = value[0] if isinstance(value, tuple) and not several else value
    if search := given.get("search"):
        filters["search"] = fold_name(search)
    if "parentId" in given:
        parent = given.get("parentId")
        filters |= {"top": True} if parent is None else {"parent": parent}
    sort_by: SortBy = given.get(_SORT_BY.name, _SORT_BY.default)
    return Query(filters, sort_by, given.get("sortDir") == "desc", per_page, (page - 1) * per_page), page, per_page
