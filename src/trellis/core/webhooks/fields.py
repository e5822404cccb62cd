"""The fields of a webhook: those that callers send, and those that are only returned."""

from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import Boolean, Choice, Field, NodeId, Nullable, ObjectOf, Text, TextList, Timestamp


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL of an endpoint. Whether messages may be sent there is checked when the operation runs."""

    widget: str = "url"

    def parse(self, raw: Any) -> str:
        return Text(2048, 1, missing="MISSING_VALUE").parse(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "uri", "pattern": "^https?://", "minLength": 8, "maxLength": 2048}


class EventNames(TextList):
    """A list of events and patterns of events. Whether they exist is checked when the operation runs."""

    def schema(self) -> dict[str, Any]:
        name = {"type": "string", "pattern": r"^(\*|[a-z]+\.([a-z_]+|\*))$"}
        return {"type": "array", "items": name, "minItems": 1, "maxItems": 200}


SETTINGS: Final = (
    Field(
        "url",
        Endpoint(),
        "Where messages are sent: an http or https URL on the public internet.",
        required=True,
        example="https://hooks.example/trellis",
    ),
    Field(
        "events",
        EventNames(),
        "The events to subscribe to: names such as `forum.created`; `forum.*` for all events of a resource; `*` for all events, "
        "including those added by later releases, but not alarms. Owners subscribe to alarms by name, such as `alarm.new_key`, "
        "or with `alarm.*`.",
        required=True,
        example=["forum.*", "category.deleted"],
    ),
    Field("description", Text(500, visible=True), "What the webhook is for.", default="", example="Search index"),
    Field("enabled", Boolean(), "Whether messages are sent. While the webhook is off, messages wait.", default=True),
)
SKIP: Final = Field(
    "skipMissed",
    Boolean(),
    "Whether to skip events that have not been processed yet, such as those that occurred while the webhook was off.",
    default=False,
    write_only=True,
)
_STATES: Final = Choice(
    {
        "on": "The webhook works, or nothing has been sent yet.",
        "failing": "The last attempt failed; there will be another.",
        "off": "Nothing is sent.",
    }
)
_MAKER: Final = (
    Field("type", Choice({"key": "An API key.", "admin": "An administrator.", "terminal": "The terminal."}), "What kind of actor."),
    Field("id", NodeId(nullable=True), "The key's or the administrator's id; null for the terminal."),
    Field("name", Text(), "The actor's name at that time."),
)
RECORD: Final = (
    Field("id", NodeId(), "Its id, never reused after a delete.", read_only=True, example=1),
    *SETTINGS,
    Field("state", _STATES, "Whether the webhook works.", read_only=True, example="on"),
    Field(
        "failingSince",
        Timestamp(nullable=True),
        "When attempts began to fail, after a success or after more than 30 hours without attempts.",
        read_only=True,
    ),
    Field("lastAttemptAt", Timestamp(nullable=True), "When a message was last sent.", read_only=True),
    Field("disabledAt", Timestamp(nullable=True), "When it was switched off.", read_only=True),
    Field(
        "disabledBecause", Text(500), "Why the service switched the webhook off; empty if it did not.", default="", read_only=True
    ),
    Field(
        "oldSecretUntil",
        Timestamp(nullable=True),
        "The time until which messages are also signed with the old secret.",
        read_only=True,
    ),
    Field(
        "maker",
        Nullable(ObjectOf(_MAKER)),
        "Who created the webhook, or was the last to switch it on or to change where or what it sends. If this is a key, the "
        "webhook is switched off when the key is revoked. Null if it is no longer known.",
        read_only=True,
        example={"type": "key", "id": 1, "name": "Plugin"},
    ),
    Field("createdAt", Timestamp(), "When it was created.", read_only=True),
    Field("updatedAt", Timestamp(), "When it was last changed.", read_only=True),
)
SECRET: Final = Field(
    "secret",
    Text(),
    "The secret that messages are signed with. It is returned only once, in this response.",
    read_only=True,
    example="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
)
