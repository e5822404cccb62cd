"""What a webhook is made of: the fields that are sent, and those that are answered."""

from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import Boolean, Choice, Field, NodeId, Text, TextList, Timestamp


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of an endpoint; whether messages may go there is judged when the operation runs."""

    widget: str = "url"

    def parse(self, raw: Any) -> str:
        return Text(2048, 1, missing="MISSING_VALUE").parse(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "uri", "pattern": "^https?://", "minLength": 8, "maxLength": 2048}


@dataclass(frozen=True, slots=True)
class EventNames:
    """A list of events and patterns of events; whether there are such is judged when the operation runs."""

    widget: str = "text"

    def parse(self, raw: Any) -> tuple[str, ...]:
        return TextList().parse(raw)

    def schema(self) -> dict[str, Any]:
        name = {"type": "string", "pattern": r"^(\*|[a-z]+\.([a-z]+|\*))$"}
        return {"type": "array", "items": name, "minItems": 1, "maxItems": 200}


SETTINGS: Final = (
    Field(
        "url",
        Endpoint(),
        "Where messages are sent: an http or https address on the open internet.",
        required=True,
        example="https://hooks.example/trellis",
    ),
    Field(
        "events",
        EventNames(),
        "Which events it wants: names such as `forum.created`; `forum.*` for all of a kind; `*` for all, those of kinds and "
        "events included that come with later releases.",
        required=True,
        example=["forum.*", "category.deleted"],
    ),
    Field("description", Text(500), "What it is for.", default="", example="Search index"),
    Field("enabled", Boolean(), "Whether messages are sent. What happens while it is off waits.", default=True),
)
SKIP: Final = Field(
    "skipMissed",
    Boolean(),
    "Pass over the events that have not been looked at yet, such as those from the time in which it was off.",
    default=False,
    write_only=True,
)
_STATES: Final = Choice(
    {
        "on": "It works, or nothing has been sent yet.",
        "failing": "The last attempt failed; it is tried again.",
        "off": "Nothing is sent.",
    }
)
RECORD: Final = (
    Field("id", NodeId(), "Its id, never used again after a delete.", read_only=True, example=1),
    *SETTINGS,
    Field("state", _STATES, "How it is.", read_only=True, example="on"),
    Field("failingSince", Timestamp(nullable=True), "Since when every attempt has failed.", read_only=True),
    Field("lastAttemptAt", Timestamp(nullable=True), "When something was last sent.", read_only=True),
    Field("disabledAt", Timestamp(nullable=True), "When it was switched off.", read_only=True),
    Field("disabledBecause", Text(500), "Why the service switched it off by itself; else empty.", default="", read_only=True),
    Field("oldSecretUntil", Timestamp(nullable=True), "Until when messages are signed with the old secret too.", read_only=True),
    Field("createdAt", Timestamp(), "When it was made.", read_only=True),
    Field("updatedAt", Timestamp(), "When it was last changed.", read_only=True),
)
SECRET: Final = Field(
    "secret",
    Text(),
    "What messages are signed with. It is answered here, and never again.",
    read_only=True,
    example="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
)
