"""Undoing an event of a key: what the event changed is set back to what it was, unless it has been changed again since.

The event contains everything that this needs. Rotations and revocations are not undone: a secret that was replaced is not kept, and
a key that was revoked stays revoked, since nobody expects an undo to let somebody in again.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trellis.core.events import find_undoing_events, is_past_undo, refuse_undone
from trellis.core.fields import invalid_id
from trellis.core.keys.crud import check_key_version, find_unrevoked, save_key, serialize_key
from trellis.core.keys.fields import RECORDED
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.errors import Refused
from trellis.sentences import say, say_many
from trellis.store import events
from trellis.store.events import Event
from trellis.store.keys import Key

RESTORE: Final = "keys.restore"
_NO_EVENT: Final = "1T106/5"
_MOST_LATER: Final = 1000  # later events of the key that are examined
_ONE_BY_ONE: Final = frozenset(("grants", "bounds"))
_MEMBERS: Final = (*(member for member in RECORDED.values() if member not in _ONE_BY_ONE), "pausedAt", "pausedBecause")
_FINAL: Final[Mapping[str, str]] = MappingProxyType(
    {
        "keys.create": say("created the key. To undo that, revoke the key."),
        "keys.rotate": say("replaced the secret. The old one is not kept, so it cannot be restored. Rotate the key again."),
        "keys.revoke": say("revoked the key, which cannot be undone. Create a new key."),
    }
)


def operation() -> Operation:
    """Return the operation, for the panel and the terminal. `events.restore` leads to it; its target is the event."""
    return targeted_write(
        RESTORE,
        "Undo a change to a key",
        "Undoes an event of a key: a change to its settings or grants, a pause or a resume. What has been changed again since is "
        "not undone. A revoked key stays revoked, and a secret that was replaced does not come back.",
        _restore,
        undone_from_event=True,
    )


def _attribute(member: str) -> str:
    """Return the name of the attribute of a key that its record has as this member."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in member)


def _restore(context: Context) -> Outcome:
    event = events.find(context.tx, context.call.target or 0)
    if event is None or event.resource != "keys":
        raise invalid_id(say("event of a key"), context.call.target, _NO_EVENT)
    _refuse_final(context, event)
    old = find_unrevoked(context, event.resource_id)
    check_key_version(context, old)
    outcome = save_key(context, old, _revert(context, event, old))
    restored = {"count": int(outcome.happened), "ids": [old.id] if outcome.happened else []}
    record = outcome.after if outcome.happened else outcome.result
    result = {"event": event.seq, "operation": event.operation, "record": record, "restored": restored, **_describe_nothing_else()}
    return outcome._replace(result=result, plan=result | {"dryRun": True}, undoes=event.seq)


def _describe_nothing_else() -> dict[str, Any]:
    """Return the members that only undoing an event of a node fills, empty."""
    none, no_nodes = {"count": 0, "ids": []}, {"count": 0, "nodes": []}
    return {"deleted": none, "moved": none, "changed": no_nodes, "left": no_nodes, "lostGroups": []}


def _refuse_final(context: Context, event: Event) -> None:
    """Refuse an event that cannot be undone, was undone already, or is too old."""
    if event.operation not in context.environment.undone_from_event or event.before is None or event.after is None:
        why = _FINAL.get(event.operation, say("is {operation}, which cannot be undone.", operation=event.operation))
        raise Refused("NOT_RESTORABLE", say("Event {seq} {why}", seq=event.seq, why=why))
    refuse_undone(context.tx, event.seq)
    if is_past_undo(context, event.at):
        raise Refused(
            "NO_LONGER_KEPT",
            say_many(
                context.environment.keep_snapshots,
                "Event {seq} is too old: changes can be undone for {count:,} day.",
                "Event {seq} is too old: changes can be undone for {count:,} days.",
                seq=event.seq,
            ),
        )


class _Since(NamedTuple):
    """What later events have changed in a key, even if it was set back since: members, grants, and grants with other bounds."""

    fields: set[str]
    grants: set[str]
    bounds: set[str]


def _find_changed_since(context: Context, event: Event, key: int) -> _Since:
    """Find what later events have changed in the key, unless they were undone. Raises Refused (CHANGED_SINCE) for too many."""
    later = [change.event for change in events.find_since_of(context.tx, event.seq, "keys", [key], _MOST_LATER)]
    if len(later) == _MOST_LATER:
        many = say(
            "The key has been changed at least {most_later:,} times since event {seq}. Edit it by hand.",
            most_later=_MOST_LATER,
            seq=event.seq,
        )
        raise Refused("CHANGED_SINCE", many, facts={"differences": []})
    undone = find_undoing_events(context.tx, later)
    since = _Since(set(), set(), set())
    for one in events.find_many(context.tx, sorted(set(later) - set(undone) - set(undone.values()))):
        if one.before is not None and one.after is not None:
            since.fields.update(one.changed)
            since.grants.update(set(one.before["grants"]) ^ set(one.after["grants"]))
            was, became = one.before.get("bounds") or {}, one.after.get("bounds") or {}
            since.bounds.update(name for name in was.keys() | became.keys() if was.get(name) != became.get(name))
    return since


def _revert(context: Context, event: Event, key: Key) -> Key:
    """Return the key with what an event changed set back to what it was before. Raises Refused (CHANGED_SINCE)."""
    before, after, now = event.before or {}, event.after or {}, serialize_key(key, context.now)
    changed = [name for name in event.changed if name in _MEMBERS]
    since = _find_changed_since(context, event, key.id)
    differences = [
        {"field": name, "then": after[name], "now": now[name]}
        for name in changed
        if now[name] != after[name] or name in since.fields
    ]
    lost = set(before["grants"]) - set(after["grants"]) - since.grants
    gained = set(after["grants"]) - set(before["grants"]) - since.grants
    was, became, bounds = before.get("bounds") or {}, after.get("bounds") or {}, dict(now["bounds"])
    grants = (set(now["grants"]) | (lost & context.environment.grantable)) - gained
    for name in sorted(set(was) | set(became)):
        if was.get(name) == became.get(name) or name not in grants or name in since.grants:
            continue  # a grant that was given again keeps the bound that it was given with
        if name in now["grants"] and (bounds.get(name) != became.get(name) or name in since.bounds):
            differences.append({"field": f"bounds.{name}", "then": became.get(name), "now": bounds.get(name)})
        elif name in was:
            bounds[name] = was[name]
        else:
            bounds.pop(name, None)
    if differences:
        fields = ", ".join(one["field"] for one in differences)
        detail = say(
            "The key has been changed again since event {seq}: {fields}. Undo the later change first, or edit the key by hand.",
            seq=event.seq,
            fields=fields,
        )
        raise Refused("CHANGED_SINCE", detail, facts={"differences": differences})
    return replace(
        key,
        grants=sorted(grants),
        bounds={name: bound for name, bound in bounds.items() if name in grants},
        **{_attribute(name): before[name] for name in changed},
    )
