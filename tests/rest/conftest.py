"""What the tests of the REST API may ask for beside the database, the gate and the sample community."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.api_fixtures import api, make_api, serve, service
from trellis.core.catalogue import Catalogue
from trellis.http.api import rate_limits, windows
from trellis.rest.docs import reference
from trellis.settings import Settings

__all__ = ["api", "make_api", "serve", "service"]


def _known(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes something of a catalogue, once for each with the same arguments, in whichever database the service is."""
    found: dict[Any, tuple[Catalogue, Any]] = {}

    def find(catalogue: Catalogue, *others: Any) -> Any:
        name = (id(catalogue), *(replace(one, database_url="") if isinstance(one, Settings) else one for one in others))
        if name not in found:
            found[name] = catalogue, make(catalogue, *others)  # with the catalogue, whose id is nobody else's while it is kept
        return found[name][1]

    return find


@pytest.fixture(scope="session", autouse=True)
def _reference_made_once() -> Iterator[None]:
    """Let services with the same operations and settings share their reference and OpenAPI document: each would take a second."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("document", "render_pages"):
            patch.setattr(reference, name, _known(getattr(reference, name)))
        yield


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
    monkeypatch.setattr(rate_limits, "time", stopped)
    monkeypatch.setattr(windows, "time", stopped)
    return stopped
