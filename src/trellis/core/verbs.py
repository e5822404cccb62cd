"""Verbs as data: what the second half of an operation's name means to every interface, one record for each verb.

Here are the records of the verbs that several resources share. A verb that a single module runs has its record in that module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Body(Enum):
    """What the body of a request holds. An operation without a body takes its fields from the query string."""

    NEW = auto()  # a whole record: what is required must be sent, what is left out gets its default
    CHANGES = auto()  # the members that are to change
    OPTIONS = auto()  # how the operation is to be carried out; the body itself may be left out


class Response(Enum):
    """What an operation answers."""

    RECORD = auto()
    PAGE = auto()  # one page of records, with links to the other pages
    FEED = auto()  # an answer of its own, with a cursor to go on with
    ANSWER = auto()  # an answer of its own
    NULL = auto()  # null; a dry run answers what would be deleted, moved and changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What one verb means, wherever an operation has it.

    `name` is the second half of the operation's name. Over HTTP it is served with `method` at the resource's path followed by
    `tail`, and answers `status`. `body` and `response` are what is sent and answered; `answer` describes the answer in a
    sentence. `etag`: the answer has a version. `creates`: the answer is a new record, which has an address. `if_match`: the
    operation is refused if the record has changed since the caller read it. `idempotency_key`: a request that is sent again
    with the same key gets the first answer.

    `moved` is the name of its event if nothing but the place of the record has changed; otherwise the event has the verb's
    past tense. `keeps_rows`: what it changes or deletes is kept, so that its events can be undone. `undone_by_deleting`: to
    undo its event deletes what it made; what other verbs make has to be deleted by hand.

    `destructive`: it changes or deletes what was there before. `idempotent`: to run it twice leaves the same as to run it once.
    `code` ends the error code that a kind of nodes has for 'no such record'. `column` is its heading in the grid of grants; a
    verb without one is listed below the grid. `button` is what its button says on a node's page and row in the panel, which
    leads to a form of the operation's fields; verbs without one have pages of their own, or none.
    """

    name: str
    method: str
    tail: str = ""
    status: int = 200
    writes: bool = False
    body: Body | None = None
    response: Response = Response.RECORD
    answer: str = "The answer."
    etag: bool = True
    creates: bool = False
    if_match: bool = False
    idempotency_key: bool = False
    moved: str = ""
    keeps_rows: bool = False
    undone_by_deleting: bool = False
    destructive: bool = False
    idempotent: bool = True
    code: str = ""
    column: str = ""
    button: str = ""

    @property
    def has_target(self) -> bool:
        """Whether it is about one record, whose id is in the path."""
        return "{id}" in self.tail

    @property
    def event(self) -> str:
        """The second half of its events' type."""
        return past_tense(self.name)


def past_tense(name: str) -> str:
    """Give the past tense of a verb: `delete` → `deleted`, `copy` → `copied`."""
    if name.endswith("y"):
        return f"{name[:-1]}ied"
    return f"{name}d" if name.endswith("e") else f"{name}ed"


LIST: Final = Verb(
    name="list",
    method="GET",
    response=Response.PAGE,
    answer="One page.",
    code="7",
    column="List",
)
GET: Final = Verb(
    name="get",
    method="GET",
    tail="/{id}",
    answer="The record.",
    code="1",
    column="Get",
)
CREATE: Final = Verb(
    name="create",
    method="POST",
    status=201,
    writes=True,
    body=Body.NEW,
    answer="The new record.",
    creates=True,
    idempotency_key=True,
    idempotent=False,
    code="8",
    column="Create",
)
UPDATE: Final = Verb(
    name="update",
    method="POST",
    tail="/{id}",
    writes=True,
    body=Body.CHANGES,
    answer="The record as it is now; of a dry run, as it would be, without an `ETag`.",
    if_match=True,
    moved="moved",
    keeps_rows=True,
    destructive=True,
    code="5",
    column="Update",
)
DELETE: Final = Verb(
    name="delete",
    method="DELETE",
    tail="/{id}",
    writes=True,
    response=Response.NULL,
    answer="`null`; of a dry run, what would be deleted, moved and changed.",
    etag=False,
    if_match=True,
    keeps_rows=True,
    destructive=True,
    code="6",
    column="Delete",
)
RESTORE: Final = Verb(
    name="restore",
    method="POST",
    tail="/{id}/restore",
    writes=True,
    body=Body.OPTIONS,
    response=Response.ANSWER,
    answer="What came back, and what could not; of a dry run, what would.",
    etag=False,
    if_match=True,
    destructive=True,
)
LOOK: Final = Verb(name="look", method="GET", response=Response.ANSWER)
FEED: Final = Verb(
    name="feed",
    method="GET",
    response=Response.FEED,
    answer="The events, and the cursor to go on with.",
)

STANDARD: Final = (LIST, GET, CREATE, UPDATE, DELETE)  # what every kind of node and most other resources have
SHARED: Final[Mapping[str, Verb]] = {one.name: one for one in (*STANDARD, RESTORE, LOOK, FEED)}
