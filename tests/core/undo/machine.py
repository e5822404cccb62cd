"""A community that Hypothesis changes and in which it undoes changes: what such tests have in common."""

from typing import Final

from hypothesis.stateful import invariant

from tests.core.machine import CommunityMachine
from tests.node_rows import Rows, read_rows

_CHECKED: Final = 4  # states from one check of everything to the next: it takes longer than the step does
_BUILT_IN: Final = 4  # groups


class UndoMachine(CommunityMachine):
    """A community in a database of its own, of which everything is checked now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.states = 0

    def teardown(self) -> None:
        """End: what is wrong in a state, and what later ones have left of it, is found here at the latest."""
        try:
            self.check_everything()
        finally:
            super().teardown()

    def check_everything(self) -> None:
        assert self.run("check.list")["problems"] == []  # a number that is missing in the log is one

    @invariant()
    def nothing_is_wrong(self) -> None:
        self.states += 1
        if self.states % _CHECKED == 0:
            self.check_everything()

    def rows(self) -> Rows:
        """Every row of every kind, as it is kept."""
        return read_rows(self.gate)

    def pick(self, kind: str, number: int) -> int | None:
        """Choose a node that is there, by a number that may be too large."""
        ids = sorted(id for name, id in self.rows() if name == kind and id > (_BUILT_IN if kind == "groups" else 0))
        return ids[number % len(ids)] if ids else None
