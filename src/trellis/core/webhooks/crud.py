"""Webhooks: the operations that make, change, list, try and delete the endpoints which are told of events."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, Final

from trellis.core.events import all_types, differing
from trellis.core.fields import Field, Given, Integer, Text, invalid_id, moment, required
from trellis.core.nodes import NodeKind
from trellis.core.operation import Access, Act, Operation, Outcome
from trellis.core.paging import PAGING, PER_PAGE, page_of
from trellis.core.version import encode, expect, version_of
from trellis.core.webhooks.address import NotAllowed, judge_url
from trellis.core.webhooks.fields import RECORD, SECRET, SETTINGS, SKIP
from trellis.core.webhooks.secret import new_kept, shown
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store.counters import next_number
from trellis.store.webhooks import Webhook, deliveries, endpoints

MOST: Final = 100
EVERYTHING: Final = "*"
PATH: Final = "/core/webhooks"
MISSING: Final = {"get": "1T107/4", "update": "1T107/5", "delete": "1T107/6", "rotate": "1T107/7", "disable": "1T107/8"}


OVERLAP: Final = Field(
    "overlapHours",
    Integer(0, 168),
    "For how many hours messages are signed with the old secret too.",
    default=24,
)
_BECAUSE: Final = Field("because", Text(500, 1), "Why.", required=True)


def operations() -> tuple[Operation, ...]:
    """Give the operations on the endpoints themselves; those on what was sent are in core/deliveries.py."""
    taken = tuple(replace(field, read_only=True) for field in RECORD if field.read_only)
    reads = ("ADDRESS_NOT_ALLOWED", "1T107/1"), ("UNKNOWN_EVENT", "1T107/2")
    return (
        _served("list", "List webhooks", "All webhooks, those that are off too; never a secret.", _list, PAGING),
        _served("get", "Get a webhook", "One webhook by its id; never its secret.", _get),
        _served(
            "create",
            "Make a webhook",
            "Makes a webhook, which is told of every event that it wants from now on, whoever caused it. Messages hold whole "
            "records: grant this to nobody who may not read them. Its secret is in the answer, this once.",
            _create,
            SETTINGS + taken,
            (*reads, ("TOO_MANY_WEBHOOKS", "1T107/3")),
        ),
        _served(
            "update",
            "Change a webhook",
            "Changes a webhook: what is not sent stays as it is. Switched on again, it is sent what happened meanwhile.",
            _update,
            (*SETTINGS, SKIP, *taken),
            reads,
        ),
        _served("delete", "Delete a webhook", "Deletes a webhook, and what waited to be sent to it.", _delete),
        Operation(
            name="webhooks.rotate",
            summary="Rotate a webhook's secret",
            doc="Makes a new secret and shows it, once. Meanwhile messages carry a signature with each of the two.",
            run=_rotate,
            fields=(OVERLAP,),
            writes=True,
            has_target=True,
        ),
        Operation(
            name="webhooks.disable",
            summary="Switch a webhook off, and say why",
            doc="What delivery does by itself when an endpoint is gone, or has failed for a week.",
            run=_disable,
            fields=(_BECAUSE,),
            writes=True,
            has_target=True,
        ),
    )


def _served(
    verb: Any,
    summary: str,
    doc: str,
    run: Callable[[Act], Outcome],
    fields: tuple[Field, ...] = (),
    refusals: tuple[tuple[str, str], ...] = (),
) -> Operation:
    missing = (("INVALID_ID", MISSING[verb]),) if verb in MISSING else ()
    return Operation(
        name=f"webhooks.{verb}",
        summary=summary,
        doc=doc,
        run=run,
        fields=fields,
        writes=verb in {"create", "update", "delete"},
        has_target=verb in MISSING,
        access=Access.GRANTED,
        verb=verb,
        path=PATH,
        refusals=missing + refusals,
        answers=() if verb == "delete" else RECORD,
        once=(SECRET,) if verb == "create" else (),
    )


def written(webhook: Webhook, now: str) -> dict[str, Any]:
    """Write a webhook for a reader: everything but its secret."""
    failing = "failing" if webhook.failing_since else "on"
    return {
        "id": webhook.id,
        "url": webhook.url,
        "events": list(webhook.events),
        "description": webhook.description,
        "enabled": webhook.enabled,
        "state": failing if webhook.enabled else "off",
        "failingSince": webhook.failing_since,
        "lastAttemptAt": webhook.attempted_at,
        "disabledAt": webhook.disabled_at,
        "disabledBecause": webhook.disabled_because or "",
        "oldSecretUntil": webhook.old_until if webhook.old_until and webhook.old_until > now else None,
        "createdAt": webhook.created_at,
        "updatedAt": webhook.updated_at,
    }


def wants(patterns: Iterable[str], event_type: str) -> bool:
    """Say whether an endpoint that wants these events wants this one."""
    every = f"{event_type.partition('.')[0]}.*"
    return any(pattern in {EVERYTHING, every, event_type} for pattern in patterns)


def version(webhook: Mapping[str, Any]) -> str:
    """Give the version of a written webhook: the same until one of its settings is changed. Delivery makes no difference."""
    return version_of(encode([webhook[field.name] for field in SETTINGS]))


def widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Say whether a change of a written webhook sends records elsewhere, or more of them."""
    return after["url"] != before["url"] or not all(wants(before["events"], pattern) for pattern in after["events"])


def found(act: Act, code: str) -> Webhook:
    """Give the webhook that a call is about; refuse an id that there is not."""
    webhook = endpoints.find(act.tx, act.call.target or 0)
    if webhook is None:
        raise invalid_id("webhook", act.call.target, code)
    return webhook


# --- the operations -----------------------------------------------------------------------------------------------


