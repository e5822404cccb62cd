"""Exporting our community as the answers that Invision Community would give, by the declarations of its dialect."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from trellis.core.dialect import FindGroups, Who, serialize_record
from trellis.core.fields import EVERYONE
from trellis.core.hello import HELLO as GREETING
from trellis.core.kind import NodeKind
from trellis.invision.answers import HELLO
from trellis.invision.present import Ask, list_all, list_pages
from trellis.invision.suite import choose_known, find_dialect_kind, find_paths
from trellis.kinds.invision import INVISION

_GREETING: Final = ("communityName", "communityUrl", "ipsVersion")  # without the key, which our answer also contains


def export_answers(
    ask: Ask, kinds: Sequence[NodeKind], per_page: int, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Iterator[tuple[str, Any]]:
    """Yield the answers with their names in a folder: the greeting, each page of each list, and each record.

    `ask` runs an operation and returns its value. Raises ReadingFailed if nodes are deleted meanwhile.
    """
    known = choose_known(kinds)
    find_groups = _find_groups(ask, known)
    greeting = serialize_record(INVISION.answers[GREETING.name], ask(GREETING.name, {}), find_groups)
    yield HELLO, {member: greeting[member] for member in _GREETING}
    for kind in known:
        path, members, done = find_paths(kind)[0], find_dialect_kind(kind).members, 0
        for page in list_pages(ask, kind, per_page):
            shown = [serialize_record(members, record, find_groups) for record in page["results"]]
            yield f"{path}/page-{page['page']}", {**page, "results": shown}
            yield from ((f"{path}/{record['id']}", record) for record in shown)
            done += len(shown)
            progress(done, page["totalResults"])


def _find_groups(ask: Ask, kinds: Sequence[NodeKind]) -> FindGroups:
    """Return a function that finds groups by their ids, in the form in which the suite shows them."""
    shown: dict[int, dict[str, Any]] = {}

    def find(who: Who) -> list[dict[str, Any]]:
        wanted = shown if who == EVERYONE else who
        return [shown[one] for one in wanted if isinstance(one, int) and one in shown]

    for kind in (kind for kind in kinds if kind.is_group):
        shown |= {record["id"]: serialize_record(find_dialect_kind(kind).members, record, find) for record in list_all(ask, kind)}
    return find
