"""What a call changes, found by running it. On approval, this is compared with what it would have changed when it was proposed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import orjson

from trellis.core.events import event_type, serialize_reference
from trellis.core.fields import Input
from trellis.core.operation import Call, Context, Outcome
from trellis.core.verbs import past_tense
from trellis.core.version import encode_json, leave_out_passing, record_version
from trellis.store import events, nodes, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.proposals import Proposal

_NAMES: Final = ("path", "name", "description", "url")  # members that can name a record; the first that it has does
_NAME: Final = 500  # characters of a name that are kept
_MOST: Final = 100  # differences that a refusal lists
SHOWN: Final = 50  # events that are kept for people to see
TOUCHED: Final = 1000  # ids of other records that are kept for each event
_CREATED: Final = "created"
_MOVED: Final = "moved"
# What happened to another record, by the word that events have for it.
_FATES: Final[Mapping[str, str]] = {"made": _CREATED, "restored": _CREATED, "deleted": "deleted", "moved": _MOVED}
_MADE: Final = "made"
_VERSION: Final = ""  # in a shortened record, the member with its version, in place of the rest
_DERIVED: Final = frozenset({"updatedAt"})  # members that change with others
_ANEW: Final = _DERIVED | {"id", "createdAt", "position", "path"}  # and members of a new record that differ each time
_URL: Final = "url"  # that of a node changes with its name; that of a webhook is its own
COUNTED: Final = (_CREATED, "changed", _MOVED, "deleted")


class Effects(NamedTuple):
    """What a call changes. `digest` stays the same as long as the records that the call touches are unchanged.

    `outcome` stays the same as long as the records that the call creates, changes, moves or restores end up the same, and `places`
    as long as nodes end up under the same parents. They may depend on records that the call reads without touching them, such as a
    parent with its permissions, the original of a copy, or what a batch refers to. `records` are the ids of the touched records by
    resource, `counts` their number by what happens to them, `shown` the first of the call's events, and `about` the name of the
    record that the call is about.
    """

    digest: str
    outcome: str
    places: str
    records: Mapping[str, Sequence[int]]
    counts: dict[str, int]
    shown: list[dict[str, Any]]
    about: str | None

    @property
    def is_empty(self) -> bool:
        """Whether the call changes nothing."""
        return not self.shown


def try_call(context: Context, call: Call, given: Input | None) -> tuple[Outcome, Effects]:
    """Run a call, undo it, and return what it did. `given` is its input, if it was read before. Raises Refused as the call does."""
    with context.tx.trial():
        revision = events.find_newest_number(context.tx)
        outcome = context.run_apart(call, given)
        effects = collect_effects(context, call, revision)
    return outcome, effects


def collect_effects(context: Context, call: Call, revision: int) -> Effects:
    """Return what this transaction has changed since event `revision`, which was the newest one before the call was run."""
    tx, kinds = context.tx, context.environment.kinds_by_name.keys()
    left = [
        event if number < SHOWN or event.resource not in kinds else _lighten(event)
        for number, event in enumerate(events.walk(tx, events.select_page(tx, {}, revision, newest_first=False)))
    ]
    counts = Counter(one for event in left for one in _count(event))
    made = _find_made(left)
    records: dict[str, set[int]] = {}
    for event in left:
        for resource, number in ((event.resource, event.resource_id), *((one["resource"], one["id"]) for one in event.touched)):
            if number is not None and (resource, number) not in made:
                records.setdefault(resource, set()).add(number)
    outcome, places = _compute_outcome(context, left, made)
    return Effects(
        digest=_compute_digest(tx, left, revision, made),
        outcome=outcome,
        places=places,
        records={resource: sorted(ids) for resource, ids in records.items()},
        counts={name: counts[name] for name in COUNTED},
        shown=[_describe(event) for event in left[:SHOWN]],
        about=_name(_find_record(left, call) or (left[0] if left else None)),
    )


def _lighten(event: Event) -> Event:
    """Return an event that is not shown with only what is needed of its nodes, since they may have very long texts."""
    return replace(event, before=_lighten_record(event.before), after=_lighten_record(event.after))


def _lighten_record(record: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if record is None:
        return None
    return {name: str(record[name])[:_NAME] for name in _NAMES if record.get(name)} | {_VERSION: _find_version(record)}


def _find_version(record: Mapping[str, Any]) -> str:
    return str(record[_VERSION]) if _VERSION in record else record_version(record)


def _count(event: Event) -> list[str]:
    return [_find_fate(event), *(_FATES.get(one.get("how", ""), "changed") for one in event.touched)]


def _find_fate(event: Event) -> str:
    if event.before is None:
        return _CREATED
    if event.after is None:
        return past_tense("delete")
    return _MOVED if event_type(event).endswith(".moved") else "changed"


def _find_record(left: Sequence[Event], call: Call) -> Event | None:
    """Return the first event about the record that a call targets; None if there is none."""
    resource = call.operation.partition(".")[0]
    return next((one for one in left if (one.resource, one.resource_id) == (resource, call.target) and one.undoes is None), None)


def _name(event: Event | None) -> str | None:
    record = None if event is None else event.before or event.after
    if record is None:
        return None
    named = next((record[name] for name in _NAMES if record.get(name)), None)
    return None if named is None else str(named)[:_NAME]


def _describe(event: Event) -> dict[str, Any]:
    return {
        "operation": event.operation,
        "type": event_type(event),
        "resource": event.resource,
        "id": event.resource_id if event.before is not None else None,
        "before": event.before,
        "after": event.after,
        "changed": list(event.changed),
        "touched": [dict(one) for one in event.touched[:TOUCHED]],
        "touchedCount": len(event.touched),
    }


def _find_made(left: Sequence[Event]) -> set[tuple[str, int | None]]:
    """Return the records that were created, as resource and id. The next time they will have other ids."""
    made = {(event.resource, event.resource_id) for event in left if event.before is None}
    return made | {(one["resource"], one["id"]) for event in left for one in event.touched if one.get("how") == _MADE}


def _compute_digest(tx: Transaction, left: Sequence[Event], revision: int, made: set[tuple[str, int | None]]) -> str:
    """Return a digest of the touched records as they were before, without those that this run has created."""
    parts: list[Any] = []
    seen = set(made)
    for event in left:
        record = (event.resource, event.resource_id)
        version = None if record in seen or event.before is None else _find_version(event.before)
        seen.add(record)
        named = None if record in made else event.resource_id
        touched = [
            (one["resource"], one["id"], one.get("how")) for one in event.touched if (one["resource"], one["id"]) not in made
        ]
        parts.append((event.operation, event.resource, named, version, sorted(touched), len(event.touched) - len(touched)))
    rows: dict[tuple[str, int], str] = {}
    for kind, number, updated_at in snapshots.find_saved_since(tx, revision):
        if (kind, number) not in made:
            rows.setdefault((kind, number), updated_at)
    return blake2b(encode_json([parts, sorted((*key, at) for key, at in rows.items())]), digest_size=16).hexdigest()


def _compute_outcome(context: Context, left: Sequence[Event], made: set[tuple[str, int | None]]) -> tuple[str, str]:
    """Return a digest of the records that were created, changed, moved or restored, and a digest of the places of nodes.

    Ids, times, and positions among nodes that were there before do not count, and of records that are no nodes only what a call
    can set.
    """
    tx, kinds = context.tx, context.environment.kinds_by_name.keys()
    wanted: dict[str, dict[int, None]] = {}
    outcome, places = blake2b(digest_size=16), blake2b(digest_size=16)
    for event in left:
        if event.after is not None and event.resource not in kinds:
            fields = context.environment.operations[event.operation].fields
            settled = {field.name: event.after.get(field.name) for field in fields if not field.read_only}
            outcome.update(orjson.dumps(settled, option=orjson.OPT_SORT_KEYS))
        elif event.after is not None and event.resource_id is not None:
            wanted.setdefault(event.resource, {})[event.resource_id] = None
        for one in event.touched:
            if _FATES.get(one.get("how", "")) in {_CREATED, _MOVED}:
                wanted.setdefault(one["resource"], {})[one["id"]] = None
    for resource, ids in wanted.items():
        new_parents = {number: index for index, number in enumerate(ids) if (resource, number) in made}
        for batch in nodes.split_into_batches(list(ids), nodes.AT_ONCE):
            found = nodes.find_by_ids(tx, resource, batch)
            for node in (found[number] for number in batch if number in found):
                manager = [] if node.managed_by is None else [node.managed_by]
                content = [node.name, node.external_id, node.fields, node.permissions, *manager]
                outcome.update(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))
                parent = new_parents.get(node.parent_id or 0)  # its id differs each time
                places.update(encode_json([node.parent_id] if parent is None else [parent, node.position]))
    return outcome.hexdigest(), places.hexdigest()


def is_outdated(tx: Transaction, proposal: Proposal, content: Mapping[str, Any], now: Effects, until: int) -> bool:
    """Return whether the call of a proposal, whose effects are `now`, would do something else than was proposed.

    It would if it touches a record that has changed, or that an event since the proposal, up to `until`, has been about, or if its
    outcome or its places differ.
    """
    # a proposal from an older release has no outcome, or no places
    proposed = proposal.digest, content.get("outcome", now.outcome), content.get("places", now.places)
    if proposed != (now.digest, now.outcome, now.places):
        return True
    first = (events.find_since_of(tx, proposal.revision, resource, ids, 1) for resource, ids in now.records.items())
    return any(found[0].event <= until for found in first if found)


def find_difference(
    context: Context, revision: int, then: Sequence[Mapping[str, Any]], now: Effects
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what has changed since event `revision` in the records that a call touched `then` or touches `now`: events, members.

    Call this after the run has been undone, so that the events of the run are not among the later ones.
    """
    ids = {resource: set(some) for resource, some in now.records.items()}
    for one in then:
        for resource, number in ((one["resource"], one["id"]), *((each["resource"], each["id"]) for each in one["touched"])):
            if number is not None:
                ids.setdefault(resource, set()).add(number)
    tx, kinds = context.tx, context.environment.kinds_by_name.keys()
    changes = {one for name, some in ids.items() for one in events.find_since_of(tx, revision, name, sorted(some), _MOST)}
    others: set[int] = set()  # events about another record that have also changed or deleted one of the nodes
    for name in ids.keys() & kinds:
        for batch in nodes.split_into_batches(sorted(ids[name]), nodes.AT_ONCE):
            others |= {one.seq for one in snapshots.find_next_of_each(tx, name, batch, revision).values()}
    changes |= set(events.find_by_numbers(tx, sorted(others)[:_MOST]))
    members = _compare(then, now.shown, kinds) or _compare_outcomes(then, now.shown, kinds)
    if not (changes or members):  # something has changed that the call reads without touching it, such as a node to be copied
        resources = [name for name in {*ids, *kinds} if context.call.actor.sees(name)]
        changes = set(events.find_since(tx, revision, resources, _MOST))
    return [serialize_reference(one) for one in sorted(changes)[:_MOST]], members[:_MOST]


