"""A row of the table of refusals, and its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

# The schemas of members that several refusals have.
COUNT: Final = {"type": "integer", "minimum": 0}
NUMBER: Final = {"type": "integer", "minimum": 1}


class Scope(Enum):
    """Which operations can return a refusal over REST."""

    EVERY = "every operation"
    GRANTED = "every operation that needs a grant"
    WRITES = "every write"
    CONDITIONAL = "every write that takes If-Match"
    IDEMPOTENT = "every write that takes an Idempotency-Key"
    PROPOSABLE = "every write that a key can be granted, or that runs such writes"
    DECLARED = "the operations that declare it, and those with a field whose type refuses values with it"
    NONE = "no operation: it is returned before one is found, or only by the panel and the terminal"


@dataclass(frozen=True, slots=True)
class Member:
    """A member that a refusal adds to its problem document.

    `schema` is its JSON Schema, `doc` describes it. `example` appears in the example of the problem document unless it is None,
    which marks a member that is present only in some cases.
    """

    name: str
    schema: Mapping[str, Any]
    doc: str
    example: Any = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row of the table.

    `code` and `message` are stable and unique; `status` is the HTTP status, `title` a short summary for people, and `when` the
    sentence in the reference. `at_fault` is the invalid field in the example of a refusal that lists such fields in `errors`, and
    empty for one that lists none. `members` and `headers` are added to the problem document and to the response; `{name}` in a
    header's value stands for a member. `example` is an example of the detail, in which `{operation}` and `{singular}` stand for the
    operation's name and the name of its record; it is empty if the title says enough, or if the fields of the operation provide
    one. If a request has several faults, a refusal that `yields` leaves the code of the response to another. At most
    `most_faults` are listed.
    """

    code: str
    message: str
    status: int
    title: str
    scope: Scope
    when: str
    example: str = ""
    at_fault: str = ""
    members: tuple[Member, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    yields: bool = False
    most_faults: int = 20
