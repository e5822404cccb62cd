"""An operation: one act on the community, under the one name that every door uses for it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.fields import Boolean, Field, Form, Input
from trellis.core.kind import NodeKind
from trellis.core.verbs import Verb
from trellis.refusals import REFUSALS
from trellis.store.engine import Transaction


class Access(Enum):
    """Who may run an operation."""

    GRANTED = "granted"  # a key that was granted it; one box in the panel
    ANY_KEY = "any key"  # every valid key
    FORKED = "granted by resource"  # a key that was granted the operation that it leads to
    INSIDE = "inside"  # the panel and the terminal only


class Call(NamedTuple):  # like Outcome and Answer: a tuple, since a frozen dataclass takes five times as long to make
    """One wish to run an operation.

    `target` is the id of the record that it is about, for those that have one. `raw` is what was sent, by name. `expected`
    are the versions one of which the record must have (If-Match), `("*",)` for any. `token` and `fingerprint` are an
    Idempotency-Key and a digest of the request that it came with; `idempotency_key` is what its event tells of it.
    `progress` is told by long operations how much is done, and of how much.
    """

    operation: str
    actor: Actor
    raw: Mapping[str, Any] = MappingProxyType({})
    target: int | None = None
    expected: tuple[str, ...] = ()
    request_id: str | None = None
    reason: str | None = None
    token: str | None = None
    fingerprint: str = ""
    idempotency_key: str | None = None
    progress: Callable[[int, int], None] = lambda _done, _all: None


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """What the operator has settled about webhooks: where they may go beside the open internet, and what signs them."""

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)  # without slots: the cached properties need a __dict__
class Environment:
    """What operations need to know of the service that they run in. Kinds and operations are loaded when they are asked for."""

    community_name: str
    community_url: str
    version: str
    load_kinds: Callable[[], tuple[NodeKind, ...]]
    load_operations: "Callable[[], Iterable[Operation]]"
    load_event_types: Callable[[], tuple[str, ...]]
    keep_events: int = 90  # days
    keep_snapshots: int = 30
    outgoing: WebhookPolicy = WebhookPolicy()

    @cached_property
    def kinds(self) -> tuple[NodeKind, ...]:
        """The kinds of nodes that there are."""
        return self.load_kinds()

    @cached_property
    def grantable(self) -> frozenset[str]:
        """The names of the operations that a key can be granted."""
        return frozenset(operation.name for operation in self.load_operations() if operation.access is Access.GRANTED)

    @cached_property
    def undone_by_deleting(self) -> frozenset[str]:
        """The names of the operations whose events are undone by deleting what they made."""
        return frozenset(o.name for o in self.load_operations() if o.verb is not None and o.verb.undone_by_deleting)

    @cached_property
    def event_types(self) -> tuple[str, ...]:
        """The types of the events that can happen to nodes."""
        return self.load_event_types()


class Progress:
    """How far a long operation is: `done` counts what is done of `total`, and tells the call."""

    def __init__(self, call: Call, total: int) -> None:
        self._call = call
        self._done = 0
        self._total = total

    def done(self, more: int = 1) -> None:
        """Count what has just been done."""
        self._done += more
        self._call.progress(self._done, self._total)


@dataclass(slots=True)
class Context:
    """A call under way: inside its transaction, with what it gave already judged."""

    call: Call
    input: Input
    tx: Transaction
    now: str
    environment: Environment


class Outcome(NamedTuple):
    """What an operation did. `result` goes back to the caller; the rest is for the event log.

    `happened` is false where nothing changed: then nothing is recorded. `changed` names the members in which an update made
    a difference, write-only ones included. `plan` is what a dry run answers and what is kept for an Idempotency-Key, where
    that is not the result: a secret is in neither. `undoes` is the event that was taken back.
    """

    result: Any
    resource_id: int | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    happened: bool = True
    touched: tuple[Mapping[str, Any], ...] = ()
    plan: Any = None
    undoes: int | None = None


class Fork(NamedTuple):
    """Where an operation leads that is only an address: to one of the operations `to`, as `find` says for a record's id."""

    to: tuple[str, ...]
    find: Callable[[Transaction, int], str]


DRY_RUN: Final = Field(
    "dryRun",
    Boolean(),
    "Run the whole operation, checks included, and undo it: the answer is what would have happened, and nothing is kept.",
    default=False,
    write_only=True,
)


@dataclass(frozen=True)  # without slots: the cached property needs a __dict__
class Operation:
    """One act on the community.

    `name` is the key of grants, events, the OpenAPI operationId, the reference and the command line: `forums.create`.
    `path` and `also` are where its resource is served over REST, if the operation is; `verb` says how. `fields` are what it takes,
    `run` does it inside a transaction; `snapshot` is false for a reading operation of a single statement. `refusals` are the
    messages that it may refuse with beside those that every operation shares: pairs of message and code. `kind` is None for
    the few that are not about nodes; these say in `answers` what their answer, or each record in it, holds, if REST serves
    them, and in `once` what is answered beside that when something is made, and never again. An operation with a `fork` is
    never run itself: the gate runs the one that it leads to, and judges the grant of that one.
    """

    name: str
    summary: str
    doc: str
    run: Callable[[Context], Outcome]
    fields: tuple[Field, ...] = ()
    writes: bool = False
    snapshot: bool = True
    has_target: bool = False
    access: Access = Access.INSIDE
    verb: Verb | None = None
    path: str | None = None
    also: tuple[str, ...] = ()
    kind: NodeKind | None = None
    refusals: tuple[tuple[str, str], ...] = ()
    recode: Callable[[str], str] = lambda _: ""
    answers: tuple[Field, ...] = ()
    once: tuple[Field, ...] = ()
    fork: Fork | None = None

    @cached_property
    def takes(self) -> tuple[Field, ...]:
        """Everything that it takes: its fields, and `dryRun` for a write."""
        return (*self.fields, DRY_RUN) if self.writes else self.fields

    @cached_property
    def form(self) -> Form:
        """The form that its requests are read by."""
        return Form(self.takes, self.recode)

    @property
    def missing_code(self) -> str:
        """The code of 'no such record', or "" for one that is about no record."""
        return next((code for message, code in self.refusals if REFUSALS[message].status == 404), "")

    @property
    def resource(self) -> str:
        """The first half of its name."""
        return self.name.partition(".")[0]

    @property
    def singular(self) -> str:
        """What one of those is called that it is about."""
        return self.kind.singular if self.kind else self.resource.removesuffix("s")
