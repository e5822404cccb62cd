"""The order of siblings: a counted B-tree (order-statistic tree)."""

from trellis.store.siblings.blocks import forget
from trellis.store.siblings.btree import CAPACITY, Shelf, sound
from trellis.store.siblings.moves import Family, Spot, adopt, move, spot_of
from trellis.store.siblings.positions import (
    KIND,
    PLACE,
    UNSHELVED,
    ZERO,
    between,
    children,
    count,
    counts,
    on_shelves,
    place_of,
    under,
    with_parent,
)

__all__ = [
    "CAPACITY",
    "KIND",
    "PLACE",
    "UNSHELVED",
    "ZERO",
    "Family",
    "Shelf",
    "Spot",
    "adopt",
    "between",
    "children",
    "count",
    "counts",
    "forget",
    "move",
    "on_shelves",
    "place_of",
    "sound",
    "spot_of",
    "under",
    "with_parent",
]