def _compare(then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], kinds: AbstractSet[str]) -> list[dict[str, Any]]:
    old = {(one["resource"], one["id"]): one["before"] for one in reversed(then) if one["id"] is not None}
    new = {(one["resource"], one["id"]): one["before"] for one in reversed(now) if one["id"] is not None}
    return [
        {"resource": resource, "id": number, "field": name, "then": before.get(name), "now": new[resource, number].get(name)}
        for (resource, number), before in old.items()
        if (resource, number) in new
        for name in sorted(leave_out_passing(before))  # PostgreSQL has not kept their order
        if name not in _DERIVED and before[name] != new[resource, number].get(name)
        if name != _URL or resource not in kinds
    ]


def _compare_outcomes(
    then: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], kinds: AbstractSet[str]
) -> list[dict[str, Any]]:
    """Return how the results of a call differ for records that were the same before it, apart from the ids of new parents."""
    made = {(one["resource"], one["after"].get("id")) for one in now if one["id"] is None and one["after"] is not None}
    same = [
        (old, new) for old, new in zip(then, now, strict=False) if (old["operation"], old["id"]) == (new["operation"], new["id"])
    ]
    return [
        {"resource": new["resource"], "id": new["id"], "field": name, "then": value, "now": new["after"].get(name)}
        for old, new in same
        if old["after"] is not None and new["after"] is not None
        for name, value in sorted(leave_out_passing(old["after"]).items())
        if name not in _ANEW and value != new["after"].get(name)
        if name != _URL or new["resource"] not in kinds
        if name != "parentId" or (new["resource"], new["after"].get(name)) not in made
    ]
