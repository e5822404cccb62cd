"""Proposals: calls of keys that may only propose them, which wait until somebody approves or rejects them."""

from trellis.core.operation import Operation
from trellis.core.proposals import creation, decision, reading
from trellis.core.proposals.decision import find_overdue
from trellis.core.proposals.effects import SHOWN
from trellis.core.proposals.reading import FILTERS, count_open


def operations() -> tuple[Operation, ...]:
    """Return the operations on proposals."""
    return (*reading.operations(), creation.operation(), *decision.operations())
