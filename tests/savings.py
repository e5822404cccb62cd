"""Work that would be done again in every test, and changes nothing in what they find."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from types import CodeType

import pytest
from jinja2 import Environment
from jinja2.bccache import Bucket, BytecodeCache


class _CompiledTemplates(BytecodeCache):
    """What templates were compiled to; it is used again only for the same source."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, str, bool], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._compiled.get(self._name(bucket))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._compiled[self._name(bucket)] = bucket.code

    def _name(self, bucket: Bucket) -> tuple[str, str, bool]:
        """Name a template: what the panel and the reference share is compiled for each, since the panel formats values."""
        return bucket.key, bucket.checksum, bucket.environment.finalize is not None


@contextmanager
def known_beforehand() -> Iterator[None]:
    """Find out once what does not change while this process runs tests.

    To compile a template takes longer than most of the tests of pages do, so that all panels share them. httpx looks for a
    package that is not there at each request to a service in this process, in every folder where it could be: for the
    library of the event loop, which is asyncio's.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "__init__", partialmethod(Environment.__init__, bytecode_cache=_CompiledTemplates()))
        patch.setattr("httpx._transports.asgi.is_running_trio", lambda: False)
        yield


def pause_collecting() -> None:
    """Search for no garbage while tests are collected: ten thousand of them stay, and are gone through again and again."""
    gc.disable()


def resume_collecting() -> None:
    """Search for garbage again, but not among what was collected."""
    gc.collect()
    gc.freeze()
    gc.enable()
