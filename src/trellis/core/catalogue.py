"""The catalogue: every operation there is, by its name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from trellis.core.operation import Operation
from trellis.errors import Refused
from trellis.sentences import say


class Catalogue(Mapping[str, Operation]):
    """All operations by name, in sections. A section is loaded when it is needed: a command at the terminal needs only one.

    A section that is named after a resource, such as `keys`, contains the operations on that resource.
    """

    def __init__(self, sections: Mapping[str, Callable[[], Iterable[Operation]]]) -> None:
        self._sections = sections
        self._loaded: dict[str, dict[str, Operation]] = {}
        self._found: dict[str, Operation] = {}

    def __getitem__(self, name: str) -> Operation:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, name: str) -> Operation:
        """Return an operation; refuse an unknown name."""
        if (operation := self._found.get(name)) is None:
            resource = name.partition(".")[0]
            operation = self._load(resource).get(name) if resource in self._sections else None
            if (operation := operation or self._all.get(name)) is None:
                raise Refused("UNKNOWN_OPERATION", say("There is no operation '{name}'. `trellis routes` lists them.", name=name))
            self._found[name] = operation
        return operation

    def _load(self, section: str) -> dict[str, Operation]:
        if section not in self._loaded:
            self._loaded[section] = {operation.name: operation for operation in self._sections[section]()}
        return self._loaded[section]

    @cached_property
    def _all(self) -> dict[str, Operation]:
        return {name: operation for section in self._sections for name, operation in self._load(section).items()}

    @property
    def grantable(self) -> tuple[Operation, ...]:
        """The operations that a key can be granted, in the order of the catalogue."""
        return tuple(operation for operation in self.values() if operation.is_grantable)
