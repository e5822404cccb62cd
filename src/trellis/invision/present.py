"""What is here already: the nodes of our community by their external ids, and its groups."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trellis.core.kind import NodeKind
from trellis.core.paging import MOST_PER_PAGE
from trellis.core.verbs import LIST
from trellis.invision.answers import ReadingFailed

Ask = Callable[[str, Mapping[str, Any]], Any]


@dataclass(slots=True)
class Present:
    """Our community: the records that have external ids, by kind and external id; and all of its groups."""

    nodes: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    groups: list[Mapping[str, Any]] = field(default_factory=list)

    def find(self, kind: NodeKind, external_id: str) -> Mapping[str, Any] | None:
        """Return the record with an external id; None if there is none."""
        return self.nodes.get(kind.name, {}).get(external_id)


def read_present(ask: Ask, kinds: Iterable[NodeKind]) -> Present:
    """Read our community. `ask` runs an operation and returns its value."""
    present = Present()
    for kind in kinds:
        records = list_all(ask, kind)
        present.nodes[kind.name] = {record["externalId"]: record for record in records if record["externalId"] is not None}
        if kind.is_group:
            present.groups = records
    return present


def list_all(ask: Ask, kind: NodeKind) -> list[Mapping[str, Any]]:
    """Return all records of a kind, by their ids."""
    return [record for page in list_pages(ask, kind, MOST_PER_PAGE) for record in page["results"]]


def list_pages(ask: Ask, kind: NodeKind, per_page: int) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list, by the ids of the records. Raises ReadingFailed if some are deleted meanwhile."""
    number = pages = 1
    total = 0
    while number <= pages:
        page = ask(kind.operation(LIST.name), {"page": number, "perPage": per_page})
        if page["totalResults"] < total:  # what was to come next is on a page that was read already
            raise ReadingFailed(f"Some {kind.title.lower()} were deleted while they were read. Nothing was written; begin again.")
        total = page["totalResults"]
        yield page
        pages = page["totalPages"]
        number += 1
