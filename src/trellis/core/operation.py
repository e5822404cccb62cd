"""An operation: one act on the community, under the one name that every interface uses for it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.fields import Boolean, Field, Form, Input
from trellis.core.kind import NodeKind
from trellis.core.passwords import KEYS, PEOPLE, Plain
from trellis.core.verbs import Response, Verb
from trellis.refusals import REFUSALS
from trellis.store.engine import Transaction
from trellis.store.events import find_newest_timestamp


class Access(Enum):
    """Who may run an operation."""

    GRANTED = "granted"  # keys that have been granted it; one box in the panel
    ANY_KEY = "any key"  # every valid key
    FORKED = "granted by resource"  # keys that have been granted the operation that it leads to
    IMPLIED = "granted with others"  # keys that have been granted all operations that it `needs`
    INNER = "granted by what it runs"  # every valid key; each operation that it runs needs its own grant
    INSIDE = "inside"  # the panel and the terminal only


_OPEN: Final = frozenset((Access.ANY_KEY, Access.INNER))  # what every valid key may run


class Call(NamedTuple):  # like Outcome and Answer: a tuple, since a frozen dataclass takes five times as long to create
    """A request to run an operation.

    `target` is the id of the record that it is about, if the operation has one. `raw` maps names to the values sent. `expected`
    are the versions that the record may have (If-Match), `("*",)` for any. `token` and `fingerprint` are the Idempotency-Key and
    a digest of its request; `idempotency_key` is recorded in the event. Long operations call `progress` with how much is done and
    the total. `waits_as` is the lane in which passwords in the call wait for their digests, if it is not that of its actor: see
    lanes.py. Nodes that the call creates or changes are `managed_by` the structure document with this name. The gate puts into
    `digests` those of inner calls: by password, and the digest stored so far.
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
    change_set: str | None = None
    progress: Callable[[int, int], None] = lambda _done, _all: None
    waits_as: str = ""
    managed_by: str | None = None
    digests: Mapping[tuple[Plain, str | None], str] = MappingProxyType({})

    def build_inner(
        self, operation: str, raw: Mapping[str, Any], target: int | None = None, expected: tuple[str, ...] = ()
    ) -> "Call":
        """Return a call to run as part of this one, for the same caller and reason; its progress is not reported."""
        no_progress = self._field_defaults["progress"]
        return self._replace(operation=operation, raw=raw, target=target, expected=expected, token=None, progress=no_progress)

    @property
    def lane(self) -> str:
        """The lane in which passwords in the call wait for their digests."""
        return self.waits_as or f"{KEYS if self.actor.type == 'key' else PEOPLE}/{self.actor.type}/{self.actor.id}"


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """The operator's settings for webhooks: where they may go besides the public internet, and the key for their secrets."""

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)  # without slots: the cached properties need a __dict__
class Environment:
    """What operations need to know about the service that they run in. Kinds and operations are loaded on first use."""

    community_name: str
    community_url: str
    version: str
    load_kinds: Callable[[], tuple[NodeKind, ...]]
    load_operations: "Callable[[], Iterable[Operation]]"
    load_event_types: Callable[[], tuple[str, ...]]
    keep_events: int = 90  # days
    keep_snapshots: int = 30
    job_timeout: float = 20  # seconds for which what runs other operations may keep other writes waiting, but for the terminal
    outgoing: WebhookPolicy = WebhookPolicy()
    public_url: str | None = None  # of this service, without /api; None if it is not known

    @cached_property
    def kinds(self) -> tuple[NodeKind, ...]:
        """All kinds of nodes."""
        return self.load_kinds()

    @cached_property
    def group_kind(self) -> NodeKind | None:
        """The kind whose nodes are groups; None if there is none."""
        return next((kind for kind in self.kinds if kind.is_group), None)

    @cached_property
    def grantable(self) -> frozenset[str]:
        """The names of the operations that a key can be granted."""
        return frozenset(operation.name for operation in self.load_operations() if operation.access is Access.GRANTED)

    @cached_property
    def granted_alone(self) -> frozenset[str]:
        """The names of the operations that patterns of several resources leave out."""
        return frozenset(operation.name for operation in self.load_operations() if operation.granted_alone)

    @cached_property
    def batchable(self) -> "Mapping[str, Operation]":
        """The operations that a batch may run, by name: those over REST that write, or that get one record."""
        return {
            operation.name: operation
            for operation in self.load_operations()
            if operation.path is not None and operation.access not in _OPEN and not operation.lists
        }

    @cached_property
    def undone_by_deleting(self) -> frozenset[str]:
        """The names of the operations whose events are undone by deleting what they created."""
        return frozenset(o.name for o in self.load_operations() if o.verb is not None and o.verb.undone_by_deleting)

    @cached_property
    def event_types(self) -> tuple[str, ...]:
        """The types of all events about nodes."""
        return self.load_event_types()


class Progress:
    """The progress of a long operation: counts what is `done` of `total`, and reports it to the call."""

    def __init__(self, call: Call, total: int) -> None:
        self._call = call
        self._done = 0
        self._total = total

    def done(self, more: int = 1) -> None:
        """Add to what has been done, and report it."""
        self._done += more
        self._call.progress(self._done, self._total)


class RawText(NamedTuple):
    """A result that is text of a media type of its own, and not a JSON value."""

    text: str
    media_type: str


