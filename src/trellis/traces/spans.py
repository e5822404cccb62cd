"""What spans are to the rest of Trellis, which knows nothing of OpenTelemetry."""

from collections.abc import Mapping
from typing import Final, Literal, Protocol

Facts = Mapping[str, str | int | bool | None]  # by name, as OpenTelemetry's conventions have them; None is not known
_NOTHING: Final[Facts] = {}


class Span(Protocol):
    """Something that takes time. `traceparent` is what makes another one its child, here or in another program."""

    traceparent: str

    def end(self, error: str | None = None, facts: Facts = _NOTHING, name: str | None = None) -> None:
        """End it, with the error that it ended with, what is known of it by now, and perhaps a better name."""


class Traces(Protocol):
    """Makes spans, and sends them beside the requests. Names and facts must hold no secret, and nothing that callers make up."""

    def begin(
        self, name: str, parent: str | None, facts: Facts = _NOTHING, kind: Literal["server", "client", "internal"] = "internal"
    ) -> Span:
        """Begin a span as the child of what a traceparent names, or a trace of its own."""

    def record(self, name: str, parent: str | None, began: int, ended: int, facts: Facts = _NOTHING) -> None:
        """Make a span of something that is over, between two times in nanoseconds since 1970."""

    def stop(self) -> None:
        """Send what is left, for as long as that takes two seconds."""
