"""Which nodes of a kind a bound lets a call reach."""

from collections.abc import Iterable
from dataclasses import dataclass

from trellis.core.bounds.bound import Holder
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes
from trellis.store.engine import Transaction


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes of a kind that a grant is for: those with the ids in `roots` and, in a tree, all nodes below them.

    What counts is where nodes are now: a node that is moved out is out of reach, and nothing is below a root that is deleted.
    """

    kind: str
    roots: tuple[int, ...]
    operation: str
    holder: str

    def find_inside(self, tx: Transaction, ids: Iterable[int]) -> set[int]:
        """Return the nodes among `ids` that exist and are in reach."""
        return nodes.find_inside(tx, self.kind, self.roots, ids)

    def contains(self, tx: Transaction, node: int | None) -> bool:
        """Return whether a node exists and is in reach; the top level (None) never is."""
        return node is not None and node in self.find_inside(tx, (node,))

    def find_outside(self, tx: Transaction, ids: Iterable[int]) -> set[int]:
        """Return the nodes among `ids` that exist and are out of reach."""
        wanted = set(ids)
        return nodes.find_existing(tx, self.kind, wanted - self.find_inside(tx, wanted))

    def narrow(self, tx: Transaction, other: "Reach") -> "Reach":
        """Return the reach that both have in common."""
        both = self.find_inside(tx, other.roots) | other.find_inside(tx, self.roots)
        return Reach(self.kind, tuple(sorted(both)), self.operation, self.holder)

    def refuse(self, what: str) -> Refused:
        """Return the refusal of a call that would reach further. `what` is a sentence that says what it would do, or what to do."""
        under = [f"{self.kind}:{root}" for root in self.roots]
        named = ", ".join(under) or say("none of the {kind}", kind=self.kind)
        return Refused(
            "OUT_OF_BOUNDS",
            say(
                "The key '{holder}' may run {operation} only within {named}. {what}",
                holder=isolate(self.holder),
                operation=self.operation,
                named=named,
                what=what,
            ),
            facts={"operation": self.operation, "under": under},
        )


def find_reach(actor: Holder, operation: str, kind: str) -> Reach | None:
    """Return which nodes of a kind an actor's grant of an operation reaches; None for all of them."""
    bound = actor.bounds.get(operation)
    if bound is None or bound.under is None:
        return None
    return Reach(kind, bound.ids.get(kind, ()), operation, actor.name)


def is_own_only(actor: Holder, operation: str) -> bool:
    """Return whether an actor's grant of an operation is only for what the actor itself did."""
    bound = actor.bounds.get(operation)
    return bound is not None and bound.own_only


def judge_touched(tx: Transaction, actor: Holder, operation: str, touched: Iterable[int]) -> None:
    """Refuse a write after which any of the nodes that it has touched are out of reach. Raises Refused (OUT_OF_BOUNDS)."""
    reach = find_reach(actor, operation, operation.partition(".")[0])
    if reach is not None and reach.find_outside(tx, touched):
        raise reach.refuse(say("This would move something out of it, or change something outside."))
