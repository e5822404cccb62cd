"""Who may run an operation."""

from enum import Enum
from typing import Final


class Access(Enum):
    """Who may run an operation."""

    GRANTED = "granted"  # keys that have been granted it; one box in the panel
    ANY_KEY = "any key"  # every valid key
    FORKED = "granted by resource"  # keys that have been granted the operation that it leads to
    IMPLIED = "granted with others"  # keys that have been granted all operations that it `needs`
    INNER = "granted by what it runs"  # every valid key; each operation that it runs needs its own grant
    INSIDE = "panel and terminal"


OPEN: Final = frozenset((Access.ANY_KEY, Access.INNER))  # what every valid key may run
