"""A guard against reads that wait for the network on an event loop, where all other requests of the process would wait, too."""

import sys
from asyncio import _get_running_loop  # as `get_running_loop`, but for None instead of an exception
from types import FrameType
from typing import Final

import pytest

from trellis.store.engine import Store, Transaction

_INTERFACES: Final = ("trellis.http.", "trellis.rest.", "trellis.admin.", "trellis.mcp.")


def refuse_network_waits(patch: pytest.MonkeyPatch) -> None:
    """Let a read on PostgreSQL fail where an interface begins it in the thread of an event loop that runs."""
    acquire = Store.acquire_reader

    def guarded(store: Store) -> Transaction:
        if not store.reads_inline and _get_running_loop() is not None:
            assert not _is_called_by_an_interface(sys._getframe(1)), "a read waits for the network on the event loop"
        return acquire(store)

    patch.setattr(Store, "acquire_reader", guarded)


def _is_called_by_an_interface(frame: FrameType | None) -> bool:
    """Return whether an interface has led to this call, and not a test: an interface may call one of these."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith(_INTERFACES):
            return True
        if name.startswith("tests."):
            return False
        frame = frame.f_back
    return False
