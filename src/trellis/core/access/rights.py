"""The rights that nodes give to groups: the options of their permissions, and the fields that name groups."""

from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import EVERYONE, require_found
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes
from trellis.store.nodes import Node

MISSING: Final = "1T117/1"  # the code for something that is asked about and does not exist


@dataclass(frozen=True, slots=True)
class Right:
    """Something that a node can allow a group: an option of its permissions, or a field that names groups."""

    name: str
    doc: str
    in_permissions: bool

    def holders(self, node: Node) -> Any:
        return (node.permissions if self.in_permissions else node.fields).get(self.name)


def list_rights(kind: NodeKind) -> tuple[Right, ...]:
    """List the rights that nodes of a kind give."""
    options = tuple(Right(name, doc, in_permissions=True) for name, doc in kind.options.items())
    return options + tuple(Right(f.name, f.doc.partition(":")[0] + ".", in_permissions=False) for f in kind.group_fields)


def describe_right(holders: Any, group: int) -> str:
    """Return how a group has a right: because `everyone` has it, `by name`, or "" for not at all."""
    return say("everyone") if holders == EVERYONE else (say("by name") if group in (holders or ()) else "")


def find_group(context: Context, number: int) -> Node:
    """Find a group. Raises Refused (INVALID_ID, or NO_ENDPOINT if there are no groups)."""
    kind = context.environment.group_kind
    if kind is None:
        raise Refused("NO_ENDPOINT", say("There are no groups."))
    return require_found(nodes.find(context.tx, kind.name, number), kind.singular, number, MISSING)
