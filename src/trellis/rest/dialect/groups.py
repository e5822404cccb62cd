"""The groups that an answer in a dialect names, read once for the whole answer."""

from collections.abc import Mapping
from typing import Any

from trellis.core.actor import Actor
from trellis.core.bounds import find_reach
from trellis.core.dialect import Dialect, Who, serialize_record
from trellis.core.fields import EVERYONE
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.paging import MOST_PER_PAGE, read_all, refusing_large_pages
from trellis.core.verbs import LIST
from trellis.core.version import encode_json
from trellis.store.nodes import Room


class AllGroups:
    """All groups that an actor may see, as a dialect shows them, read when the first of them is needed."""

    def __init__(self, gate: Gate, dialect: Dialect, actor: Actor) -> None:
        self._gate = gate
        self._dialect = dialect
        self._actor = actor
        self._found: Mapping[int, dict[str, Any]] | None = None
        self._sizes: Mapping[int, int] = {}
        self._room = Room(0)

    def find(self, who: Who) -> list[dict[str, Any]]:
        """Return the groups with these ids, or all of them, in the order of their ids.

        Raises Refused (PAGE_TOO_LARGE) if the answer, in which many records may each have all groups, becomes too large.
        """
        if self._found is None:
            self._found = self._read()
            self._sizes = {number: len(encode_json(group)) for number, group in self._found.items()}
        named = self._found.keys() if who == EVERYONE else [one for one in who if isinstance(one, int) and one in self._found]
        with refusing_large_pages():
            self._room.take_bytes(sum(self._sizes[one] for one in named))
        return [self._found[one] for one in named]

    def _read(self) -> dict[int, dict[str, Any]]:
        kind = self._gate.environment.group_kind
        dialect_kind = None if kind is None else self._dialect.kinds.get(kind.name)
        if kind is None or dialect_kind is None:
            return {}
        operation = kind.operation(LIST.name)
        # The service reads them, not the caller: the key needs no grant for the groups that a record names. If it has one, its
        # bound applies.
        reader = Actor("service", None, self._dialect.title, frozenset((operation,)))

        def read(page: int) -> Any:
            return self._gate.run(Call(operation, reader, {"page": page, "perPage": MOST_PER_PAGE})).value

        reach = find_reach(self._actor, operation, kind.name)
        found = {one["id"]: one for one in read_all(read) if reach is None or one["id"] in reach.roots}
        return {number: serialize_record(dialect_kind.members, one, self.find) for number, one in sorted(found.items())}
