"""The operations that close a proposal: approve, reject, withdraw, expire. The service closes those that nobody has decided on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NoReturn

from trellis.core.actor import TERMINAL, Actor, Approval, describe_actor
from trellis.core.bounds import Use
from trellis.core.events import changed_members
from trellis.core.fields import Field, Input, Text, invalid_id, isolate
from trellis.core.gate import Gate
from trellis.core.keys import find_holder, redact_keys
from trellis.core.operation import Access, Basis, Call, Context, Operation, Outcome, Preparation, targeted_write
from trellis.core.proposals.effects import Effects, collect_effects, find_difference, is_outdated
from trellis.core.proposals.record import (
    APPROVED,
    EXPIRED,
    OPEN,
    REJECTED,
    WHOLE,
    WITHDRAWN,
    find_state,
    name_state,
    serialize_content,
    serialize_proposal,
)
from trellis.core.proposals.verbs import APPROVE, PATH, REJECT, WITHDRAW
from trellis.core.proposals.visibility import find_visible, is_decided_by_proposer, is_own
from trellis.core.verbs import Verb
from trellis.core.version import check_precondition
from trellis.errors import Refused
from trellis.refusals import with_codes
from trellis.sentences import join, say
from trellis.store import events, proposals
from trellis.store.admins import administrators
from trellis.store.proposals import Proposal

_CODES: Final = {WITHDRAW.name: "1T115/8", APPROVE.name: "1T115/9", REJECT.name: "1T115/A"}
_REASON: Final = Field("reason", Text(500), "Why.", example="Agreed with the gardeners.")
_NEEDED: Final = replace(_REASON, type=Text(500, 1), required=True, example="It is still in use.")
_EXPIRE: Final = "proposals.expire"
_SERVICE: Final = Actor("service", None, "housekeeping", frozenset({_EXPIRE}))
_MOST_OVERDUE: Final = 50  # at once


def operations() -> tuple[Operation, ...]:
    """Return the operations."""
    return (
        replace(
            _build_operation(
                WITHDRAW,
                "Withdraw a proposal",
                "Closes one of the key's own open proposals without running it.",
                _withdraw,
                (_REASON,),
            ),
            access=Access(Basis.ANY_KEY, for_proposers=True),
        ),
        replace(
            _build_operation(
                APPROVE,
                "Approve a proposal",
                "Runs the call of an open proposal as its proposer, with the grants and bounds that the proposer has now. The "
                "approval is refused if what the call touches has changed since it was proposed; the response says how. The "
                "events name the proposer as `actor` and the approver as `approvedBy`. A key cannot approve its own proposals.",
                _approve,
                (_REASON,),
                ("OWN_PROPOSAL", "PROPOSAL_OUTDATED", "PROPOSAL_REFUSED"),
            ),
            preparation=Preparation(calls=_list_calls, read_ahead=_find_call),
        ),
        _build_operation(
            REJECT,
            "Reject a proposal",
            "Closes an open proposal without running it. The proposer can read the reason.",
            _reject,
            (_NEEDED,),
            ("OWN_PROPOSAL", "MISSING_VALUE"),
        ),
        targeted_write(
            name=_EXPIRE,
            summary="Close an expired proposal",
            doc="Done by the service itself. A proposal can no longer be approved once it expires.",
            run=_expire,
            is_announced=True,
        ),
    )


def _build_operation(
    verb: Verb,
    summary: str,
    doc: str,
    run: Callable[[Context], Outcome],
    fields: tuple[Field, ...],
    refusals: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        name=f"proposals.{verb.name}",
        summary=summary,
        doc=doc,
        run=run,
        fields=fields,
        is_announced=True,
        access=Access(Basis.GRANTED, is_granted_alone=True),  # it decides on calls that others may not run alone
        verb=verb,
        path=PATH,
        refusals=(("INVALID_ID", _CODES[verb.name]), *with_codes("PROPOSAL_CLOSED", *refusals)),
        response_fields=WHOLE,
    )


# --- the operations -----------------------------------------------------------------------------------------------


def _approve(context: Context) -> Outcome:
    proposal = _find_to_decide(context, APPROVE)
    content = proposals.find_content(context.tx, proposal.id)
    try:
        call = _build_call(context, proposal, content)
        outcome, effects, uses = _carry_out(context, call, proposal, content)
    except Refused as refused:
        raise _refuse(proposal, refused) from None
    if outcome is None:
        raise _refuse_outdated(context, proposal, content, effects, has_read=bool(uses))
    return _close(context, proposal, APPROVED, event=outcome.event, result=outcome.kept)._replace(uses=uses)


def _carry_out(
    context: Context, call: Call, proposal: Proposal, content: Mapping[str, Any]
) -> tuple[Outcome | None, Effects, tuple[Use, ...]]:
    """Run the call; return its outcome, its effects, and the uses that its reads were counted as.

    Undo it and return no outcome if what it touches has changed since the proposal, or if its outcome differs.
    """
    revision = events.find_newest_number(context.tx)
    try:
        with context.tx.savepoint():
            outcome = context.run_apart(call, context.call.proposed)
            effects = collect_effects(context, call, revision)
            if is_outdated(context.tx, proposal, content, effects, revision):
                _undo(effects, outcome.uses)
    except _Outdated as outdated:
        return None, outdated.effects, outdated.uses
    return outcome, effects, outcome.uses


class _Outdated(Exception):
    """Raised to undo a call that would do something else than was proposed, with what it would do."""

    def __init__(self, effects: Effects, uses: tuple[Use, ...]) -> None:
        super().__init__()
        self.effects = effects
        self.uses = uses


def _undo(effects: Effects, uses: tuple[Use, ...]) -> NoReturn:
    raise _Outdated(effects, uses)


def _reject(context: Context) -> Outcome:
    return _close(context, _find_to_decide(context, REJECT), REJECTED)


def _withdraw(context: Context) -> Outcome:
    proposal = _find(context, WITHDRAW)
    if context.call.actor.grants is not None and not is_own(context, proposal):
        raise invalid_id(say("proposal of this key"), proposal.id, _CODES[WITHDRAW.name])
    return _close(context, _require_open(context, proposal), WITHDRAWN)


def _expire(context: Context) -> Outcome:
    proposal = find_visible(context, _CODES[REJECT.name])
    if proposal.state != OPEN or find_state(proposal, context.now) != EXPIRED:
        return Outcome(serialize_proposal(context, proposal), proposal.id, happened=False)
    return _close(context, proposal, EXPIRED)


def find_overdue(gate: Gate) -> list[Call]:
    """Return the calls that close expired proposals, at most 50 of them. They cannot be approved even before they are closed."""
    with gate.store.reading() as tx:
        found = proposals.find_overdue(tx, gate.now(), _MOST_OVERDUE)
    return [Call(_EXPIRE, _SERVICE, target=number) for number in found]


def _find_to_decide(context: Context, verb: Verb) -> Proposal:
    proposal = _find(context, verb)
    if is_decided_by_proposer(context, proposal):
        detail = say("Proposal {id} was made by the caller. Somebody else has to decide on it.", id=proposal.id)
        raise Refused("OWN_PROPOSAL", detail)
    return _require_open(context, proposal)


def _find(context: Context, verb: Verb) -> Proposal:
    """Return the proposal that a call targets. Raises Refused if the caller expects another version of it (If-Match)."""
    proposal = find_visible(context, _CODES[verb.name])
    if context.call.expected:
        whole = serialize_content(context, proposal, proposals.find_content(context.tx, proposal.id))
        check_precondition(context.call.expected, whole)
    return proposal


def _require_open(context: Context, proposal: Proposal) -> Proposal:
    state = find_state(proposal, context.now)
    if state != OPEN:
        sentences = [say("Proposal {id} is no longer open.", id=proposal.id), name_state(state)]
        if proposal.closed_by is not None:
            by = isolate(describe_actor(proposal.closed_by))
            sentences.append(say("{name} closed it at {time}.", name=by, time=proposal.closed_at))
        raise Refused("PROPOSAL_CLOSED", join(sentences), facts={"state": state})
    return proposal


# --- running the call ---------------------------------------------------------------------------------------------


def _list_calls(_call: Call, _given: Input) -> Iterable[Call]:
    """Return no calls. The gate looks for passwords in them, and no proposal contains any.

    That an operation lists its calls, even if there are none, makes it one that runs others (`runs_others`).
    """
    return ()


def _build_call(context: Context, proposal: Proposal, content: Mapping[str, Any]) -> Call:
    """Build the call as it was proposed, with the grants that its proposer has now. Raises Refused if it has no rights any more.

    If-Match is left out, since whatever the call touches must be unchanged anyway.
    """
    return context.call._replace(
        operation=proposal.operation,
        actor=_PROPOSERS[proposal.actor_type](context, proposal),
        raw=content.get("input") or {},
        target=proposal.target,
        expected=(),
        reason=proposal.reason,
        token=None,
        idempotency_key=proposal.idempotency_key,
        change_set=proposal.change_set,
        approval=Approval(proposal.id, context.call.actor, context.call.approval),
        proposed=None,
    )


def _find_call(context: Context) -> tuple[str, Mapping[str, Any]] | None:
    """Return the operation and the input of a proposal that is to be approved; None if there is none."""
    proposal = proposals.find(context.tx, context.call.target or 0)
    content = None if proposal is None else proposals.find_content(context.tx, proposal.id)
    return None if proposal is None or not content else (proposal.operation, content.get("input") or {})


def _find_administrator(context: Context, proposal: Proposal) -> Actor:
    found = administrators.find(context.tx, proposal.actor_id)
    if found is None or found.disabled_at is not None:
        raise Refused(
            "NO_PERMISSION",
            say("{actor_name}, who proposed it, is no longer an administrator.", actor_name=isolate(proposal.actor_name)),
        )
    return Actor.administrator(found.id, found.name, context.environment.permits.find(found.role, found.kinds))


# Each finds the actor who proposed, with the grants that it has now, and raises Refused if it has no rights any more.
_PROPOSERS: Final[Mapping[str, Callable[[Context, Proposal], Actor]]] = {
    "key": lambda context, proposal: find_holder(context.tx, proposal.actor_id, context.now),
    "admin": _find_administrator,
    "terminal": lambda _context, _proposal: TERMINAL,
}


def _refuse(proposal: Proposal, refused: Refused) -> Refused:
    detail = say(
        "Nothing was done: {operation}, run as {actor_name}, was refused. {detail}",
        operation=proposal.operation,
        actor_name=isolate(proposal.actor_name),
        detail=refused.detail,
    )
    return Refused("PROPOSAL_REFUSED", detail, facts={"problem": refused})


def _refuse_outdated(
    context: Context, proposal: Proposal, content: Mapping[str, Any], effects: Effects, *, has_read: bool
) -> Refused:
    changes, members = find_difference(context, proposal.revision, content.get("effects", ()), effects)
    told = [
        say("event {event}, {operation} of {id}", event=one["event"], operation=one["operation"], id=one["id"])
        for one in changes[:3]
    ]
    fields = dict.fromkeys(one["field"] for one in members)
    parts = [*told, *((say("another {fields}", fields=", ".join(fields)),) if fields else ())]
    since = join((" (", join(parts, "; "), ")"), "") if parts else ""
    return Refused(
        "PROPOSAL_OUTDATED",
        say(
            "Nothing was done: what proposal {id} affects has changed since it was made{since}. Ask for a new proposal.",
            id=proposal.id,
            since=since,
        ),
        # They may show what was read, which does not count, since it is rolled back.
        facts={"changes": changes, "differences": [] if has_read else members},
    )


# --- closing ------------------------------------------------------------------------------------------------------


def _close(context: Context, proposal: Proposal, state: str, *, event: int | None = None, result: Any = None) -> Outcome:
    closed = replace(
        proposal,
        state=state,
        closed_at=context.at,
        closed_by=context.call.actor.serialize(),
        closed_because=redact_keys(context.input.get(_REASON.name, "")) or context.call.reason,
        event=event,
    )
    before, after = serialize_proposal(context, proposal), serialize_proposal(context, closed)
    proposals.close(context.tx, closed, result)
    whole = serialize_content(context, closed, proposals.find_content(context.tx, closed.id))
    plan = whole | {"event": None, "result": None}  # a result may show what was read, which is not counted once it is rolled back
    return Outcome(whole, closed.id, before, after, changed_members(before, after), plan=plan)
