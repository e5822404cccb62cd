"""The record that a call is about: found, as its caller sees it, and in the version that the caller expects."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.kind import NodeKind, Verb
from trellis.core.operation import Act
from trellis.core.record import record
from trellis.core.values import invalid_id
from trellis.core.version import encode, version_of
from trellis.errors import Refused
from trellis.store import nodes
from trellis.store.nodes import Node

_ANY: Final = "*"


def found(kind: NodeKind, act: Act, verb: Verb) -> Node:
    """Read the node that a call is about; refuse an id that names none."""
    target = act.call.target or 0
    node = nodes.find(act.tx, kind.name, target)
    if node is None:
        raise invalid_id(kind.singular, target, kind.missing_code(verb))
    return node


def seen(kind: NodeKind, act: Act, node: Node) -> dict[str, Any]:
    """Write a node as callers see it."""
    return record(act.tx, kind, node, act.world.community_url)


def expect(act: Act, before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record."""
    if act.call.expected and _ANY not in act.call.expected and version_of(encode(before)) not in act.call.expected:
        raise Refused(
            "PRECONDITION_FAILED",
            "The record has changed since you read it: its ETag is not in If-Match. Get it again, and decide anew.",
        )
