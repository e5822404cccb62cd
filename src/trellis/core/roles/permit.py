"""Permits: a role and the kinds that it is for, resolved to the operations of the catalogue."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from trellis.core.roles.table import ROLES, Named, Role, find_role, is_match

_READS: Final = frozenset(("get", "list"))  # the verbs that read the records of a resource


@dataclass(frozen=True, slots=True)
class Permit:
    """What an administrator who is not an owner may do: by a role, which may be for some kinds only (none named: for all).

    `resources` are the resources whose records the role may read, and so whatever the event log contains about them.
    """

    role: Role
    kinds: tuple[str, ...]
    operations: frozenset[str]
    resources: frozenset[str]


class Permits:
    """The permits of all roles, in a community with these operations and kinds of nodes. Each is resolved once.

    `load` returns the operations, the names of all kinds, and the names of the kinds whose nodes are groups.
    """

    def __init__(self, load: Callable[[], tuple[Iterable[Named], Collection[str], Collection[str]]]) -> None:
        self._load = load
        self._found: dict[tuple[str, str | None], Permit | None] = {}

    @cached_property
    def _all(self) -> tuple[tuple[Named, ...], frozenset[str], frozenset[str]]:
        operations, kinds, groups = self._load()
        return tuple(operations), frozenset(kinds), frozenset(groups)

    def find(self, role: str, kinds: str | None = None) -> Permit | None:
        """Return the permit of a role, for some kinds, separated by commas, or for all. None: an owner, who may do everything."""
        if (role, kinds) not in self._found:
            self._found[role, kinds] = self._resolve(find_role(role), tuple(kinds.split(",")) if kinds else ())
        return self._found[role, kinds]

    def _resolve(self, role: Role, kinds: tuple[str, ...]) -> Permit | None:
        if role.is_owner:
            return None
        operations, known, groups = self._all
        chosen = known.intersection(kinds) if kinds else known
        names = frozenset(
            one.name for one in operations if any(is_match(pattern, one, chosen, groups - chosen) for pattern in role.patterns)
        )
        resources = (name.removesuffix(f".{read}") for name in names for read in _READS if name.endswith(f".{read}"))
        return Permit(role, kinds, names, frozenset(resources))

    def list_roles(self, name: str) -> list[Role]:
        """Return the roles that may run an operation if they are for all kinds."""
        operations, known, _ = self._all
        those = [one for one in operations if one.name == name]
        return [role for role in ROLES.values() if any(is_match(pattern, one, known) for one in those for pattern in role.patterns)]
