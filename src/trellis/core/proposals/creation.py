"""The operation that makes a proposal of a call, instead of carrying it out."""

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import orjson

from trellis.core.batch import BatchItem
from trellis.core.fields import Field, Input, NodeId, Text, TextList, quote, shift_timestamp
from trellis.core.keys import redact_keys
from trellis.core.operation import DRY_RUN, Call, Context, Operation, Outcome
from trellis.core.passwords import refuse_proposed
from trellis.core.proposals.effects import Effects, is_outdated, try_call
from trellis.core.proposals.record import OPEN, WHOLE, JsonObject, serialize_content, serialize_proposal
from trellis.core.proposals.verbs import WITHDRAW
from trellis.core.verbs import PROPOSE
from trellis.core.version import record_version
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store import events, proposals
from trellis.store.counters import next_number
from trellis.store.proposals import Proposal

_MOST_BYTES: Final = 64 * 2**20  # of all open proposals of one actor
LARGEST: Final = 7 * 2**20  # bytes of one, so that every interface can show it: tools for agents return at most 8 MiB


class _Versions(TextList):
    """The versions that a call was sent with, valid or not: if none of them is the record's, the call is refused for that."""

    def parse(self, raw: Any) -> tuple[str, ...]:
        return raw if isinstance(raw, tuple) else super().parse(raw)


_FIELDS: Final = (
    Field("operation", Text(100, 1), "The operation to propose.", required=True, example="forums.create"),
    Field("target", NodeId(nullable=True), "The id of the record that the operation is about."),
    Field("input", JsonObject(), "The input of the operation.", example={"name": "Bulletin"}),
    Field("ifMatch", _Versions(), "The versions that the record may have."),
    Field("changeSet", Text(64), "The name of the change set that the events will belong to."),
)


def operation() -> Operation:
    """Return the operation. Over REST, every call that its key may only propose leads here."""
    return Operation(
        name="proposals.create",
        summary="Propose a call",
        doc="Runs a call, rolls it back, and keeps it until somebody approves it.",
        run=_create,
        fields=_FIELDS,
        writes=True,
        is_announced=True,
        response_fields=WHOLE,
    )


def _create(context: Context) -> Outcome:
    given = context.input
    operation = _find_operation(context, given.get("operation"))
    raw = _clean(operation, given.get("input", {}))
    expected = tuple(given.get("ifMatch", ()))
    call = context.call.build_inner(operation.name, raw, given.get("target"), expected)
    call = call._replace(change_set=given.get("changeSet") or None, proposed=None)
    known = context.call.proposed
    read = operation.form.read(raw) if known is None else known
    identity = _compute_identity(context, call, read)
    same = proposals.find_open_by_identity(context.tx, identity, context.now)
    if same is None:
        _refuse_passwords(context, operation, call, read)
    revision = events.find_newest_number(context.tx)
    outcome, effects = try_call(context, call, known)
    uses = outcome.uses if operation.results_in else ()
    for use in uses:  # reads count as uses, though they were rolled back with the call
        use.count_again(context.tx, call.actor)
    if effects.is_empty:  # there is nothing to approve
        return outcome._replace(event=None, happened=False, uses=uses)
    if same is not None:
        kept = proposals.find_content(context.tx, same.id)
        if not is_outdated(context.tx, same, kept, effects, revision):
            return Outcome(serialize_content(context, same, kept), same.id, happened=False, verb=PROPOSE)
        context.run(context.call.build_inner(f"proposals.{WITHDRAW.name}", {}, same.id))  # nobody could approve it any more
    held = _check_limit(context)
    content = {
        "input": _redact_reasons(raw),
        "ifMatch": list(expected),
        "plan": outcome.tried,
        "effects": effects.shown,
        "outcome": effects.outcome,
        "places": effects.places,
    }
    size = len(orjson.dumps(content))
    if size > LARGEST:
        raise _refuse_too_large(size)
    if held + size > _MOST_BYTES:
        raise _refuse_too_many(context, f"the open proposals of the key would take more than {_MOST_BYTES >> 20} MiB")
    proposal = _build(context, call, identity, revision, effects)
    proposal = replace(proposal, etag=_find_version(call, outcome))
    proposals.insert(context.tx, proposal, content)
    whole, after = serialize_content(context, proposal, content), serialize_proposal(context, proposal)
    return Outcome(whole, proposal.id, after=after, verb=PROPOSE, uses=uses)


def _find_operation(context: Context, name: str) -> Operation:
    operation = context.environment.operations.get(name)
    if operation is None or not operation.is_proposable:
        detail = say("operation: {name} is not an operation that changes something and can be granted to a key.", name=quote(name))
        raise refuse_fault("operation", "INVALID_VALUE", detail)
    return operation


