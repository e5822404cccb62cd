"""Who acts: an API key, an administrator in the panel, the operator at the terminal, or the service itself."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Actor:
    """The one who runs an operation. `grants` is None for an actor that may run all of them.

    `type` and `id` stand in the event log; `name` is what a person reads there.
    """

    type: Literal["key", "admin", "terminal", "service"]
    id: int | None
    name: str
    grants: frozenset[str] | None = None

    def may(self, operation: str) -> bool:
        """Return whether this actor is granted the operation. A key with an empty set of grants may run none."""
        return self.grants is None or operation in self.grants


TERMINAL = Actor("terminal", None, "terminal")
DELIVERY = Actor("service", None, "webhook delivery", frozenset({"webhooks.disable"}))
