"""What the tests of the REST API may ask for beside the database, the gate and the sample community."""

from dataclasses import dataclass

import pytest

from tests.api_fixtures import api, database, make_api, serve, service
from trellis.http.api import limits, windows

__all__ = ["api", "database", "make_api", "serve", "service"]


@dataclass
class StoppedTime:
    """Stands in for the module `time`, and moves only when the test moves it; the time of day by `set_by` more."""

    now: float = 1000.0
    set_by: float = 0.0

    def time(self) -> float:
        return self.now + self.set_by

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def stopped_time(monkeypatch: pytest.MonkeyPatch) -> StoppedTime:
    """Time that stands still for the limits of requests."""
    stopped = StoppedTime()
    monkeypatch.setattr(limits, "time", stopped)
    monkeypatch.setattr(windows, "time", stopped)
    return stopped
