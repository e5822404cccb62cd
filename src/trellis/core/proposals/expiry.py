"""Closing the proposals that nobody has decided on in time. Once expired, they cannot be approved even before they are closed."""

from typing import Final

from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.proposals.decision import EXPIRE
from trellis.store import proposals

_SERVICE: Final = Actor("service", None, "housekeeping", frozenset({EXPIRE}))
_MOST: Final = 50  # at once


def count_open(gate: Gate) -> int:
    """Return how many proposals are open."""
    now = gate.now()
    return gate.store.read_single(lambda tx: proposals.count_open(tx, now))


def find_overdue(gate: Gate) -> list[Call]:
    """Return the calls that close expired proposals, at most 50 of them."""
    with gate.store.reading() as tx:
        found = proposals.find_overdue(tx, gate.now(), _MOST)
    return [Call(EXPIRE, _SERVICE, target=number) for number in found]
