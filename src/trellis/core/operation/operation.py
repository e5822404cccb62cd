"""An operation: one act on the community, under the one name that every interface uses for it.

An operation runs in a `Context`, which has the `Environment`, which has all operations: therefore the three are in one module.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.bounds import Reach, find_reach
from trellis.core.fields import Boolean, Field, Input, InputForm, require
from trellis.core.kind import NodeKind
from trellis.core.operation.access import INSIDE, Access, Basis
from trellis.core.operation.call import Call
from trellis.core.operation.outcome import Fate, Outcome
from trellis.core.operation.policies import (
    NO_SECOND_FACTOR_POLICY,
    NO_SIGN_ON,
    NO_WEBHOOK_POLICY,
    Raised,
    SecondFactorPolicy,
    SignOnPolicy,
    WebhookPolicy,
)
from trellis.core.roles import Permits
from trellis.core.verbs import Body, Response, Verb, singular_of
from trellis.refusals import REFUSALS
from trellis.sentences import say
from trellis.store.engine import Transaction
from trellis.store.events import Event, find_newest_timestamp
from trellis.traces import Traces


@dataclass(frozen=True)  # without slots: the cached properties need a __dict__
class Environment:
    """What operations need to know about the service that they run in. Kinds and `operations`, by name, are loaded on first use."""

    community_name: str
    community_url: str
    version: str
    load_kinds: Callable[[], tuple[NodeKind, ...]]
    operations: "Mapping[str, Operation]"
    load_event_types: Callable[[], tuple[str, ...]]
    keep_events: int = 90  # days
    keep_snapshots: int = 30
    job_timeout: float = 20  # seconds that a call which runs others may keep other writes waiting, except at the terminal
    outgoing: WebhookPolicy = NO_WEBHOOK_POLICY
    second_factors: SecondFactorPolicy = NO_SECOND_FACTOR_POLICY
    sign_on: SignOnPolicy = NO_SIGN_ON
    has_mail: bool = False  # whether a mail server is configured
    proposals_per_key: int = 50  # that may be open at once
    proposal_days: int = 7  # for which a proposal can be approved
    breached_passwords: Container[str] | None = None  # which no administrator may choose; a lookup may raise OSError
    traces: Traces | None = None  # creates spans; None if there are no traces
    public_url: str | None = None  # of this service, without /api; None if it is not known

    @property
    def mails_links(self) -> bool:
        """Whether one-time links can be mailed: there is a mail server, and the address of the service, which they begin with."""
        return self.has_mail and self.public_url is not None

    @cached_property
    def kinds(self) -> tuple[NodeKind, ...]:
        """All kinds of nodes."""
        return self.load_kinds()

    @cached_property
    def kinds_by_name(self) -> Mapping[str, NodeKind]:
        """All kinds of nodes by name, in their order."""
        return {kind.name: kind for kind in self.kinds}

    @cached_property
    def group_kind(self) -> NodeKind | None:
        """The kind whose nodes are groups; None if there is none."""
        return next((kind for kind in self.kinds if kind.is_group), None)

    @cached_property
    def permits(self) -> Permits:
        """What each role of administrators may do."""
        return Permits(
            lambda: (
                self.operations.values(),
                [kind.name for kind in self.kinds],
                [kind.name for kind in self.kinds if kind.is_group],
            )
        )

    @cached_property
    def grantable(self) -> frozenset[str]:
        """The names of the operations that a key can be granted."""
        return frozenset(operation.name for operation in self.operations.values() if operation.is_grantable)

    @cached_property
    def granted_alone(self) -> frozenset[str]:
        """The names of the operations that patterns over several resources do not grant."""
        return frozenset(operation.name for operation in self.operations.values() if operation.access.is_granted_alone)

    @cached_property
    def batchable(self) -> "Mapping[str, Operation]":
        """The operations that a batch may run, by name: those over REST that write, or that get one record."""
        return {
            operation.name: operation
            for operation in self.operations.values()
            if operation.path is not None and not operation.access.is_open and not operation.lists
        }

    @cached_property
    def undone_by_deleting(self) -> frozenset[str]:
        """The names of the operations whose events are undone by deleting what they created."""
        return frozenset(o.name for o in self.operations.values() if o.verb is not None and o.verb.undone_by_deleting)

    @cached_property
    def undone_from_event(self) -> frozenset[str]:
        """The names of the operations whose events contain everything that undoing them needs."""
        return frozenset(o.name for o in self.operations.values() if o.undone_from_event)

    @cached_property
    def event_types(self) -> tuple[str, ...]:
        """The types of all events that webhooks can subscribe to."""
        return self.load_event_types()


@dataclass(slots=True)
class Context:
    """A call under way: inside its transaction, with its input parsed and the faults in it collected.

    `run` carries out another call as part of this one: in the same transaction, with a grant and an event of its own. `run_many`
    does the same for several calls of one operation, which must be able to run `together`. `run_apart` carries out a call that has
    to be approved, to try it or once it is approved, as a separate call; its input may have been read before. `now` is the time by
    which expiries are judged. `grants` are the grants that the call needs.
    """

    call: Call
    input: Input
    tx: Transaction
    now: str
    environment: Environment
    run: Callable[[Call], Outcome]
    run_many: Callable[[Sequence[Call]], list[Outcome]]
    run_apart: Callable[[Call, Input | None], Outcome]
    grants: tuple[str, ...] = ()

    def find_reach(self, kind: NodeKind, operation: str = "") -> Reach | None:
        """Return which nodes of a kind the call may reach by its own grant, or by the grant of another operation.

        None means all of them.
        """
        actor = self.call.actor
        return find_reach(actor, operation or self.grants[-1], kind.name) if actor.bounds and (operation or self.grants) else None

    def reaches(self, kind: NodeKind, node: int | None) -> bool:
        """Return whether the call may reach a node of a kind; the top level (None) only if it may reach all nodes."""
        reach = self.find_reach(kind)
        return reach is None or reach.contains(self.tx, node)

    @property
    def at(self) -> str:
        """The time for the records and the event of a write: `now`, or the time of the newest event if the clock is behind it."""
        return max(self.now, find_newest_timestamp(self.tx))


class Fork(NamedTuple):
    """The target of an operation that is only an address: one of the operations `to`, which `find` chooses by a record's id.

    `find` is also given the actor and the time, and treats a record that the actor may not know of like one that does not exist.
    """

    to: tuple[str, ...]
    find: Callable[[Transaction, int, Actor, str], str]


# The names of single records, where they are not the name of the resource without its final s.
_RECORD_NAMES: Final = {"admins": "administrator", "changesets": "change set", "filters": "saved filter"}
DRY_RUN: Final = Field(
    "dryRun",
    Boolean(),
    "Run the whole operation, including all checks, and roll it back: the response says what would have happened.",
    default=False,
    write_only=True,
    brief="",
)


def call_nothing(_call: Call, _given: Input) -> Iterable[Call]:
    """Run no other operation."""
    return ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the gate does for a write before its turn with the writer comes, so that other writes do not wait for it: see `Gate`.

    `load` reads what takes long to read for the first time. `calls` returns the calls that the operation will run, as far as they
    are known in advance: their passwords, too, are replaced by digests. `read_ahead` returns an operation and the values sent to
    it, for the gate to parse.

    `judge` is for operations that take passwords. It runs in a read of its own before the digests are computed, which is slow: it
    refuses what can be refused by then, and returns the digests that are stored until now, by field; a password that matches its
    stored digest keeps it.
    """

    load: Callable[[], object] | None = None
    calls: Callable[[Call, Input], Iterable[Call]] = call_nothing
    read_ahead: Callable[[Context], tuple[str, Mapping[str, Any]] | None] | None = None
    judge: Callable[[Context], Mapping[str, str | None]] = lambda _: {}


