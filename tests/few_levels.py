"""A tree that has few levels at most, so that tests reach the limit with few nodes: the rule is the same at each size."""

import sys
from typing import Final

import pytest

from trellis.core.nodes import DEEPEST

FEW: Final = 20


def limit_levels(patch: pytest.MonkeyPatch, levels: int = FEW) -> None:
    """Let trees have fewer levels than they may."""
    for name, module in list(sys.modules.items()):
        if name.startswith("trellis.core.") and vars(module).get("DEEPEST") == DEEPEST:
            patch.setattr(module, "DEEPEST", levels)
