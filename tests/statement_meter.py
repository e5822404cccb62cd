"""How many statements something runs, which is no stop-watch. One that runs for a list of rows counts once."""

from types import TracebackType
from typing import Any, Self

import pytest

from trellis.store.engine.transaction import Statement, Transaction


class StatementMeter:
    """While it is entered, counts the statements of all transactions."""

    def __init__(self) -> None:
        self.count = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        prepare = Transaction._prepare

        def counted(tx: Transaction, statement: Statement) -> Any:
            self.count += 1
            return prepare(tx, statement)

        self._patch.setattr(Transaction, "_prepare", counted)
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        self._patch.undo()
