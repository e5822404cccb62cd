"""The resources: a guide, the trees and the latest events, as far as a key is granted the operations that return them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.verbs import Response
from trellis.errors import Refused
from trellis.mcp.guide import GUIDE

SCHEME: Final = "trellis://"
_GUIDE: Final = f"{SCHEME}guide"
_LATEST: Final[Mapping[str, Any]] = {"order": "newest", "limit": 20}


@dataclass(frozen=True, slots=True)
class Resource:
    """Something to read: the answer of an operation to these arguments, or a fixed text."""

    uri: str
    name: str
    description: str
    media_type: str = "application/json"
    operation: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    def describe(self) -> dict[str, str]:
        """Return the description of the resource that agents get."""
        return {"uri": self.uri, "name": self.name, "description": self.description, "mimeType": self.media_type}


class Resources:
    """The resources by URI."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def find_granted(self, actor: Actor) -> list[Resource]:
        """Return the resources that a key may read."""
        return [one for one in self._known.values() if self._may_read(actor, one)]

    def find(self, actor: Actor, uri: object) -> Resource | None:
        """Return a resource that a key may read; None if there is none."""
        found = self._known.get(uri) if isinstance(uri, str) else None
        return found if found is not None and self._may_read(actor, found) else None

    def _may_read(self, actor: Actor, resource: Resource) -> bool:
        if not resource.operation:
            return True
        try:
            self._gate.authorise(resource.operation, actor)
        except Refused:
            return False
        return True

    @cached_property
    def _known(self) -> Mapping[str, Resource]:
        return {one.uri: one for one in _build_resources(self._gate)}


def _build_resources(gate: Gate) -> Iterator[Resource]:
    yield Resource(_GUIDE, "guide", "How to work with this service", "text/markdown", text=GUIDE)
    for operation in gate.catalogue.values():
        verb = operation.verb
        if verb is not None and verb.read_at and operation.is_tool:
            path = verb.read_at.format(resource=operation.resource)
            arguments = _LATEST if verb.response is Response.FEED else {}
            yield Resource(SCHEME + path, path, operation.summary, operation=operation.name, arguments=arguments)
