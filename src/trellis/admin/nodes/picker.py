"""A picker: a control that chooses one node by a search for its name, with scripts and without."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin import PREFIX
from trellis.admin.forms import read_id
from trellis.admin.nodes.names import path_above
from trellis.admin.page import PageRequest
from trellis.admin.submitted import ACTION
from trellis.core.nodes import NodeKind
from trellis.sentences import say

SEARCH: Final = "_search."  # before a picker's name: what was typed into its search
_SEARCHED: Final = "_searched."  # the search that found its options
_MAX_OPTIONS: Final = 12
_MAX_READ: Final = 10  # pages of matches that are read to find as many that can be chosen
_MAX_SEARCH: Final = 255  # characters


@dataclass(frozen=True, slots=True)
class Option:
    """A node that can be chosen. `path` contains the names of the nodes above it."""

    id: int
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Picker:
    """A choice of one node.

    `none` is the label of the choice of no node, "" if it is not offered; `more` is how many matches follow, see `find_options`.
    """

    name: str
    label: str
    help: str
    source: str
    value: str
    none: str
    options: tuple[Option, ...]
    search: str
    more: int
    fault: str = ""

    @property
    def id(self) -> str:
        """The id of its element."""
        return "field-" + self.name.lstrip("_").replace(".", "-")


async def build_picker(  # noqa: PLR0913  # a picker is declared in one call
    request: PageRequest,
    kind: NodeKind,
    name: str,
    value: str,
    *,
    label: str,
    help: str = "",  # noqa: A002  # the word that the panel uses
    none: str = "",
    exclude: Sequence[int] = (),
    parents: bool = True,
    fault: str = "",
) -> Picker:
    """Build a picker of nodes of a kind, with the matches of the search that was sent.

    Nodes in `exclude` and all nodes below them are not offered. With `parents`, only nodes that can have children are offered.
    """
    search = clean_search(request.form.get(SEARCH + name, ""))
    found, more = await find_options(request, kind, search, parents=parents, exclude=exclude)
    chosen = await _find_chosen(request, kind, value)
    if chosen is not None:
        found = (chosen, *(option for option in found if option.id != chosen.id))
    elif read_id(value) is not None:  # without a notice, the form would be sent with no node, mostly for the top level
        fault = fault or say("This {singular} has already been deleted.", singular=kind.singular)
    return Picker(
        name=name,
        label=label,
        help=help,
        source=f"{PREFIX}/{kind.name}/find?not={','.join(map(str, exclude))}&parents={int(parents)}",
        value=value if chosen is not None else "",
        none=none,
        options=found,
        search=search,
        more=more,
        fault=fault,
    )


def is_search(form: Mapping[str, str], pickers: Iterable[str], action: str) -> bool:
    """Return whether a form was sent to search, and not to do what its button `action` does. `pickers` are their names.

    Enter sends the form without a button; that is a search if a search was typed that has not been run.
    """
    pressed = form.get(ACTION, "")
    return pressed != action if pressed else has_new_search(form, pickers)


def has_new_search(form: Mapping[str, str], pickers: Iterable[str]) -> bool:
    """Return whether a form was sent with a search other than the one that found its options.

    This is never so where a script searches while one types.
    """
    typed = {name: form.get(SEARCH + name, "") for name in pickers}
    return any(clean_search(text) != clean_search(form.get(_SEARCHED + name, text)) for name, text in typed.items())


def clean_search(text: str) -> str:
    """Return a typed search as list operations accept it: without control characters, and cut to their limit."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:_MAX_SEARCH]


async def _find_chosen(request: PageRequest, kind: NodeKind, value: str) -> Option | None:
    number = read_id(value)
    record = None if number is None else await request.find(kind.operation("get"), number)
    return None if record is None else _option(record)


async def find_options(
    request: PageRequest, kind: NodeKind, search: str, *, parents: bool, exclude: Sequence[int]
) -> tuple[tuple[Option, ...], int]:
    """Find nodes by name, or the first ones at the top level without a search. Return them and the number of further matches.

    Some of the further matches, which were not read, may not be available.
    """
    raw: dict[str, Any] = {"perPage": _MAX_OPTIONS + 1}  # one more, which shows that there are more
    if search:
        raw |= {"search": search, "sortBy": "name"}
    else:
        raw |= {"sortBy": "position" if kind.ordered else "name"} | ({"parentId": "root"} if kind.tree else {})
    options: list[Option] = []
    unread = 0
    for page in range(1, _MAX_READ + 1):
        found = await request.fetch(kind.operation("list"), {**raw, "page": page})
        options += map(_option, await _leave_out(request, kind, found["results"], parents=parents, exclude=exclude))
        unread = max(0, found["totalResults"] - page * raw["perPage"])
        if not unread or len(options) > _MAX_OPTIONS:
            break
    more = len(options[_MAX_OPTIONS:]) + unread
    return tuple(options[:_MAX_OPTIONS]), more if search else 0


async def _leave_out(
    request: PageRequest, kind: NodeKind, records: Sequence[Mapping[str, Any]], *, parents: bool, exclude: Sequence[int]
) -> list[Mapping[str, Any]]:
    """Return the records that can be chosen. See `build_picker`."""
    records = [record for record in records if not (parents and kind.leaf_only(record))]
    if not (exclude and kind.tree and records):
        return records
    unwanted = frozenset(exclude)
    paths = await request.fetch(f"{kind.name}.ancestors", {"ids": [record["id"] for record in records]})
    return [record for record in records if unwanted.isdisjoint(node["id"] for node in paths[record["id"]])]


def _option(record: Mapping[str, Any]) -> Option:
    return Option(record["id"], record["name"], path_above(record))