def _clean(operation: Operation, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input without the fields that are accepted but ignored."""
    fields = {name: operation.form.find(name) for name in raw}
    return {
        name: value
        for name, value in raw.items()
        if name != DRY_RUN.name and ((field := fields[name]) is None or not field.read_only)
    }


def _redact_reasons(value: Any) -> Any:
    """Return an input with keys redacted in its reasons, also in those within a batch, as they will be if it is approved."""
    if isinstance(value, list):
        return [_redact_reasons(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    reasons = {name: redact_keys(one) for name, one in value.items() if name == "reason" and isinstance(one, str)}
    return {name: _redact_reasons(one) for name, one in value.items()} | reasons


def _compute_identity(context: Context, call: Call, given: Input) -> str:
    """Return a digest of the proposer and the call. The same values have the same digest however they are sent, in a batch too."""
    actor = call.actor
    known = context.environment.operations

    def normalise(value: Any) -> Any:
        if isinstance(value, BatchItem):
            body = _normalise_body(known.get(value.operation), value.body)
            return [value.operation, value.id, value.name, value.if_match, body]
        raise TypeError

    about = [actor.type, actor.id, call.operation, call.target, sorted(call.expected)]
    try:
        sent = orjson.dumps(call.raw, option=orjson.OPT_SORT_KEYS)
        with suppress(TypeError):  # values that are not JSON are the same only if sent in the same way
            read = {name: value for name, value in given.values.items() if name != DRY_RUN.name}
            sent = sent if given.faults else orjson.dumps(read, normalise, orjson.OPT_SORT_KEYS)
        return hashlib.sha256(orjson.dumps(about) + sent).hexdigest()
    except TypeError:
        detail = say(
            "The request contains a number of more than 64 bits, or something else that cannot be stored until it is approved."
        )
        raise refuse_fault("input", "INVALID_VALUE", detail) from None


def _normalise_body(operation: Operation | None, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values in an item of a batch; those that cannot be read before it runs, such as references, as they were sent."""
    if operation is None:
        return body
    fields = {name: operation.form.find(name) for name in body}
    sent = {field.name: body[name] for name, field in fields.items() if field is not None and not field.read_only}
    return {**sent, **operation.form.read(body).values}


def _refuse_passwords(context: Context, operation: Operation, call: Call, given: Input) -> None:
    """Refuse a call with a password in it or in a call that it will run. The gate refuses passwords that become known only then."""
    known = context.environment.operations

    def list_calls(operation: Operation, call: Call, given: Input) -> Iterator[Call]:
        yield call
        for one in () if given.faults else operation.preparation.calls(call, given):
            if (inner := known.get(one.operation)) is not None:
                yield from list_calls(inner, one, inner.form.read(one.raw) if inner.runs_others else Input({}))

    if any(not known[one.operation].secrets.isdisjoint(one.raw) for one in list_calls(operation, call, given)):
        raise refuse_proposed()


def _check_limit(context: Context) -> int:
    """Return the size of the caller's open proposals in bytes. Raises Refused (TOO_MANY_PROPOSALS) if it may make no more."""
    actor = context.call.actor
    held = proposals.measure_open(context.tx, actor.type, actor.id or 0, context.now)
    most = context.environment.proposals_per_key
    if held.number >= most:
        raise _refuse_too_many(context, f"the key has {held.number:,} open proposals, which is the limit")
    return held.size


def _refuse_too_many(context: Context, why: str) -> Refused:
    return Refused(
        "TOO_MANY_PROPOSALS",
        say("Nothing was proposed: {why}. Wait until some are closed, or withdraw some.", why=why),
        facts={"limit": context.environment.proposals_per_key},
    )


def _refuse_too_large(size: int) -> Refused:
    return Refused(
        "PROPOSAL_TOO_LARGE",
        say(
            "Nothing was proposed: the proposal, with what it would change, would take {size:,} bytes, and at most {most:,} can be "
            "shown to those who decide. Propose it in parts.",
            size=size,
            most=LARGEST,
        ),
        facts={"limit": LARGEST},
    )


def _find_version(call: Call, outcome: Outcome) -> str | None:
    """Return the version of the record that a call targets; None if it creates one, or changes another one than its target."""
    is_own = outcome.resource_id == call.target and outcome.undoes is None
    return record_version(outcome.before) if is_own and outcome.before is not None else None


def _build(context: Context, call: Call, identity: str, revision: int, effects: Effects) -> Proposal:
    actor = call.actor
    return Proposal(
        id=next_number(context.tx, "proposals"),
        handle=f"prp_{secrets.token_urlsafe(16)}",
        state=OPEN,
        actor_type=actor.type,
        actor_id=actor.id or 0,
        actor_name=actor.name,
        operation=call.operation,
        target=call.target,
        about=effects.about,
        identity=identity,
        reason=call.reason,
        idempotency_key=call.idempotency_key,
        change_set=call.change_set,
        etag=None,
        counts=effects.counts,
        revision=revision,
        digest=effects.digest,
        created_at=context.at,
        expires_at=shift_timestamp(context.now, timedelta(days=context.environment.proposal_days)),
    )
