"""The responses kept for Idempotency-Keys: storing the response to a write, and returning it to a repeated request."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from trellis.core.catalogue import Catalogue
from trellis.core.operation import Call, Fate, Operation
from trellis.core.verbs import CREATE, PROPOSE, Verb
from trellis.errors import Refused
from trellis.sentences import join, say
from trellis.store import idempotency
from trellis.store.engine import Transaction

# A response is kept together with the name of the operation that returned it. Earlier releases kept the bare response.
_OPERATION: Final = "$operation"
_RESPONSE: Final = "$response"
_PROPOSAL: Final = "$proposal"  # in place of _RESPONSE if the response is a proposal
_EVENT: Final = "$event"
_CHANGE_SET: Final = "$changeSet"


class StillRunning(Refused):
    """The first request with this key has not ended."""


class KeyReused(Refused):
    """The first request with this key was another one."""


class RecordGone(KeyReused):
    """What the first request with this key created has been deleted since."""


class Created(NamedTuple):
    """A record that was created, according to a kept response. `batch_index` is that of its operation if that ran in a batch."""

    operation: str
    id: int
    batch_index: int | None = None


class WriteDone(NamedTuple):
    """What a write did: the verb that was carried out, the last event that it recorded, and the change set of its events."""

    verb: Verb | None
    event: int | None
    change_set: int | None


class Kept(NamedTuple):
    """What was kept of the first request with a key. What is None is not known, or there is none."""

    fingerprint: str
    operation: str | None
    response: Any
    is_proposal: bool
    event: int | None = None
    change_set: int | None = None


FindFate = Callable[[Created], Fate | None]  # returns what has become of a record; None if the caller may not create one


def find_kept(tx: Transaction, key: int, token: str, fingerprint: str, since: str) -> Kept | None:
    """Return what was kept of the first request with an Idempotency-Key; None if there is nothing.

    A different request may use the key anew if the first is older than `since`. The same request gets its response until that is
    purged, which does not happen at once if the clock is wrong.
    """
    found = idempotency.find_response(tx, key, token)
    if found is None:
        return None
    of, stored, at = found
    if of != fingerprint and at < since:
        return None
    members = stored if isinstance(stored, Mapping) else {}
    if _OPERATION not in members and _PROPOSAL not in members:
        return Kept(of, None, stored, is_proposal=False)
    is_proposal = _PROPOSAL in members
    response = members[_PROPOSAL if is_proposal else _RESPONSE]
    return Kept(of, members.get(_OPERATION), response, is_proposal, members.get(_EVENT), members.get(_CHANGE_SET))


def find_same(tx: Transaction, key: int, call: Call, since: str) -> Any:
    """Return the response to an earlier call with the same token and content; None if there is none, or if it was a proposal."""
    kept = find_kept(tx, key, call.token, call.fingerprint, since) if call.token else None
    return None if kept is None or kept.fingerprint != call.fingerprint or kept.is_proposal else kept.response


def keep(tx: Transaction, call: Call, operation: Operation, done: WriteDone, response: Any, at: str, catalogue: Catalogue) -> bool:
    """Keep the response of a write under the key and the token of its call; return whether it was kept. It must contain no secret.

    The response of a batch that only read is not kept: repeating it does no harm, and a key that may only read must not fill the
    disk.
    """
    member = _PROPOSAL if done.verb is not None and done.verb.records_at else _RESPONSE
    if member == _RESPONSE and operation.results_in and not _has_written(operation, response, catalogue):
        return False
    kept = {_OPERATION: operation.name, member: response, _EVENT: done.event, _CHANGE_SET: done.change_set}
    idempotency.save_response(tx, call.actor.id or 0, call.token or "", call.fingerprint, kept, at)
    return True


def _has_written(operation: Operation, response: Any, catalogue: Catalogue) -> bool:
    """Return whether any of the operations that an operation ran may have changed something."""
    run = [catalogue.find(one["operation"]) for one in _list_results(operation, response)]
    return any(one.writes and not one.is_plan for one in run)


def replay(
    kept: Kept, operation: Operation, fingerprint: str, catalogue: Catalogue, find_fate: FindFate
) -> tuple[Any, Verb | None]:
    """Return the kept response to a repeated request, and the verb that was carried out.

    Raises Refused if the first request with the key was a different one, or if a record that it created is gone.
    """
    if kept.fingerprint != fingerprint:
        raise _refuse_reused(kept, catalogue, find_fate)
    if kept.is_proposal:
        return kept.response, PROPOSE
    last = _find_last_event(operation, kept.response)
    for created in _list_created(operation, kept.response, catalogue):
        found = find_fate(created)
        if found is not None and not found.is_there and (found.deleted_by is None or found.deleted_by > last):
            raise _refuse_gone(created, found.deleted_by, catalogue)
    return kept.response, operation.verb


def _list_created(operation: Operation, response: Any, catalogue: Catalogue) -> Iterator[Created]:
    if operation.verb is not None and operation.verb.creates and isinstance(response, Mapping):
        yield Created(operation.name, response["id"])
    for index, one in enumerate(_list_results(operation, response)):
        inner, record = catalogue.find(one["operation"]), one["result"]
        if one["event"] is None or inner.verb is None:
            continue
        if inner.verb.creates:
            yield Created(inner.name, record["id"], index)
        elif inner.verb.may_create and record["createdAt"] == record["updatedAt"]:
            yield Created(f"{inner.resource}.{CREATE.name}", record["id"], index)


def _list_results(operation: Operation, response: Any) -> list[Mapping[str, Any]]:
    return list(response[operation.results_in]) if operation.results_in else []


def _find_last_event(operation: Operation, response: Any) -> int:
    """Return the last event of a batch, which may itself have deleted what it created; 0 for any other operation."""
    return max((one["event"] or 0 for one in _list_results(operation, response)), default=0)


def refuse_running() -> Refused:
    """Return the refusal of a request whose first one is still running."""
    detail = say("A request with this Idempotency-Key is still running. Wait for its response, then send this one again.")
    return StillRunning("IDEMPOTENCY_KEY_IN_USE", detail)


def _refuse_reused(kept: Kept, catalogue: Catalogue, find_fate: FindFate) -> Refused:
    detail = say("This Idempotency-Key was sent with a different request within the last 24 hours. Use a new one.")
    facts: dict[str, Any] = {}
    if kept.is_proposal:
        facts = {"resource": PROPOSE.records_at.rpartition("/")[2], "id": kept.response["id"]}
    elif kept.operation is not None:
        first = catalogue.find(kept.operation)
        created = [one for one in _list_created(first, kept.response, catalogue) if one.batch_index is None]
        there = [one for one in created if (found := find_fate(one)) is not None and found.is_there]
        facts = {"resource": first.resource, "id": there[0].id} if there else {}
    if facts:
        named = say("The first request created {resource}:{id}.", resource=facts["resource"], id=facts["id"])
        return KeyReused("IDEMPOTENCY_KEY_REUSED", join((detail, named)), facts=facts)
    return KeyReused("IDEMPOTENCY_KEY_REUSED", detail, facts=facts)


def _refuse_gone(created: Created, event: int | None, catalogue: Catalogue) -> Refused:
    operation = catalogue.find(created.operation)
    facts: dict[str, Any] = {"resource": operation.resource, "id": created.id}
    facts |= {} if event is None else {"event": event}
    facts |= {} if created.batch_index is None else {"index": created.batch_index}
    which = "" if created.batch_index is None else say(" (operation {index} of the batch)", index=created.batch_index)
    by = "" if event is None else say(": event {event} deleted it", event=event)
    detail = say(
        "The first request with this Idempotency-Key created the {singular} {id}{which}, which no longer exists{by}. Nothing was "
        "done this time. To create it again, send a new Idempotency-Key.",
        singular=say(operation.singular),
        id=created.id,
        which=which,
        by=by,
    )
    return RecordGone("IDEMPOTENCY_RECORD_GONE", detail, facts=facts)
