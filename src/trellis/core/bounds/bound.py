"""The bound of a grant as a record, and as it is stored with a key."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, Protocol

from trellis.sentences import say_many

ALLOW: Final = "allow"
PROPOSE: Final = "propose"
WHOLE: Final = "*"  # stands for all grants of a key together, among its bounds
LEVELS: Final[Mapping[str, str]] = MappingProxyType(
    {ALLOW: "The key may run the operation.", PROPOSE: "The key may propose it; somebody else has to approve."}
)


@dataclass(frozen=True)  # without slots: the cached property needs a __dict__
class Bound:
    """How far one grant reaches. The default is a grant without bounds.

    `under` names records such as `forums:12`: the grant is for them alone and, where they are of a tree, for all below them; None
    for no such limit. `until` is when the grant ends, `per_day` how often it may be used in a day (UTC). With `dry_run_only` the
    operation is always rolled back. With `own_only` it shows or undoes only what its holder did. `level` is ALLOW or PROPOSE.
    """

    level: str = ALLOW
    under: tuple[str, ...] | None = None
    until: str | None = None
    per_day: int | None = None
    dry_run_only: bool = False
    own_only: bool = False

    @cached_property
    def ids(self) -> Mapping[str, tuple[int, ...]]:
        """The ids that `under` names, by resource."""
        found: dict[str, list[int]] = {}
        for reference in self.under or ():
            resource, _, number = reference.partition(":")
            found.setdefault(resource, []).append(int(number))
        return {resource: tuple(sorted(ids)) for resource, ids in found.items()}

    @property
    def is_proposed(self) -> bool:
        """Whether what it allows has to be approved by somebody else."""
        return self.level == PROPOSE

    def serialize(self) -> dict[str, Any]:
        """Serialize it, as keys store and show it: the members that are set, and its level."""
        members = {
            "under": None if self.under is None else list(self.under),
            "until": self.until,
            "perDay": self.per_day,
            "dryRunOnly": self.dry_run_only or None,
            "ownOnly": self.own_only or None,
        }
        return {"level": self.level, **{name: value for name, value in members.items() if value is not None}}


class Holder(Protocol):
    """Whoever holds grants."""

    @property
    def id(self) -> int | None: ...

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> "Bounds": ...


Bounds = Mapping[str, Bound]  # by operation; those without bounds are not in it
NO_BOUNDS: Final[Bounds] = MappingProxyType({})


def read_bound(stored: Mapping[str, Any]) -> Bound:
    """Read one bound as it is stored."""
    under = stored.get("under")
    return Bound(
        stored.get("level", ALLOW),
        None if under is None else tuple(under),
        stored.get("until"),
        stored.get("perDay"),
        bool(stored.get("dryRunOnly")),
        bool(stored.get("ownOnly")),
    )


def read_bounds(stored: Mapping[str, Mapping[str, Any]], per_day: int | None = None) -> Bounds:
    """Read the bounds of a key as they are stored. `per_day` is how often all its grants together may be used in a day."""
    bounds = {operation: read_bound(bound) for operation, bound in stored.items()} if stored else NO_BOUNDS
    return bounds if per_day is None else {**bounds, WHOLE: Bound(per_day=per_day)}


def describe_per_day(count: int) -> str:
    """Return how often a grant may be used, to stand in a sentence."""
    return say_many(count, "once a day", "{count:,} times a day")


def digest_reach(bounds: Bounds, holder: int) -> str:
    """Return a digest of what grants are for; "" if none is for a part of the nodes, or for what its holder did, only."""
    limits = sorted(
        (name, bound.under, holder if bound.own_only else 0)
        for name, bound in bounds.items()
        if bound.under is not None or bound.own_only
    )
    return blake2b(repr(limits).encode(), digest_size=16).hexdigest() if limits else ""
