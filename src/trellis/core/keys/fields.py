"""The fields of the operations on API keys, and the field types that only they use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from trellis.core.fields import Boolean, Choice, Field, Integer, Invalid, Text, TextList, Timestamp, quote, split_list
from trellis.core.paging import PAGING

_MOST_OVERLAP: Final = 7


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a key expires: a timestamp, a duration from now such as 90d or 12h, or null for never."""

    widget: str = "text"

    def parse(self, raw: Any) -> str | timedelta | None:
        if raw in (None, "", "never"):
            return None
        text = raw.strip() if isinstance(raw, str) else ""
        if text[-1:] in _SPANS and text[:-1].isdecimal() and len(text) <= 6 and 0 < int(text[:-1]) <= 36_500:
            return timedelta(**{_SPANS[text[-1]]: int(text[:-1])})
        try:
            return Timestamp().parse(raw)
        except Invalid:
            raise Invalid(
                f"must be a span such as 90d or 12h, a moment in ISO 8601, or null for never, not {quote(raw)}."
            ) from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["90d", "2026-12-31T00:00:00Z"]}


_SPANS: Final[Mapping[str, str]] = {"d": "days", "h": "hours"}


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of addresses and CIDR networks; an empty list is every address."""

    widget: str = "text"

    def parse(self, raw: Any) -> list[str]:
        parts = split_list(raw if raw is not None else [])
        if parts is None or len(parts) > 100:
            raise Invalid(f"must be at most 100 addresses or networks such as 192.0.2.0/24, not {quote(raw)}.")
        return sorted({self._network(part) for part in parts})

    @staticmethod
    def _network(part: Any) -> str:
        try:
            network = ip_network(str(part).strip(), strict=False)
        except ValueError:
            raise Invalid(f"must be addresses or networks such as 192.0.2.0/24, not {quote(part)}.") from None
        if isinstance(network, IPv6Network) and network.prefixlen >= 96 and (mapped := network.network_address.ipv4_mapped):
            return f"{mapped}/{network.prefixlen - 96}"  # callers are compared by their IPv4 address
        return str(network)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "maxItems": 100}


def are_within(networks: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether each of some networks, and at least one, lies in one of the others."""
    inner, outer = [ip_network(one) for one in networks], [ip_network(one) for one in others]
    return bool(inner) and all(any(_lies_in(one, other) for other in outer) for one in inner)


def _lies_in(one: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return one.version == other.version and int(other[0]) <= int(one[0]) and int(one[-1]) <= int(other[-1])


_GRANTS: Final = TextList()
SETTINGS: Final = (
    Field("name", Text(100, 1), "What the key is for; shown in lists and logs.", example="Calendar sync"),
    Field(
        "grants",
        _GRANTS,
        "The operations that it may run; `forums.*`, `*.list` and `*` stand for all that match now.",
        default=(),
    ),
    Field("expires", Expiry(), "When it ends: 90d, 12h, a moment, or null for never."),
    Field(
        "addresses",
        Networks(),
        "From where it may be used: addresses or CIDR networks; none is everywhere.",
        default=(),
    ),
    Field(
        "rateLimit",
        Integer(0, 10_000_000, nullable=True),
        "Requests per minute; null is the service's limit, 0 is none.",
    ),
    Field("logRequests", Boolean(), "Whether its requests are written to the request log.", default=True),
)
CHANGES: Final = (
    Field("grant", _GRANTS, "Operations to add to the granted ones.", write_only=True),
    Field("ungrant", _GRANTS, "Operations to take from the granted ones.", write_only=True),
)
OVERLAP: Final = Field(
    "overlapDays", Integer(0, _MOST_OVERLAP), "For how many days the old secret lives on beside the new one.", default=0
)
REASON: Final = Field("reason", Text(500), "Why it is revoked; shown in the list.")
FILTERS: Final = (
    *PAGING,
    Field("search", Text(100), "Only those whose name holds this text, or whose public part does."),
    Field(
        "state",
        Choice({"active": "Good for use.", "expired": "Past their end.", "revoked": "Ended by hand."}),
        "Only those in this state.",
    ),
    Field("operation", Text(100), "Only those that were granted this operation."),
    Field("order", Choice({"oldest": "Oldest first.", "newest": "Newest first."}), "Which end to begin at.", default="oldest"),
)
