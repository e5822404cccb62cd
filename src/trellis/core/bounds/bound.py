"""The bound of a grant, and how it is stored with a key."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, Protocol

from trellis.sentences import say, say_many

ALLOW: Final = "allow"
PROPOSE: Final = "propose"
ASK: Final = say("An administrator can change that on the key's page.")
WHOLE: Final = "*"  # the name, among the bounds of a key, for all its grants together
LEVELS: Final[Mapping[str, str]] = MappingProxyType(
    {ALLOW: "The key may run the operation.", PROPOSE: "The key may propose it; somebody else has to approve."}
)


@dataclass(frozen=True)  # without slots: the cached property needs a __dict__
class Bound:
    """How far one grant reaches. The default is a grant without bounds.

    `under` names records such as `forums:12`: the grant is only for these and, in a tree, for everything below them; None means no
    such limit. `until` is when the grant ends, and `per_day` how often it may be used in a day (UTC). With `dry_run_only`, the
    operation is always rolled back. With `own_only`, it shows or undoes only what the holder did. `level` is ALLOW or PROPOSE.
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
        """Whether somebody else has to approve what the grant allows."""
        return self.level == PROPOSE

    def has_ended(self, now: str) -> bool:
        """Return whether the grant has ended. It may not be used at the very time at which it ends."""
        return self.until is not None and self.until <= now

    def serialize(self) -> dict[str, Any]:
        """Serialise the bound, as it is stored and shown with a key: its level and the members that are set."""
        members = {
            "under": None if self.under is None else list(self.under),
            "until": self.until,
            "perDay": self.per_day,
            "dryRunOnly": self.dry_run_only or None,
            "ownOnly": self.own_only or None,
        }
        return {"level": self.level, **{name: value for name, value in members.items() if value is not None}}


class Holder(Protocol):
    """A holder of grants: an actor."""

    @property
    def id(self) -> int | None: ...

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> "Bounds": ...


Bounds = Mapping[str, Bound]  # by operation, without those that have no bound
NO_BOUNDS: Final[Bounds] = MappingProxyType({})


def read_bound(stored: Mapping[str, Any]) -> Bound:
    """Read one stored bound."""
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
    """Read the stored bounds of a key. `per_day` is how often all its grants together may be used in a day."""
    bounds = {operation: read_bound(bound) for operation, bound in stored.items()} if stored else NO_BOUNDS
    return bounds if per_day is None else {**bounds, WHOLE: Bound(per_day=per_day)}


def describe_per_day(count: int) -> str:
    """Return how often a grant may be used, as part of a sentence."""
    return say_many(count, "once a day", "{count:,} times a day")


def digest_reach(bounds: Bounds, holder: int) -> str:
    """Return a digest of the limits of grants to some nodes or to what their holder did; "" if no grant has such a limit."""
    limits = sorted(
        (name, bound.under, holder if bound.own_only else 0)
        for name, bound in bounds.items()
        if bound.under is not None or bound.own_only
    )
    return blake2b(repr(limits).encode(), digest_size=16).hexdigest() if limits else ""
