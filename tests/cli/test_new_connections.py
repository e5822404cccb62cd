"""How new connections are taken."""

import asyncio
import errno
import logging
import socket
from contextlib import ExitStack
from typing import Any

import pytest
import uvloop

from trellis.cli.limits import Acceptor


class Taken(asyncio.Protocol):
    """Counts itself once it has its connection."""

    def __init__(self, taken: list[asyncio.BaseTransport]) -> None:
        self._taken = taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._taken.append(transport)


class Refusing:
    """A listener for which the system has no descriptor the first time that it is asked, as at the end of all of them."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._asked = False

    def accept(self) -> Any:
        """Accept a connection."""
        if not self._asked:
            self._asked = True
            raise OSError(errno.EMFILE, "Too many open files")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


@pytest.fixture
def opened() -> Any:
    with ExitStack() as stack:
        yield stack


def _listen(opened: ExitStack, backlog: int) -> socket.socket:
    return opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=backlog))


def test_new_connections_are_taken_many_in_a_turn_of_the_event_loop(opened: ExitStack) -> None:
    """They wait in the system until then, and a turn takes long while many connections are busy."""

    async def count_turns(wanted: int) -> int:
        taken: list[asyncio.BaseTransport] = []
        listener = _listen(opened, wanted)
        for _ in range(wanted):
            opened.enter_context(socket.create_connection(listener.getsockname()))
        acceptor = Acceptor([listener], lambda: Taken(taken))
        turns = 0
        while len(taken) < wanted and turns < wanted:
            turns += 1
            await asyncio.sleep(0)
        await acceptor.end()
        for transport in taken:
            transport.close()
        return turns

    assert uvloop.run(count_turns(200)) < 20


def test_those_that_nobody_has_counted_yet_are_few(opened: ExitStack) -> None:
    """They have descriptors, which the database needs too."""

    async def find_most() -> tuple[int, int]:
        taken: list[asyncio.BaseTransport] = []
        listener = _listen(opened, 100)
        for _ in range(100):
            opened.enter_context(socket.create_connection(listener.getsockname()))
        acceptor = Acceptor([listener], lambda: Taken(taken), most=8)
        most = 0
        while len(taken) < 100:
            await asyncio.sleep(0)
            most = max(most, len(acceptor._begun))
        await acceptor.end()
        for transport in taken:
            transport.close()
        return most, len(taken)

    assert uvloop.run(find_most()) == (8, 100)


def test_what_was_taken_has_its_protocol_when_no_more_is_taken_and_the_rest_is_left_to_others(opened: ExitStack) -> None:
    async def take_and_end() -> tuple[int, bool]:
        taken: list[asyncio.BaseTransport] = []
        listener = _listen(opened, 8)
        acceptor = Acceptor([listener], lambda: Taken(taken))
        first = opened.enter_context(socket.create_connection(listener.getsockname()))
        while not acceptor._begun and not taken:  # noqa: ASYNC110  # what is waited for has no event
            await asyncio.sleep(0)
        await acceptor.end()
        made = len(taken)
        opened.enter_context(socket.create_connection(listener.getsockname()))
        await asyncio.sleep(0.05)
        for transport in taken:
            transport.close()
        other, _ = listener.accept()  # as another worker would
        other.close()
        return made, len(taken) == made and first.fileno() > 0

    assert uvloop.run(take_and_end()) == (1, True)


def test_the_end_of_descriptors_is_said_and_survived(opened: ExitStack, caplog: pytest.LogCaptureFixture) -> None:
    async def take_one() -> int:
        taken: list[asyncio.BaseTransport] = []
        listener = _listen(opened, 8)
        acceptor = Acceptor([Refusing(listener)], lambda: Taken(taken))  # type: ignore[list-item]  # stands for one
        opened.enter_context(socket.create_connection(listener.getsockname()))
        while not taken:  # noqa: ASYNC110  # the same
            await asyncio.sleep(0.05)
        await acceptor.end()
        for transport in taken:
            transport.close()
        return len(taken)

    with caplog.at_level(logging.ERROR):
        assert uvloop.run(take_one()) == 1
    assert [record.getMessage() for record in caplog.records] == [
        "New connections are not accepted for a moment: Too many open files."
    ]
