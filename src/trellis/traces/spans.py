"""The interface of spans for the rest of Trellis, which does not depend on OpenTelemetry."""

from collections.abc import Mapping
from typing import Final, Literal, Protocol

Facts = Mapping[str, str | int | bool | None]  # by the names of OpenTelemetry's conventions; None means unknown
_NOTHING: Final[Facts] = {}


class Span(Protocol):
    """A piece of work that takes time. Pass its `traceparent` to make another span its child, here or in another program."""

    traceparent: str

    def end(self, error: str | None = None, facts: Facts = _NOTHING, name: str | None = None) -> None:
        """End the span, with the error that ended it, further facts, and a better name, if there are any."""


class Traces(Protocol):
    """Records spans, and sends them in the background. Names and facts must not contain secrets or text that callers choose."""

    def begin(
        self, name: str, parent: str | None, facts: Facts = _NOTHING, kind: Literal["server", "client", "internal"] = "internal"
    ) -> Span:
        """Begin a span as a child of the span that the traceparent `parent` names, or as the root of a new trace."""

    def record(self, name: str, parent: str | None, began: int, ended: int, facts: Facts = _NOTHING) -> None:
        """Record a span that is already over, with its begin and end in nanoseconds since 1970."""

    def stop(self) -> None:
        """Send the remaining spans, but give up after two seconds."""
