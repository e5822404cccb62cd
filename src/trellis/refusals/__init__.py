"""The table of refusals: one row for each error that Trellis returns on purpose, with everything that describes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from trellis.refusals import operations, requests
from trellis.refusals.refusal import Member, Refusal, Scope

REFUSALS: Final[Mapping[str, Refusal]] = MappingProxyType({row.message: row for row in requests.ROWS + operations.ROWS})


def with_codes(*messages: str) -> tuple[tuple[str, str], ...]:
    """Pair messages with their codes, as an operation declares the refusals that it can return."""
    return tuple((message, REFUSALS[message].code) for message in messages)
