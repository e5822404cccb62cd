"""A community that Hypothesis changes: what the tests have in common that let it make up sequences of changes."""

from typing import ClassVar

from hypothesis.stateful import RuleBasedStateMachine

from tests.conftest import NewSettings, runner
from tests.fixture_types import Run
from trellis.compose import compose


class CommunityMachine(RuleBasedStateMachine):
    """A community in a database of its own, which is dropped at the end."""

    new_settings: ClassVar[NewSettings]

    def __init__(self) -> None:
        super().__init__()
        self.database = type(self).new_settings()
        self.gate = compose(self.database)
        self.run: Run = runner(self.gate)

    def teardown(self) -> None:
        """End: close the database, and drop it."""
        self.gate.store.close()
        type(self).new_settings.drop(self.database)
