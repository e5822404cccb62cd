"""A field: one named value of a record or of a request."""

import re
from dataclasses import dataclass
from typing import Any

from trellis.core.fields.type import Type


@dataclass(frozen=True, slots=True)
class Field:
    """One named value of a record or of a request, with everything that REST, the panel and the command line need to know about it.

    `default` is used on create if nothing is sent. `also` are other names under which it is accepted. Lists can be filtered by a
    `listed` field. A `read_only` field is returned, and ignored when sent; a `write_only` one is never returned. `missing` is the
    message of the refusal if a required field is not sent. `brief` describes the field to agents in place of the beginning of
    `doc`, to save tokens; a field that is not `for_agents` is not shown to them. `applies` names another field and the values of
    that field with which this one counts; forms ask for it only then. `title` is its label in forms if its name in words would not
    tell a person what it is; forms fold away the fields that are `seldom` set.
    """

    name: str
    type: Type
    doc: str
    default: Any = None
    also: tuple[str, ...] = ()
    example: Any = None
    required: bool = False
    read_only: bool = False
    write_only: bool = False
    listed: bool = False
    missing: str = "MISSING_VALUE"
    for_agents: bool = True
    brief: str | None = None
    applies: tuple[str, tuple[str, ...]] | None = None
    title: str = ""
    seldom: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the field with its description."""
        return self.type.schema() | {"description": self.doc}

    @property
    def is_secret(self) -> bool:
        """Whether it is a password, which is not shown and not taken from a command's arguments."""
        return self.type.schema().get("format") == "password"

    @property
    def label(self) -> str:
        """The label for people: the title, or else the name in words, `minContent` → `Min content`."""
        return self.title or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).capitalize()