NO_PREPARATION: Final = Preparation()


class Together(NamedTuple):
    """How several calls of an operation run together, which is quicker: `run` returns the outcomes in the order of the calls.

    In a batch, those run together for whose inputs `alike` returns the same; None means alone.
    """

    run: "Callable[[Sequence[Context]], list[Outcome]]"
    alike: Callable[[Mapping[str, Any]], str | None] = lambda _: None


@dataclass(frozen=True, eq=False)  # each is one of its own; without slots: the cached property needs a __dict__
class Operation:
    """One act on the community. Its name, its texts and its function are required; everything else is for those that need it.

    Faults in its input and required fields that were not sent are refused before `run`, unless it `judges_input` itself, to refuse
    them together with others: then it starts with `require(fields, context.input)`, and raises the faults in what that returns
    with those that it finds.
    """

    name: str  # in grants, events, the OpenAPI document, the reference and the command line: `forums.create`
    summary: str
    doc: str
    run: Callable[[Context], Outcome]  # carries it out, inside a transaction
    fields: tuple[Field, ...] = ()  # its parameters

    # What it is about, and how REST serves it. A verb also says whether the operation `writes` and `has_target`.
    kind: NodeKind | None = None  # None for the few operations that are not about nodes
    verb: Verb | None = None
    path: str | None = None  # of its resource, if it is served over REST
    also: tuple[str, ...] = ()  # aliases of the path
    writes: bool = False
    has_target: bool = False  # whether it is about one record
    fork: Fork | None = None  # it is never run itself: the gate runs the operation that this leads to, and checks the grant of that

    access: Access = INSIDE  # who may run it

    # What it returns and refuses. `response_fields` are those of its response, or of each record in it, if not those of its kind.
    response_fields: tuple[Field, ...] = ()
    secret_once: tuple[Field, ...] = ()  # fields that are returned only when something is created
    results_in: str = ""  # the member of the response that lists what the calls that it runs returned
    text_type: str = ""  # the media type of its responses that are not JSON
    refusals: tuple[tuple[str, str], ...] = ()  # message and code of each, besides those that all operations share
    recode: Callable[[str], str] = lambda _: ""  # the kind's own code for the message of a refusal
    brief: str = ""  # describes it to agents in place of `summary`

    # How it is run.
    judges_input: bool = False
    preparation: Preparation = NO_PREPARATION
    together: Together | None = None
    is_plan: bool = False  # everything that it does is rolled back
    snapshot: bool = True  # false for a read that consists of a single statement
    slow: bool = False  # it may read more than a page of records, so it does not run on an event loop
    slow_with: str = ""  # a parameter that makes it slow
    most_bytes: int = 0  # the largest size of its requests, if larger than for others
    varies: bool = False  # its responses differ between the keys that may run it, or with the time

    # What its events are like.
    logged: tuple[Field, ...] = ()  # the fields of a record in events, if it is not a node
    is_announced: bool = False  # webhooks can subscribe to its events, as they can to events of nodes
    is_change_set: bool = False  # the events of one run belong together
    undone_from_event: bool = False  # its event contains everything that `restore` needs to undo it
    find_alarm: Callable[[Event], Raised | None] | None = None  # the alarm that an event of it raises
    find_fate: Callable[[Context, int], Fate] | None = None  # what has become of a record that the operation created

    def __post_init__(self) -> None:
        if self.verb is not None:
            object.__setattr__(self, "writes", self.verb.writes)
            object.__setattr__(self, "has_target", self.verb.has_target)

    @cached_property
    def takes(self) -> tuple[Field, ...]:
        """All its parameters: its fields, and `dryRun` for a write."""
        return (*self.fields, DRY_RUN) if self.writes else self.fields

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The names under which it takes passwords."""
        return frozenset(name for field in self.takes if field.is_secret for name in (field.name, *field.also))

    @cached_property
    def form(self) -> InputForm:
        """The form that parses its requests."""
        return InputForm(self.takes, self.recode)

    def carry_out(self, context: Context) -> Outcome:
        """Run it in a transaction. Raises Refused, also for faults in its input and for required fields that were not sent."""
        if not self.judges_input:
            given = context.input if self.changes else require(self.fields, context.input, recode=self.recode)
            given.raise_faults()
        return self.run(context)

    @property
    def lists(self) -> bool:
        """Whether it reads more than one record."""
        return not self.writes and (self.verb is None or self.verb.response is not Response.RECORD)

    @property
    def changes(self) -> bool:
        """Whether its fields are changes, so that none of them is required."""
        return self.verb is not None and self.verb.body is Body.CHANGES

    @property
    def runs_others(self) -> bool:
        """Whether it runs operations that its request names, which record events in its place."""
        return self.preparation.calls is not call_nothing

    @property
    def can_be_limited(self) -> bool:
        """Whether its grant can be limited to some nodes."""
        return self.kind is not None or self.access.reads_nodes

    @property
    def sends_events(self) -> bool:
        """Whether webhooks can subscribe to its events."""
        return self.writes and (self.is_announced or (self.kind is not None and self.verb is not None))

    @property
    def is_proposable(self) -> bool:
        """Whether it changes something and keys may run it, so that a call of it can wait for somebody's approval."""
        return self.writes and not self.is_plan and (bool(self.grants) or self.access.basis is Basis.INNER)

    @property
    def is_grantable(self) -> bool:
        """Whether a key can be granted it."""
        return self.access.basis is Basis.GRANTED

    @property
    def shows_secret(self) -> bool:
        """Whether its response contains a secret that is shown once. Agents never run it: their transcripts keep what they read."""
        return bool(self.secret_once)

    @property
    def is_tool(self) -> bool:
        """Whether agents can be given it as a tool."""
        return self.path is not None and not self.shows_secret

    @property
    def is_conditional(self) -> bool:
        """Whether it may be run on condition that its record has a certain version (If-Match)."""
        return self.verb is not None and self.verb.if_match

    @property
    def needed(self) -> tuple[str, ...]:
        """What a role must include, or a key must have been granted, unless it is open or forks: itself, or all that it needs."""
        return self.access.needs or (self.name,)

    @property
    def grants(self) -> tuple[str, ...]:
        """The operations that a key must have been granted: all that it needs, or one of those that it forks to."""
        if self.fork is not None:
            return self.fork.to
        return self.needed if self.is_grantable or self.access.needs else ()

    @property
    def judged_by(self) -> tuple[str, ...]:
        """The grants by whose bounds the operation itself is judged: none if it runs others, which are judged by their own."""
        return self.grants if self.is_grantable or not self.writes else ()

    @property
    def path_field(self) -> Field | None:
        """The field whose value is in the path in place of an id."""
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
        return self.kind.singular if self.kind else say(_RECORD_NAMES.get(self.resource) or singular_of(self.resource))


targeted_write = partial(Operation, writes=True, has_target=True)  # a write that is about one record
