"""Verbs as data: what the second half of an operation's name means to every interface, one record for each verb.

This module declares the verbs that several resources share. A verb that only one module uses is declared in that module.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Body(Enum):
    """The kinds of request bodies. An operation without a body takes its fields from the query string."""

    NEW = auto()  # a whole record: required members must be sent, others get their defaults
    CHANGES = auto()  # the members that are to change
    OPTIONS = auto()  # how to carry out the operation; the body itself may be left out


class Response(Enum):
    """The kinds of responses."""

    RECORD = auto()
    PAGE = auto()  # one page of records, with links to the other pages
    FEED = auto()  # a shape of its own, with a cursor to continue from
    ANSWER = auto()  # a shape of its own
    NULL = auto()  # null; a dry run returns what would be deleted, moved and changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """What a verb means, for every operation that has it.

    `name` is the second half of the operation's name. Over HTTP it is served with `method` at the resource's path followed by
    `tail`, and returns `status`. `body` and `response` are the kinds of the request body and the response; `answer` describes the
    response in a sentence. `has_pages`: a response with a shape of its own is one of several pages, too. `creates`: the response is
    a new record with an address; `may_create`: it is a new record if there was none before. The new record is at `records_at`, or
    below the operation's own path if that is empty. `if_match`: the operation is refused if the record has changed since the caller
    read it. `idempotency_key`: a repeated request with the same key gets the first response.

    `moved` is the name of its event if only the place of the record has changed; otherwise the event is named by the verb's past
    tense. `keeps_rows`: the rows that it changes or deletes are saved, so that its events can be undone. `undone_by_deleting`:
    undoing its event deletes what it created; what other verbs create has to be deleted by hand.

    `destructive`: it changes or deletes existing data. `idempotent`: running it twice has the same effect as running it once.
    `code` is the end of a kind's error code for 'no such record'. `column` is its heading in the grid of grants; a verb without one
    is listed below the grid. `button` is the label of its button on a node's page and row in the panel, which leads to a form with
    the operation's fields; verbs without one have pages of their own, or none. `in_dialects`: the dialects that keys may have cover
    it. `read_at` is the path at which agents can read its response without calling a tool; `{resource}` in it stands for the first
    half of the operation's name.
    """

    name: str
    method: str
    tail: str = ""
    status: int = 200
    body: Body | None = None
    response: Response = Response.RECORD
    answer: str = "The response."
    has_pages: bool = False
    creates: bool = False
    may_create: bool = False
    records_at: str = ""
    if_match: bool = False
    idempotency_key: bool = False
    moved: str = ""
    keeps_rows: bool = False
    undone_by_deleting: bool = False
    destructive: bool = False
    idempotent: bool = True
    code: str = ""
    column: str = ""
    in_dialects: bool = False
    button: str = ""
    read_at: str = ""

    @property
    def writes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    @property
    def etag(self) -> bool:
        """Whether the response has a version: what is read, or the record as it is after a write."""
        return not self.writes or self.response is Response.RECORD

    @property
    def has_target(self) -> bool:
        """Whether it is about one record, whose id is in the path."""
        return "{id}" in self.tail

    @property
    def links(self) -> Response:
        """The kind of response that decides which links are sent."""
        return Response.PAGE if self.has_pages else self.response

    @property
    def path_parameter(self) -> str:
        """The name of the parameter in the path: `id`, `externalId`; "" if there is none."""
        return self.tail.partition("{")[2].partition("}")[0]

    @property
    def event(self) -> str:
        """The second half of its events' type."""
        return past_tense(self.name)


# What the spelling of a verb or of a resource does not tell. Names of events are made of these words, so they never change.
_PAST: Final = {"set": "set", "put": "put", "begin": "begun", "withdraw": "withdrawn", "reset": "reset"}
_SINGULARS: Final = {"quizzes": "quiz", "series": "series"}
_SHORT: Final = re.compile("[^aeiou]*[aeiou][^aeiouwxy]")  # of one syllable, with a last letter that is doubled: swap, pin


def past_tense(name: str) -> str:
    """Return the past tense of a verb: `delete` → `deleted`, `copy` → `copied`, `sign_in` → `signed_in`.

    It is the second half of the type of the verb's events, including those of operations that no longer exist.
    """
    name, underscore, rest = name.partition("_")
    return _past_tense_of(name) + underscore + rest


def singular_of(resource: str) -> str:
    """Return the singular of a resource, the first half of its events' type: `forums` → `forum`, `categories` → `category`."""
    if resource in _SINGULARS:
        return _SINGULARS[resource]
    if resource.endswith(("sses", "xes", "shes")):
        return resource.removesuffix("es")
    return resource[:-3] + "y" if resource.endswith("ies") else resource.removesuffix("s")


def _past_tense_of(name: str) -> str:
    if name in _PAST:
        return _PAST[name]
    if _SHORT.fullmatch(name):
        return f"{name}{name[-1]}ed"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ied"
    return f"{name}d" if name.endswith("e") else f"{name}ed"


LIST: Final = Verb(
    name="list",
    method="GET",
    response=Response.PAGE,
    answer="One page.",
    code="7",
    column="List",
    in_dialects=True,
)
GET: Final = Verb(
    name="get",
    method="GET",
    tail="/{id}",
    answer="The record.",
    code="1",
    column="Get",
    in_dialects=True,
)
CREATE: Final = Verb(
    name="create",
    method="POST",
    status=201,
    body=Body.NEW,
    answer="The new record.",
    creates=True,
    idempotency_key=True,
    idempotent=False,
    code="8",
    column="Create",
    in_dialects=True,
)
UPDATE: Final = Verb(
    name="update",
    method="POST",
    tail="/{id}",
    body=Body.CHANGES,
    answer="The changed record. For a dry run, the record as it would be, without an `ETag`.",
    if_match=True,
    moved="moved",
    keeps_rows=True,
    destructive=True,
    code="5",
    column="Update",
    in_dialects=True,
)
DELETE: Final = Verb(
    name="delete",
    method="DELETE",
    tail="/{id}",
    response=Response.NULL,
    answer="`null`. For a dry run, what would be deleted, moved and changed.",
    if_match=True,
    keeps_rows=True,
    destructive=True,
    code="6",
    column="Delete",
    in_dialects=True,
)
RESTORE: Final = Verb(
    name="restore",
    method="POST",
    tail="/{id}/restore",
    body=Body.OPTIONS,
    response=Response.ANSWER,
    answer="What was restored and what could not be. For a dry run, what would be.",
    if_match=True,
    destructive=True,
)
PROPOSE: Final = Verb(  # of no operation: the response to a write that somebody else has to approve
    name="propose",
    method="POST",
    status=202,
    answer="The proposal. Nothing was changed.",
    creates=True,
    records_at="/core/proposals",
    idempotency_key=True,
    idempotent=False,
)
LOOK: Final = Verb(name="look", method="GET", response=Response.ANSWER)
FEED: Final = Verb(
    name="feed",
    method="GET",
    response=Response.FEED,
    answer="The events, and the cursor to continue from.",
    read_at="{resource}",
)

STANDARD: Final = (LIST, GET, CREATE, UPDATE, DELETE)  # what every kind of node and most other resources have
SHARED: Final[Mapping[str, Verb]] = {one.name: one for one in (*STANDARD, RESTORE, LOOK, FEED)}