class Outcome(NamedTuple):
    """What an operation did. `result` is returned to the caller; the rest is for the event log.

    `happened` is false if nothing changed; then no event is recorded. `changed` names the members that an update has changed,
    including write-only ones. `plan` is returned by a dry run and stored for an Idempotency-Key, if that differs from the result:
    it never contains a secret. `undoes` is the event that was undone. An operation that runs others records no event itself:
    `event` is the last event of these, and `verb` is the one whose success it reports.
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
    event: int | None = None
    verb: Verb | None = None


@dataclass(slots=True)
class Context:
    """A call under way: inside its transaction, with its input already validated.

    `run` carries out another call as part of this one: in the same transaction, with a grant and an event of its own. `run_many`
    does that with several calls of one operation that has a `run_many`. `now` is the time by which expiries are judged.
    """

    call: Call
    input: Input
    tx: Transaction
    now: str
    environment: Environment
    run: Callable[[Call], Outcome]
    run_many: Callable[[Sequence[Call]], list[Outcome]]

    @property
    def at(self) -> str:
        """The time that records and the event of a write bear: `now`, or that of the newest event where the clock is behind it."""
        return max(self.now, find_newest_timestamp(self.tx))


class Fork(NamedTuple):
    """Where an operation leads that is only an address: to one of the operations `to`, chosen by `find` from a record's id.

    `find` is told who asks, and answers for what that actor may not know of as it does for what there is not.
    """

    to: tuple[str, ...]
    find: Callable[[Transaction, int, Actor], str]


DRY_RUN: Final = Field(
    "dryRun",
    Boolean(),
    "Run the whole operation, including all checks, and roll it back: the response says what would have happened.",
    default=False,
    write_only=True,
)


Judge = Callable[[Context], Mapping[str, str | None]]


def judge_nothing(_: Context) -> Mapping[str, str | None]:
    """Refuse nothing, and know of no digests."""
    return {}


def call_nothing(_call: Call, _given: Input) -> Iterable[Call]:
    """Run no other operation."""
    return ()


@dataclass(frozen=True)  # without slots: the cached property needs a __dict__
class Operation:
    """One act on the community.

    `name` identifies it in grants, events, the OpenAPI document, the reference and the command line: `forums.create`.
    `path` and `also` are the paths of its resource, if it is served over REST; `verb` says how. `fields` are its parameters, and
    `run` carries it out inside a transaction; `snapshot` is false for a reading operation with a single statement. `refusals` are
    the refusals that it can raise in addition to those shared by all operations, as pairs of message and code.

    `run_many` carries out several calls together, which is quicker than one by one; their outcomes are in the order of the calls.

    `judge` is for operations that take passwords. It is run before their digests are made, which is slow, in a read of its own:
    it refuses what can be refused by then, and returns the digests that are stored so far, by field; a password that fits its
    own keeps it. `calls` are the calls that an operation will run, as far as they are known before: their passwords become
    digests too.

    `kind` is None for the few operations that are not about nodes; if REST serves these, `answers` are the fields of their
    response or of each record in it, and `once` are fields that are returned only when something is created. An operation with
    a `fork` is never run itself: the gate runs the operation that it leads to, and checks the grant for that one. `needs` are
    the operations all of which a key must have been granted, for one that has no grant of its own. `slow`: it may read more
    than a page holds, so that it does not run on an event loop; with the parameter `slow_with` it may do so too. `is_change_set`:
    the events of one run belong together. `varies`: keys that may run it get different responses. `most_bytes`: how large its
    requests may be, if larger than others. With `granted_alone`, a pattern of several resources such as `*.create` does not grant
    it.
    """

    name: str
    summary: str
    doc: str
    run: Callable[[Context], Outcome]
    fields: tuple[Field, ...] = ()
    writes: bool = False
    snapshot: bool = True
    run_many: "Callable[[Sequence[Context]], list[Outcome]] | None" = None
    judge: Judge = judge_nothing
    calls: Callable[[Call, Input], Iterable[Call]] = call_nothing
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
    needs: tuple[str, ...] = ()
    granted_alone: bool = False
    slow: bool = False
    slow_with: str = ""
    is_change_set: bool = False
    varies: bool = False
    most_bytes: int = 0

    @cached_property
    def takes(self) -> tuple[Field, ...]:
        """All its parameters: its fields, and `dryRun` for a write."""
        return (*self.fields, DRY_RUN) if self.writes else self.fields

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The names under which it takes passwords."""
        return frozenset(name for field in self.takes if field.is_secret for name in (field.name, *field.also))

    @cached_property
    def form(self) -> Form:
        """The form that parses its requests."""
        return Form(self.takes, self.recode)

    @property
    def lists(self) -> bool:
        """Whether it reads more than one record."""
        return not self.writes and (self.verb is None or self.verb.response is not Response.RECORD)

    @property
    def runs_others(self) -> bool:
        """Whether it runs operations that its request names, which leave events in its place."""
        return self.calls is not call_nothing

    @property
    def is_open(self) -> bool:
        """Whether every valid key may run it, whatever it has been granted."""
        return self.access in _OPEN

    @property
    def is_conditional(self) -> bool:
        """Whether it may be run on condition that its record has a certain version (If-Match)."""
        return self.verb is not None and self.verb.if_match

    @property
    def grants(self) -> tuple[str, ...]:
        """The operations that a key must have been granted: all that it needs, or one of those that it forks to."""
        own = (self.name,) if self.access is Access.GRANTED else ()
        return self.fork.to if self.fork is not None else self.needs or own

    @property
    def path_field(self) -> Field | None:
        """The field whose value stands in the path in place of an id."""
        name = self.verb.path_parameter if self.verb is not None else ""
        return None if self.has_target else next((f for f in self.fields if f.name == name), None)

    @property
    def missing_code(self) -> str:
        """The error code of 'no such record', or "" if it is not about a record."""
        return next((code for message, code in self.refusals if REFUSALS[message].status == 404), "")

    @property
    def resource(self) -> str:
        """The first half of its name."""
        return self.name.partition(".")[0]

    @property
    def singular(self) -> str:
        """The name of a single record of its resource."""
        return self.kind.singular if self.kind else self.resource.removesuffix("s")
