"""The fields of the operations on API keys, and the field types that only they use."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from trellis.core.dialect import DIALECTS, TRELLIS
from trellis.core.fields import Boolean, Choice, Field, Ids, Integer, Invalid, Text, TextList, Type, quote, split_list
from trellis.core.keys.bounds import MEMBERS, BoundsByOperation
from trellis.core.keys.expiry import Expiry
from trellis.core.keys.presets import WORDS
from trellis.core.paging import PAGING
from trellis.sentences import say

MOST_OVERLAP: Final = 7
FOR_TRYING: Final = "Made to try operations in the reference. It ends by itself after an hour."  # the note of a key for trying


@dataclass(frozen=True, slots=True)
class Networks(Type):
    """A list of addresses and CIDR networks; an empty list means every address."""

    def parse(self, raw: Any) -> list[str]:
        parts = split_list(raw if raw is not None else [])
        if parts is None or len(parts) > 100:
            raise Invalid(say("must be at most 100 addresses or networks such as 192.0.2.0/24, not {raw}.", raw=quote(raw)))
        return sorted({self._network(part) for part in parts})

    @staticmethod
    def _network(part: Any) -> str:
        text = str(part).strip()
        try:
            network = ip_network("" if "%" in text else text, strict=False)  # a zone can be any text, and is not compared
        except ValueError:
            raise Invalid(say("must be addresses or networks such as 192.0.2.0/24, not {part}.", part=quote(part))) from None
        if isinstance(network, IPv6Network) and network.prefixlen >= 96 and (mapped := network.network_address.ipv4_mapped):
            return f"{mapped}/{network.prefixlen - 96}"  # callers are compared by their IPv4 address
        return str(network)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "maxItems": 100}


def are_within(networks: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether there are any networks, and each of them is contained in one of the others."""
    inner, outer = [ip_network(one) for one in networks], [ip_network(one) for one in others]
    return bool(inner) and all(any(_is_within(one, other) for other in outer) for one in inner)


def _is_within(one: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return one.version == other.version and int(other[0]) <= int(one[0]) and int(one[-1]) <= int(other[-1])


_GRANTS: Final = TextList()
_BOUNDS: Final = f"{', '.join(f'`{member.name}`' for member in MEMBERS[:-1])} and `{MEMBERS[-1].name}`"
SETTINGS: Final = (
    Field("name", Text(100, 1, visible=True), "What the key is for; shown in lists and logs.", example="Calendar sync"),
    Field("owner", Text(100, visible=True), "Who to ask about the key: a person or a team.", default="", example="Mira Holm"),
    Field("note", Text(1000, lines=True), "Anything else worth knowing about the key.", default=""),
    Field(
        "grants",
        _GRANTS,
        "The operations that the key may run; `forums.*`, `*.list` and `*` mean all operations that match now.",
        default=(),
    ),
    Field(
        "bounds",
        BoundsByOperation(),
        f"The bounds of the grants, by operation or pattern: {_BOUNDS}. `level` is allow or propose. Anything left out is not "
        "limited.",
        default={},
        example={"forums.update": {"under": ["forums:12"], "until": "7d", "perDay": 100}},
    ),
    Field("expires", Expiry(), "When the key expires: 90d, 12h, a timestamp, or null for never."),
    Field(
        "addresses",
        Networks(),
        "The addresses or CIDR networks that the key may be used from; an empty list allows all.",
        default=(),
    ),
    Field(
        "rateLimit",
        Integer(0, 10_000_000, nullable=True),
        "Requests per minute; null means the service's default limit, 0 means no limit.",
        seldom=True,
    ),
    Field(
        "perDay",
        Integer(0, 1_000_000_000, nullable=True),
        "How many times a day (UTC) all grants of the key together may be used; null means no limit. Dry runs, refused calls and "
        "proposals do not count.",
        seldom=True,
    ),
    Field("logRequests", Boolean(), "Whether the key's requests are written to the request log.", default=True, seldom=True),
    Field(
        "dialect",
        Choice(DIALECTS),
        "The names and shapes of the key's requests and responses: trellis, or invision for clients of Invision Community.",
        default=TRELLIS,
        seldom=True,
    ),
)
# The members of a key's record, by setting.
RECORDED: Final = {field.name: "expiresAt" if field.name == "expires" else field.name for field in SETTINGS}
CHANGES: Final = (
    Field("grant", _GRANTS, "Operations to add to the grants.", write_only=True),
    Field(
        "bound",
        BoundsByOperation(),
        "Bounds to set for the grants that are named, replacing those that they have; null removes them.",
        write_only=True,
    ),
    Field("ungrant", _GRANTS, "Operations to remove from the grants.", write_only=True),
)
OVERLAP: Final = Field("overlapDays", Integer(0, MOST_OVERLAP), "How many days the old secret remains valid.", default=0)
REASON: Final = Field("reason", Text(500), "Why the key is revoked; shown in the list.")
WHY_PAUSED: Final = Field("reason", Text(500), "Why the key is paused; shown in the list.")
KEEP_WEBHOOKS: Final = Field(
    "keepWebhooks",
    Boolean(),
    "Whether the key's webhooks stay on; otherwise they are switched off with it.",
    default=False,
    write_only=True,
)
FILTERS: Final = (
    *PAGING,
    Field("search", Text(100), "Only keys whose name, owner or public part contains this text."),
    Field(
        "state",
        Choice(
            {
                "active": "Can be used.",
                "paused": "Paused by an administrator.",
                "expired": "Past the expiry.",
                "revoked": "Revoked by an administrator.",
            }
        ),
        "Only keys in this state.",
    ),
    Field("preset", Choice(WORDS), "Only keys that were created with this preset."),
    Field("operation", Text(100), "Only keys that have been granted this operation."),
    Field("order", Choice({"oldest": "Oldest first.", "newest": "Newest first."}), "The order of the keys.", default="oldest"),
)
IDS: Final = Field("ids", Ids(), "Only the keys with these ids.", example=[1, 2])
