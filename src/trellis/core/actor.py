"""Actors: an API key, an administrator in the panel, the operator at the terminal, or the service itself."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Actor:
    """Whoever runs an operation. `grants` is None for an actor that may run all of them.

    The event log records `type` and `id`, and shows `name` to people.
    """

    type: Literal["key", "admin", "terminal", "service"]
    id: int | None
    name: str
    grants: frozenset[str] | None = None

    def serialize(self) -> dict[str, Any]:
        """Serialize an actor, as events and webhooks name it."""
        return {"type": self.type, "id": self.id, "name": self.name}

    def may(self, operation: str) -> bool:
        """Return whether this actor is granted the operation. A key with an empty set of grants may run none."""
        return self.grants is None or operation in self.grants


TERMINAL = Actor("terminal", None, "terminal")
DELIVERY = Actor("service", None, "webhook delivery", frozenset({"webhooks.disable"}))
