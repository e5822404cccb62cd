"""How new connections come in."""

import asyncio
import socket
from contextlib import ExitStack

import uvloop

from trellis.cli.workers import repeat_listeners


def test_new_connections_are_taken_many_in_a_turn_of_the_event_loop() -> None:
    """They wait in the system until then, and a turn takes long while many connections are busy."""

    async def count_turns(wanted: int) -> int:
        taken: list[asyncio.BaseTransport] = []

        class Taken(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                taken.append(transport)

        with ExitStack() as open_ones:
            listener = open_ones.enter_context(socket.create_server(("127.0.0.1", 0), backlog=wanted))
            loop = asyncio.get_running_loop()
            servers = [await loop.create_server(Taken, sock=one, backlog=wanted) for one in repeat_listeners([listener])]
            for _ in range(wanted):
                open_ones.enter_context(socket.create_connection(listener.getsockname()))
            turns = 0
            while len(taken) < wanted and turns < wanted:
                turns += 1
                await asyncio.sleep(0)
            for server in servers:
                server.close()
            for transport in taken:
                transport.close()
        return turns

    assert uvloop.run(count_turns(200)) < 20
