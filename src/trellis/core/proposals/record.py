"""Proposals as callers see them: their states, their fields, and how they are serialised."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from trellis.core.bounds import Bound, find_broken_condition, read_bounds
from trellis.core.fields import (
    Choice,
    Field,
    Integer,
    Invalid,
    ListOf,
    NodeId,
    Nullable,
    ObjectOf,
    Text,
    TextList,
    Timestamp,
    quote,
)
from trellis.core.keys import key_state
from trellis.core.operation import Context, select_readable
from trellis.core.proposals.effects import COUNTED
from trellis.core.proposals.verbs import APPROVE, PATH, REJECT, WITHDRAW
from trellis.core.proposals.visibility import sees_all
from trellis.core.verbs import past_tense
from trellis.sentences import mark, say
from trellis.store import keys
from trellis.store.keys import Key
from trellis.store.proposals import Proposal

_KEY: Final = "key"
_APPROVE: Final = f"proposals.{APPROVE.name}"
_AT_ONCE: Final = 100  # keys that are read at a time
OPEN: Final = "open"
EXPIRED: Final = "expired"
WITHDRAWN: Final = past_tense(WITHDRAW.name)
APPROVED: Final = past_tense(APPROVE.name)
REJECTED: Final = past_tense(REJECT.name)
# Each state, what it means, and its name in the AuthZEN Access Request and Approval Profile.
_STATES: Final[Mapping[str, tuple[str, str]]] = {
    OPEN: (mark("It is waiting for a decision."), "pending"),
    APPROVED: (mark("It was approved and carried out."), "approved"),
    REJECTED: (mark("It was rejected."), "denied"),
    WITHDRAWN: (mark("Its proposer has withdrawn it."), "cancelled"),
    EXPIRED: (mark("Nobody decided in time."), "expired"),
}
STATE: Final = Choice({name: doc for name, (doc, _) in _STATES.items()})


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object with any members."""

    widget: str = "textarea"

    def parse(self, raw: Any) -> dict[str, Any]:
        if isinstance(raw, Mapping):
            return dict(raw)
        raise Invalid(say("must be an object, not {raw}.", raw=quote(raw)))

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def find_state(proposal: Proposal, now: str) -> str:
    """Return the present state of a proposal: one that is stored as open may have expired."""
    return EXPIRED if proposal.state == OPEN and proposal.expires_at <= now else proposal.state


def serialize_proposal(context: Context, proposal: Proposal) -> dict[str, Any]:
    """Serialise a proposal without what it would change in detail, which `serialize_content` adds."""
    base = context.environment.public_url
    state = find_state(proposal, context.now)
    return {
        "id": proposal.id,
        "state": state,
        "operation": proposal.operation,
        "target": proposal.target,
        "about": proposal.about,
        "proposer": serialize_proposer(proposal),
        "reason": proposal.reason,
        "counts": {name: proposal.counts.get(name, 0) for name in COUNTED},
        "etag": proposal.etag and f'"{proposal.etag}"',
        "createdAt": proposal.created_at,
        "expiresAt": proposal.expires_at,
        "closedAt": proposal.closed_at,
        "closedBy": proposal.closed_by,
        "closedBecause": proposal.closed_because,
        "event": proposal.event,
        "idempotencyKey": proposal.idempotency_key,
        "task": {
            "id": proposal.handle,
            "status": _STATES[state][1],
            "status_endpoint": f"{base or ''}/api{PATH}/{proposal.id}",
            "expires_at": proposal.expires_at,
        },
    }


def serialize_proposer(proposal: Proposal) -> dict[str, Any]:
    """Serialise the actor who made a proposal."""
    return {"type": proposal.actor_type, "id": proposal.actor_id or None, "name": proposal.actor_name}


