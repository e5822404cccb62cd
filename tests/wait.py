"""Waiting for what another thread or process does. No test asserts how long it takes: a crowded machine is not a failure."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import pytest

from trellis.store import log_search

GIVE_UP: Final = 120.0  # seconds after which something counts as never happening


def search_patiently(patch: pytest.MonkeyPatch) -> None:
    """Let no search end for want of time, which on a crowded machine it would; tests of that say so."""
    patch.setattr(log_search, "LONGEST", GIVE_UP)


def wait_until(holds: Callable[[], object], *, at_once: bool = False) -> None:
    """Ask until something holds; fail if it still does not after two minutes, or, `at_once`, when it is asked first."""
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert not at_once, "not so at once"
        assert waited < GIVE_UP, "still not so"
        time.sleep(min(max(0.005, waited / 20), 0.05))  # to ask is work, and others want the time


async def wait_in_loop_until(holds: Callable[[], object]) -> None:
    """Do the same beside the other tasks of an event loop."""
    deadline = time.monotonic() + GIVE_UP
    while not holds():
        assert time.monotonic() < deadline, f"still not so after {GIVE_UP:.0f} s"
        await asyncio.sleep(0.005)
