"""Tests of which each case says on which engine it runs."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def on_engines(names: Sequence[str], cases: Iterable[Sequence[Any]]) -> pytest.MarkDecorator:
    """Run a test with these cases, each an engine and a value for each name; all of one engine, then all of the other one.

    Without the scope, pytest would take them as they come, and end at each change of the engine what its tests have in common.
    """
    return pytest.mark.parametrize(("engine", *names), list(cases), ids=str, indirect=["engine"], scope="session")
