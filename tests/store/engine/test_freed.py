"""What a write was given is freed when the write has ended, and not when the next one comes or all memory is searched."""

import gc
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.wait import wait_until
from trellis.errors import Refused
from trellis.store.engine import Transaction
from trellis.store.engine.store import Store


class Large:
    """Stands for the values of a large request."""


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def _accept(_given: Large, _tx: Transaction) -> None:
    pass


def _refuse(given: Large, _tx: Transaction) -> None:
    try:
        _refuse_within(given)
    except Refused as problem:
        raise Refused("BATCH_REFUSED", "It is refused.", facts={"problem": problem}) from None


def _refuse_within(given: Large) -> None:
    raise Refused("BUSY", f"{given} is too large.")


@pytest.mark.parametrize("work", [_accept, _refuse])
def test_what_a_write_was_given_is_freed_when_it_has_ended(store: Store, work: Any) -> None:
    given = Large()
    is_there = weakref.ref(given)
    written = store.write(partial(work, given))
    del given
    refused = written.exception(60)
    assert isinstance(refused, Refused) is (work is _refuse)
    del written, refused
    wait_until(lambda: is_there() is None)