def _list(act: Act) -> Outcome:
    act.given.demand()
    page, per_page = act.given.get("page", 1), act.given.get("perPage", PER_PAGE)
    total, listed = endpoints.page(act.tx, per_page, (page - 1) * per_page)
    return Outcome(page_of([written(webhook, act.now) for webhook in listed], total, page, per_page))


def _get(act: Act) -> Outcome:
    act.given.demand()
    return Outcome(written(found(act, MISSING["get"]), act.now))


def _create(act: Act) -> Outcome:
    given = required(SETTINGS, act.given)
    _refuse((*given.faults, *_faults(act, given)))
    if endpoints.count(act.tx) >= MOST:
        raise Refused("TOO_MANY_WEBHOOKS", f"There are {MOST} webhooks already. Delete one that is not needed.")
    kept = new_kept(act.world.outgoing.key)
    enabled = given.get("enabled", True)
    webhook = Webhook(
        id=next_number(act.tx, "webhooks"),
        url=given.get("url"),
        events=list(given.get("events")),
        description=given.get("description", ""),
        enabled=enabled,
        secret=kept,
        old_secret=None,
        old_until=None,
        disabled_at=None if enabled else act.now,
        disabled_because=None,
        created_at=act.now,
        updated_at=act.now,
        cursor=endpoints.last_event(act.tx),
    )
    endpoints.insert(act.tx, webhook)
    after = written(webhook, act.now)
    once = {**after, "secret": shown(kept, act.world.outgoing.key)}
    return Outcome(once, webhook.id, after=after, plan=after)


def _update(act: Act) -> Outcome:
    old = found(act, MISSING["update"])
    expect(act.call.expected, written(old, act.now))
    given = act.given
    _refuse((*given.faults, *_faults(act, given)))
    new = replace(
        old,
        url=given.get("url", old.url),
        events=list(given.get("events", old.events)),
        description=given.get("description", old.description),
        enabled=given.get("enabled", old.enabled),
    )
    if new.enabled != old.enabled:
        new.disabled_at, new.disabled_because = (None if new.enabled else act.now), None
    skip = bool(given.get(SKIP.name))
    if skip or (new.url, new.enabled) != (old.url, old.enabled):
        new.failures, new.failing_since = 0, None
        endpoints.start_anew(act.tx, old.id, endpoints.last_event(act.tx) if skip else None)
        deliveries.bring_forward(act.tx, old.id, "", MOST)  # what failed before has another chance now
    return _changed(act, old, new, also=(SKIP.name,) if skip else ())


def _delete(act: Act) -> Outcome:
    old = found(act, MISSING["delete"])
    before = written(old, act.now)
    expect(act.call.expected, before)
    act.given.demand()
    endpoints.delete(act.tx, old.id)
    plan = {
        "dryRun": True,
        "deleted": {"count": 1, "ids": [old.id]},
        "moved": {"count": 0, "ids": [], "to": None},
        "changed": {"count": 0, "nodes": []},
    }
    return Outcome(None, old.id, before=before, plan=plan)


def _rotate(act: Act) -> Outcome:
    old = found(act, MISSING["rotate"])
    act.given.demand()
    hours = act.given.get(OVERLAP.name, OVERLAP.default)
    kept = new_kept(act.world.outgoing.key)
    until = moment(datetime.fromisoformat(act.now) + timedelta(hours=hours)) if hours else None
    new = replace(old, secret=kept, old_secret=old.secret if hours else None, old_until=until)
    outcome = _changed(act, old, new, also=("secret",))
    once = {**outcome.result, "secret": shown(kept, act.world.outgoing.key)}
    return outcome._replace(result=once, plan=outcome.result)


def _disable(act: Act) -> Outcome:
    old = found(act, MISSING["disable"])
    given = required((_BECAUSE,), act.given)
    _refuse(given.faults)
    if not old.enabled:
        return Outcome(written(old, act.now), happened=False)
    return _changed(act, old, replace(old, enabled=False, disabled_at=act.now, disabled_because=given.get("because")))


def _changed(act: Act, old: Webhook, new: Webhook, also: tuple[str, ...] = ()) -> Outcome:
    before, after = written(old, act.now), written(new, act.now)
    changed = differing(before, after) + also
    if not changed:
        return Outcome(before, happened=False)
    endpoints.update(act.tx, replace(new, updated_at=act.now))
    after["updatedAt"] = act.now
    return Outcome(after, old.id, before, after, changed)


def _faults(act: Act, given: Given) -> Iterable[Fault]:
    """Judge what the declarations of the fields cannot: where it leads, and whether there are such events."""
    if (url := given.get("url")) is not None:
        try:
            judge_url(url, act.world.outgoing.allowed)
        except NotAllowed as reason:
            yield Fault("url", "ADDRESS_NOT_ALLOWED", f"url {reason}")
    if (patterns := given.get("events")) is not None:
        known = known_patterns(act.world.kinds)
        if not patterns:
            yield Fault("events", "INVALID_VALUE", "events is empty: name at least one, or * for all of them.")
        for pattern in patterns:
            if pattern not in known:
                near = get_close_matches(pattern, known, 1)
                hint = f"Did you mean {near[0]}?" if near else f"There are, for example, {', '.join(known[:4])}."
                yield Fault("events", "UNKNOWN_EVENT", f"events: there is no event '{pattern}'. {hint}")


def known_patterns(kinds: Iterable[NodeKind]) -> tuple[str, ...]:
    """Give everything that an endpoint can want: every event, every kind's, and all of them."""
    types = all_types(kinds)
    return (EVERYTHING, *dict.fromkeys(f"{name.partition('.')[0]}.*" for name in types), *types)


def _refuse(faults: tuple[Fault, ...]) -> None:
    if faults:
        raise refuse_faults(faults)
