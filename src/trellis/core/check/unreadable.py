"""Reports values in the database that cannot be read. Checks that would have to read them are skipped."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from trellis.core.check.soundness import ProblemGroup, build_finding
from trellis.sentences import say, say_many
from trellis.store.check import UnreadableValue

_RESOURCES: Final = {"api_keys": "keys", "administrators": "admins"}  # where the name of the table is another one


def tell_unreadable(found: Sequence[UnreadableValue]) -> Iterator[ProblemGroup]:
    """Yield a finding for each value of a record, and one for all values in a column of a table whose rows have no id."""
    for one in found:
        if one.id is not None:
            detail = say("its {column} cannot be read. Restore a backup.", column=one.column)
            yield build_finding(_find_resource(one), one.id, "unreadable", detail)
    for (resource, column), count in Counter((_find_resource(one), one.column) for one in found if one.id is None).items():
        detail = say_many(
            count,
            "the {column} of {count:,} row cannot be read. Restore a backup.",
            "the {column} of {count:,} rows cannot be read. Restore a backup.",
            column=column,
        )
        yield build_finding(resource, None, "unreadable", detail)


def list_unreadable(found: Iterable[UnreadableValue]) -> frozenset[str]:
    """Return the tables that have such values (keys and administrators by the names of their resources), and the kinds of nodes."""
    return frozenset(name for one in found for name in (_RESOURCES.get(one.table, one.table), one.kind) if name is not None)


def _find_resource(one: UnreadableValue) -> str:
    return one.kind if one.table == "nodes" and one.kind else _RESOURCES.get(one.table, one.table)
