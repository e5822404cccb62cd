"""The node that a call is about: how it is found and serialized."""

from typing import Any

from trellis.core.fields import invalid_id
from trellis.core.kind import NodeKind
from trellis.core.nodes.record import record
from trellis.core.operation import Context
from trellis.core.verbs import Verb
from trellis.store import nodes
from trellis.store.nodes import Node


def get_with_path(kind: NodeKind, context: Context, verb: Verb) -> tuple[Node, str]:
    """Return the node that a call is about, and the path above it; refuse an id that does not exist."""
    target = context.call.target or 0
    read = nodes.find_with_path(context.tx, kind.name, target)
    if read is None:
        raise invalid_id(kind.singular, target, kind.missing_code(verb))
    return read


def serialize_target(kind: NodeKind, context: Context, node: Node) -> dict[str, Any]:
    """Serialize a node as callers see it."""
    return record(context.tx, kind, node, context.environment.community_url)