def serialize_proposals(context: Context, found: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Serialise proposals for a list, without their content."""
    deciding = _find_deciding_keys(context)
    return [_serialize(context, proposal, {}, deciding) for proposal in found]


def serialize_content(context: Context, proposal: Proposal, content: Mapping[str, Any]) -> dict[str, Any]:
    """Serialise a proposal with its content."""
    return _serialize(context, proposal, content, _find_deciding_keys(context))


def _serialize(context: Context, proposal: Proposal, content: Mapping[str, Any], deciding: set[int]) -> dict[str, Any]:
    own = {proposal.actor_id} if proposal.actor_type == _KEY else set()
    return serialize_proposal(context, proposal) | {
        "approvers": ["admin", _KEY] if deciding - own else ["admin"],
        "input": content.get("input"),
        "ifMatch": content.get("ifMatch", []),
        "plan": content.get("plan"),
        "effects": [_hide_unreadable(context, one) for one in content.get("effects", [])],
        "result": content.get("result"),
    }


def _hide_unreadable(context: Context, effect: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave out of an effect what else it touches as far as the caller may not read it, unless the caller decides on proposals."""
    if sees_all(context):
        return effect
    return {**effect, "touched": select_readable(context, effect["touched"], effect["resource"])}


def _find_deciding_keys(context: Context) -> set[int]:
    """Return the ids of keys that may approve proposals: two at most, since only one of them can be the proposer."""
    granted = keys.read_granted(context.tx, _APPROVE, _AT_ONCE)
    return set(islice((key.id for key in granted if _is_deciding(key, context.now)), 2))


def _is_deciding(key: Key, now: str) -> bool:
    """Return whether a key that has been granted to approve may do it now: not if it may only try or propose to."""
    bound = read_bounds(key.bounds).get(_APPROVE, Bound())
    return key_state(key, now) == "active" and find_broken_condition(bound, _APPROVE, now, writes=True, dry=False) is None


def name_state(state: str) -> str:
    """Return a sentence about a state."""
    return say(_STATES[state][0])


# --- for the reference ---------------------------------------------------------------------------------------------

_ACTOR: Final = ObjectOf(
    (
        Field("type", Text(), "The type of actor: an API key, an administrator, the terminal."),
        Field("id", NodeId(nullable=True), "The id of the key or administrator."),
        Field("name", Text(), "Its name at that time."),
    )
)
_COUNTS: Final = ObjectOf(tuple(Field(name, Integer(0), f"How many records are {name}.") for name in COUNTED))
_TASK: Final = ObjectOf(
    (
        Field("id", Text(), "A name of the proposal that nobody can guess."),
        Field("status", Text(), "pending, approved, denied, cancelled or expired."),
        Field("status_endpoint", Text(), "Where to ask for the proposal: `proposals.get`."),
        Field("expires_at", Timestamp(), "Until when it can be approved."),
    )
)
_EFFECTS: Final = ListOf(
    (
        Field("operation", Text(), "The operation."),
        Field("type", Text(), "The type of the event that it would record."),
        Field("resource", Text(), "The resource of the record."),
        Field("id", NodeId(nullable=True), "The id of the record; null for one that it would create."),
        Field("before", Nullable(ObjectOf()), "The record before."),
        Field("after", Nullable(ObjectOf()), "The record after."),
        Field("changed", TextList(), "The members that change."),
        Field("touched", ListOf(()), "What else is created, deleted, moved or changed; at most 1,000 are listed."),
        Field("touchedCount", Integer(0), "How many these are."),
    )
)
_ACTOR_EXAMPLE: Final = {"type": "key", "id": 3, "name": "Gardener"}
LOGGED: Final = (  # the fields of a proposal in events
    Field("id", NodeId(), "Its number.", example=1, read_only=True),
    Field("state", STATE, "Whether it is open, or how it ended.", example=OPEN),
    Field("operation", Text(), "The operation that was called.", example="forums.delete"),
    Field("target", NodeId(nullable=True), "The id of the record that the call is about.", example=12),
    Field("about", Nullable(Text()), "The name of that record, or of the one that would be created.", example="Garden > Roses"),
    Field("proposer", _ACTOR, "Who called it.", example=_ACTOR_EXAMPLE),
    Field("reason", Nullable(Text(100_000)), "The reason, from the header `X-Audit-Log-Reason`.", example="Empty for a year."),
    Field("counts", _COUNTS, "How many records it would touch.", example={"created": 0, "changed": 0, "moved": 0, "deleted": 3}),
    Field("etag", Nullable(Text()), "The `ETag` of the record that it is about.", example='"5d41402abc4b2a76b9719d91"'),
    Field("createdAt", Timestamp(), "When it was proposed.", example="2026-01-31T09:30:00.000Z"),
    Field("expiresAt", Timestamp(), "Until when it can be approved.", example="2026-02-07T09:30:00.000Z"),
    Field("closedAt", Timestamp(nullable=True), "When it was closed; null as long as it is open."),
    Field("closedBy", Nullable(_ACTOR), "Who approved, rejected or withdrew it."),
    Field("closedBecause", Nullable(Text(100_000)), "Why."),
    Field("event", NodeId(nullable=True), "The last event that the call recorded, once it was approved."),
    Field("idempotencyKey", Nullable(Text()), "The `Idempotency-Key` of the call."),
    Field(
        "task",
        _TASK,
        "The same in the form of a task handle of the AuthZEN Access Request and Approval Profile.",
        example={
            "id": "prp_2hTqk1cVwM5bq0sX9nYzJQ",
            "status": "pending",
            "status_endpoint": "https://trellis.example/api/core/proposals/1",
            "expires_at": "2026-02-07T09:30:00.000Z",
        },
    ),
)
WHOLE: Final = (
    *LOGGED,
    Field("approvers", TextList(), "Who may approve it: `admin`, and `key` if another key may.", example=["admin"]),
    Field(
        "input", Nullable(ObjectOf()), "The input of the call; null if it is no longer kept.", example={"deleteChildrenOrMove": -1}
    ),
    Field("ifMatch", TextList(), "The versions that the call expects.", example=[]),
    Field("plan", Nullable(ObjectOf()), "What a dry run of the call returned.", example=None),
    Field("effects", _EFFECTS, "What it would change: the events that it would record, at most 50.", example=[]),
    Field("result", Nullable(ObjectOf()), "What the call returned when it was approved, without secrets.", example=None),
)
