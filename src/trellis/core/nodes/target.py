"""The record that a call is about: found, and as its caller sees it."""

from typing import Any

from trellis.core.fields import invalid_id
from trellis.core.nodes.kind import NodeKind
from trellis.core.nodes.record import record
from trellis.core.operation import Act
from trellis.core.verbs import Verb
from trellis.store import nodes
from trellis.store.nodes import Node


def found_with_path(kind: NodeKind, act: Act, verb: Verb) -> tuple[Node, str]:
    """Read the node that a call is about, and the names above it; refuse an id that names none."""
    target = act.call.target or 0
    read = nodes.find_with_path(act.tx, kind.name, target)
    if read is None:
        raise invalid_id(kind.singular, target, kind.missing_code(verb))
    return read


def seen(kind: NodeKind, act: Act, node: Node) -> dict[str, Any]:
    """Write a node as callers see it."""
    return record(act.tx, kind, node, act.world.community_url)
