"""The API as fixtures: in this process, and as a running service. The conftest of a folder that uses them imports them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.api_client import ApiClient
from tests.fixture_types import MakeKey
from tests.service_process import Program, Service
from tests.wait import wait_until
from trellis.asgi import Application
from trellis.core.gate import Gate
from trellis.settings import Settings

MakeApiClient = Callable[..., ApiClient]


class MakeService(Protocol):
    """Starts `trellis serve` over this test's database, with options and settings: `serve(rate_limit=10)`.

    `program` is what runs instead of the command, with the same arguments.
    """

    def __call__(
        self, *, options: Sequence[str] = (), descriptors: int | None = None, program: Program | None = None, **changes: Any
    ) -> Service: ...


def listen(gate: Gate) -> Gate:
    """Have a gate follow what others change, as one does that serves, so that what it answers comes from memory."""
    gate.store.listen()
    wait_until(lambda: gate.store.data_version() is not None)
    return gate


@pytest.fixture
def make_api(gate: Gate, settings: Settings, key: MakeKey) -> Iterator[MakeApiClient]:
    """Open the API in this process with settings of one's own: `caller(key_in_url=True)`."""
    listen(gate)
    with ExitStack() as opened:

        def make(key_text: str = "", /, **changes: Any) -> ApiClient:
            application = Application(replace(settings, **changes), gate)
            made = ApiClient(application, key_text or key("*", name="Everything"))
            opened.callback(made.close)
            return made

        yield make


@pytest.fixture
def api(make_api: MakeApiClient) -> ApiClient:
    """The API in this process, on either engine, for a caller who may do everything."""
    return make_api()


@pytest.fixture
def serve(settings: Settings, tmp_path: Path) -> Iterator[MakeService]:
    """Start `trellis serve` over this test's database, with settings of one's own."""
    with ExitStack() as running:

        def start(
            *,
            options: Sequence[str] = (),
            descriptors: int | None = None,
            program: Program | None = None,
            **changes: Any,
        ) -> Service:
            made = Service(replace(settings, **changes), tmp_path, options=options, descriptors=descriptors, program=program)
            return running.enter_context(made)

        yield start


@pytest.fixture
def service(serve: MakeService) -> Service:
    """The service in a process of its own, over HTTP."""
    return serve()
