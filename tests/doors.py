"""The doors of the service as fixtures: in this process, and as a running one. The folders that use them import them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.caller import Caller
from tests.cast import MakeKey
from tests.service import Service
from tests.soon import soon
from tests.witness import Witness
from trellis.asgi import Application
from trellis.core.gate import Gate
from trellis.settings import Settings

MakeCaller = Callable[..., Caller]


class MakeService(Protocol):
    """Starts `trellis serve` over this test's database, with options and settings: `serve(rate_limit=10)`."""

    def __call__(self, *, options: Sequence[str] = (), descriptors: int | None = None, **changes: Any) -> Service: ...


def listening(gate: Gate) -> Gate:
    """Have a gate follow what others change, as one does that serves, so that what it answers comes from memory."""
    gate.store.listen()
    soon(lambda: gate.store.data_version() is not None, 10)
    return gate


@pytest.fixture
def caller(gate: Gate, settings: Settings, key: MakeKey) -> Iterator[MakeCaller]:
    """Open the API in this process with settings of one's own: `caller(key_in_url=True)`."""
    listening(gate)
    with ExitStack() as opened:

        def make(key_text: str = "", /, **changes: Any) -> Caller:
            roof = Application(settings.model_copy(update=changes), gate)
            made = Caller(roof, key_text or key("*", name="Everything"))
            opened.callback(made.close)
            return made

        yield make


@pytest.fixture
def api(caller: MakeCaller) -> Caller:
    """The API in this process, on either engine, for a caller who may do everything."""
    return caller()


@pytest.fixture
def witness(gate: Gate) -> Witness:
    """See what is changed."""
    return Witness(gate)


@pytest.fixture
def serve(settings: Settings, tmp_path: Path) -> Iterator[MakeService]:
    """Start `trellis serve` over this test's database, with settings of one's own."""
    with ExitStack() as running:

        def start(*, options: Sequence[str] = (), descriptors: int | None = None, **changes: Any) -> Service:
            made = Service(settings.model_copy(update=changes), tmp_path, options=options, descriptors=descriptors)
            return running.enter_context(made)

        yield start


@pytest.fixture
def service(serve: MakeService) -> Service:
    """The service in a process of its own, over HTTP."""
    return serve()
