"""Who may run an operation: on which basis a key may, and what its grant is about."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from trellis.core.fields import Input


class Basis(Enum):
    """On which basis a key may run an operation."""

    GRANTED = "granted"  # it has been granted it; one box in the panel
    ANY_KEY = "any key"  # every valid key may
    FORKED = "granted by resource"  # it has been granted the operation that it leads to
    IMPLIED = "granted with others"  # it has been granted all operations that it `needs`
    INNER = "granted by what it runs"  # every valid key may; each operation that it runs needs its own grant
    INSIDE = "panel and terminal"  # no key may


@dataclass(frozen=True, slots=True)
class Access:
    """Who may run an operation: keys on this basis, administrators whose role includes it, and the terminal."""

    basis: Basis
    needs: tuple[str, ...] = ()  # without a grant of its own: a key must have been granted all of these operations
    needs_with: Callable[[Input], tuple[str, ...]] = lambda _: ()  # whose grants it needs as well for what its input asks for
    is_granted_alone: bool = False  # a pattern over several resources, such as `*.create`, does not grant it
    reads_nodes: bool = False  # it is about nodes of several kinds, so its grant can be limited to some nodes
    is_about_events: bool = False  # its grant can be limited to what the key itself did
    uses: tuple[str, ...] = ()  # the operations whose grants it may use besides its own
    runs: tuple[str, ...] = ()  # patterns over what it may run: it is of no use to a key without such a write
    for_proposers: bool = False  # it is of no use to a key that proposes nothing

    @property
    def is_open(self) -> bool:
        """Whether every valid key may run it, whatever it has been granted."""
        return self.basis in (Basis.ANY_KEY, Basis.INNER)


GRANTED: Final = Access(Basis.GRANTED)
ANY_KEY: Final = Access(Basis.ANY_KEY)
INSIDE: Final = Access(Basis.INSIDE)
