"""Actors: an API key, an administrator in the panel, the operator at the terminal, or the service itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Self

from trellis.core.bounds import NO_BOUNDS, WHOLE, Bound, read_bounds
from trellis.core.fields import Choice, Field, NodeId, ObjectOf, Text
from trellis.core.roles import Permit
from trellis.sentences import say
from trellis.store.keys import Key


@dataclass(frozen=True, slots=True)
class Actor:
    """Whoever runs an operation. `grants` is None for an actor that may run every operation.

    `bounds` maps operations to the bounds of their grants, for the grants that have any. The event log records `type` and `id`, and
    shows `name` to people. `is_agent` marks a key that asks over MCP: it runs nothing that shows a secret. An administrator who is
    not an owner has a `permit`, whose operations are their grants. For a key, `key` is its record as it was read, and `digest` is
    the digest of the secret that was presented; for an administrator in the panel, `session` is their session. With these, whoever
    runs a write later finds out whether the actor may still run it.
    """

    type: Literal["key", "admin", "terminal", "service"]
    id: int | None
    name: str
    grants: frozenset[str] | None = None
    bounds: Mapping[str, Bound] = field(default_factory=lambda: NO_BOUNDS, hash=False)
    is_agent: bool = False
    permit: Permit | None = None
    key: Key | None = field(default=None, repr=False, compare=False)
    digest: str = field(default="", repr=False, compare=False)
    session: str = field(default="", repr=False, compare=False)

    @classmethod
    def of_key(cls, key: Key, digest: str = "") -> Self:
        """Return the actor that a key stands for, with the digest of the secret that was presented."""
        bounds = read_bounds(key.bounds, key.per_day)
        return cls("key", key.id, key.name, frozenset(key.grants), bounds, key=key, digest=digest)

    @classmethod
    def administrator(cls, number: int, name: str, permit: Permit | None, session: str = "") -> Self:
        """Return an administrator whose grants are the operations of their permit. An owner has no permit and may do everything."""
        return cls("admin", number, name, None if permit is None else permit.operations, permit=permit, session=session)

    def serialize(self) -> dict[str, Any]:
        """Serialise an actor, as events and webhooks name it."""
        return {"type": self.type, "id": self.id, "name": self.name}

    def is_named(self, named: Mapping[str, Any]) -> bool:
        """Return whether a serialised actor, such as the actor of an event, is this one, whatever its name was then."""
        return (named["type"], named["id"]) == (self.type, self.id)

    def may(self, operation: str) -> bool:
        """Return whether this actor is granted the operation. A key with an empty set of grants may run none.

        The grant may have ended: what it alone opens is for `may_at` to judge.
        """
        return self.grants is None or operation in self.grants

    def may_at(self, operation: str, now: str) -> bool:
        """Return whether this actor is granted the operation, and the grant has not ended at the time `now`."""
        bound = self.bounds.get(operation)
        return self.may(operation) and not (bound is not None and bound.has_ended(now))

    def sees(self, resource: str) -> bool:
        """Return whether this actor's role lets them read the records of a resource. True for a key: its grants decide instead."""
        return self.permit is None or resource in self.permit.resources

    @property
    def proposes(self) -> bool:
        """Whether any operation that this actor may run has to be approved."""
        return any(bound.is_proposed for bound in self.bounds.values())

    @property
    def is_counted(self) -> bool:
        """Whether the uses of any of this actor's grants are counted."""
        return any(bound.per_day is not None for bound in self.bounds.values())

    def counts(self, operation: str) -> bool:
        """Return whether uses of the operation's grant, or of all grants together, are counted."""
        bound = self.bounds.get(operation)
        return WHOLE in self.bounds or (bound is not None and bound.per_day is not None)


class Approval(NamedTuple):
    """The proposal that a call comes from, and who approved it.

    `needed` is the approval that approving it needed in turn: whoever approves may only propose that, too.
    """

    proposal: int
    by: Actor
    needed: "Approval | None" = None


ACTOR_TYPES: Final = {
    "key": "An API key.",
    "admin": "An administrator.",
    "terminal": "The terminal.",
    "service": "The service itself.",
}
SERIALIZED: Final = ObjectOf(
    (
        Field("type", Choice(ACTOR_TYPES), "What kind of actor."),
        Field("id", NodeId(nullable=True), "The id of the key or administrator; null for the terminal and the service."),
        Field("name", Text(), "The actor's name at that time."),
    )
)
"""What `Actor.serialize` returns."""

WITH_IDS: Final = ("key", "admin")
"""The types of actors that have an id, since there are several of each."""

TERMINAL = Actor("terminal", None, "terminal")
DELIVERY = Actor("service", None, "webhook delivery", frozenset({"webhooks.disable"}))

_LINK: Final = "one-time link"
_SERVICES: Final = {
    "sign-in": say("Sign-in"),
    "single sign-on": say("Single sign-on"),
    "webhook delivery": say("Webhook delivery"),
    "housekeeping": say("Housekeeping"),
}

OWN_NAMES: Final = ("terminal", say("The terminal"), "service", say("The service"), say(_LINK), *_SERVICES, *_SERVICES.values())
"""The names of actors that are not people, as events and the panel show them. No administrator can take one."""


def describe_actor(actor: Mapping[str, Any]) -> str:
    """Return the name to show for an actor that an event names. Its type decides: a key or an administrator may have any name."""
    name = str(actor["name"])
    if actor["type"] == TERMINAL.type:
        return say("one-time link") if name == _LINK else say("The terminal")
    return _SERVICES.get(name, name.capitalize()) if actor["type"] == DELIVERY.type else name
