"""The present state of our community: its nodes by their external ids, and its groups."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.kind import NodeKind
from trellis.core.verbs import LIST
from trellis.invision.answers import ReadingFailed

Ask = Callable[[str, Mapping[str, Any]], Any]
_PER_PAGE: Final = 100  # the most of the longest records that a page may have


@dataclass(slots=True)
class Present:
    """Our community: the records with external ids, by kind and external id, and all groups."""

    nodes: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    groups: list[Mapping[str, Any]] = field(default_factory=list)

    def find(self, kind: NodeKind, external_id: str) -> Mapping[str, Any] | None:
        """Return the record with an external id; None if there is none."""
        return self.nodes.get(kind.name, {}).get(external_id)


def read_present(ask: Ask, kinds: Iterable[NodeKind]) -> Present:
    """Read our community. `ask` runs an operation and returns its value."""
    present = Present()
    for kind in kinds:
        known = present.nodes[kind.name] = {}
        for record in list_all(ask, kind):
            if record["externalId"] is not None:
                known[record["externalId"]] = record
            if kind.is_group:
                present.groups.append(record)
    return present


def list_all(ask: Ask, kind: NodeKind) -> Iterator[Mapping[str, Any]]:
    """Yield all records of a kind in the order of their ids. Raises ReadingFailed if some are deleted meanwhile."""
    for page in list_pages(ask, kind, _PER_PAGE):
        yield from page["results"]


def list_pages(ask: Ask, kind: NodeKind, per_page: int) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list, ordered by the ids of the records. Raises ReadingFailed if some are deleted meanwhile."""
    operation = kind.operation(LIST.name)
    first = ask(operation, {"sortDir": "desc", "perPage": 1})
    left, highest = first["totalResults"], max((record["id"] for record in first["results"]), default=0)
    number = pages = 1
    while number <= pages:
        page = ask(operation, {"page": number, "perPage": per_page})
        left -= sum(record["id"] <= highest for record in page["results"])
        yield page
        pages = page["totalPages"]
        number += 1
    if left:  # records that were to come next have moved to a page already read, whatever was created behind them
        raise ReadingFailed(f"Some {kind.title.lower()} were deleted while they were read. Nothing was written; begin again.")
