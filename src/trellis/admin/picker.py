"""Choosing a node by a search in the names: what is offered, with scripts and without."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.page import PREFIX, Visit
from trellis.core.fields import parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.store.nodes import outline

SEARCH: Final = "_search."  # before a picker's name: what was typed into its search
_SEARCHED: Final = "_searched."  # what its matches were found by
_OFFERED: Final = 12
_LONGEST: Final = 255


@dataclass(frozen=True, slots=True)
class Offer:
    """A node that can be chosen."""

    id: int
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Picker:
    """A choice of one node. `nothing` names the choice of none, if there is one; `more` is how many matches are not shown."""

    name: str
    label: str
    help: str
    source: str
    value: str
    nothing: str
    offers: tuple[Offer, ...]
    search: str
    more: int
    changed: bool
    fault: str = ""

    @property
    def id(self) -> str:
        """The id of its element."""
        return "field-" + self.name.lstrip("_").replace(".", "-")


async def pick(  # noqa: PLR0913  # a picker is declared in one place, word by word
    visit: Visit,
    kind: NodeKind,
    name: str,
    value: str,
    *,
    label: str,
    help: str = "",  # noqa: A002  # the word of the panel
    nothing: str = "",
    without: int = 0,
    fault: str = "",
) -> Picker:
    """Make a picker of nodes of a kind, with the matches of the search that was sent. `without` is not offered."""
    search = searchable(visit.form.get(SEARCH + name, ""))
    parents = name != "_copy"
    found, more = await offers(visit, kind, search, parents=parents, without=without)
    chosen = await _chosen(visit, kind, value)
    if chosen is not None:
        found = (chosen, *(offer for offer in found if offer.id != chosen.id))
    return Picker(
        name=name,
        label=label,
        help=help,
        source=f"{PREFIX}/{kind.name}/find?not={without}&parents={int(parents)}",
        value=value if chosen is not None else "",
        nothing=nothing,
        offers=found,
        search=search,
        more=more,
        changed=search != visit.form.get(_SEARCHED + name, ""),
        fault=fault,
    )


def searchable(text: str) -> str:
    """Give what was typed into a search as lists take it."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:_LONGEST]


async def _chosen(visit: Visit, kind: NodeKind, value: str) -> Offer | None:
    number = parse_whole_number(value)
    if number is None or number < 1:
        return None
    try:
        return _offer((await visit.perform(kind.operation("get"), target=min(number, 2**63 - 1))).value)
    except Refused:
        return None


async def offers(visit: Visit, kind: NodeKind, search: str, *, parents: bool, without: int) -> tuple[tuple[Offer, ...], int]:
    """Find nodes by their names; without a search the first ones at the top level. Give how many more there are."""
    asked: dict[str, Any] = {"perPage": _OFFERED}
    if search:
        asked |= {"search": search, "sortBy": "name"}
    else:
        asked |= {"sortBy": "position" if kind.ordered else "name"} | ({"parentId": "root"} if kind.tree else {})
    found = (await visit.perform(kind.operation("list"), asked)).value
    records = [record for record in found["results"] if not (parents and kind.leaf_only(record))]
    if without:
        ids = [record["id"] for record in records]
        below = await visit.read(lambda tx: {i for i in ids if any(n.id == without for n in outline.find_path(tx, kind.name, i))})
        records = [record for record in records if record["id"] not in below]
    return tuple(map(_offer, records)), max(0, found["totalResults"] - _OFFERED) if search else 0


def _offer(record: Mapping[str, Any]) -> Offer:
    name = record["name"]
    return Offer(record["id"], name, record.get("path", name).removesuffix(name).removesuffix(" > "))
