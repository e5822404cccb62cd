"""The catalogue: every operation there is, by its name."""

from collections.abc import Iterable, Iterator, Mapping

from trellis.core.operation import Access, Operation
from trellis.errors import Refused


class Catalogue(Mapping[str, Operation]):
    """All operations by name."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._by_name = {operation.name: operation for operation in operations}

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def find(self, name: str) -> Operation:
        """Return an operation; refuse an unknown name."""
        if (operation := self._by_name.get(name)) is None:
            raise Refused("UNKNOWN_OPERATION", f"There is no operation '{name}'. `trellis routes` lists them.")
        return operation

    @property
    def grantable(self) -> tuple[Operation, ...]:
        """Those that a key can be granted, in their order."""
        return tuple(operation for operation in self.values() if operation.access is Access.GRANTED)
