"""The operations on webhooks themselves: list, get, create, update, delete, rotate, disable."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any, Final

from trellis.core.actor import DELIVERY
from trellis.core.events import save_change
from trellis.core.fields import Field, Input, Integer, Suggestions, Text, require, require_found, shift_timestamp
from trellis.core.operation import Access, Basis, Context, Fate, Operation, Outcome, targeted_write
from trellis.core.paging import PAGING, parse_paging, serialize_page
from trellis.core.subscriptions import event_patterns, find_alarm_patterns, is_subscribed, is_webhook_widened
from trellis.core.verbs import CREATE, DELETE, GET, LIST, UPDATE, Response, Verb
from trellis.core.version import check_precondition, compute_version, encode_json
from trellis.core.webhooks.address import NotAllowed, check_url
from trellis.core.webhooks.fields import RECORD, SECRET, SETTINGS, SKIP
from trellis.core.webhooks.secret import format_secret, generate_secret
from trellis.errors import Fault, Refused, raise_faults
from trellis.refusals import with_codes
from trellis.sentences import say
from trellis.store import events
from trellis.store.counters import next_number
from trellis.store.webhooks import Attempt, Webhook, endpoints, outbox, reasons

MOST: Final = 100
PATH: Final = "/core/webhooks"
MISSING: Final = {"get": "1T107/4", "update": "1T107/5", "delete": "1T107/6", "rotate": "1T107/7", "disable": "1T107/8"}


OVERLAP: Final = Field(
    "overlapHours",
    Integer(0, 168),
    "How many hours messages are also signed with the old secret.",
    default=24,
)
_BECAUSE: Final = Field("because", Text(500, 1), "Why.", required=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations on endpoints; those on deliveries are in deliveries.py."""
    read_only = tuple(field for field in RECORD if field.read_only)
    setting_refusals = with_codes("ADDRESS_NOT_ALLOWED", "UNKNOWN_EVENT", "ALARMS_ARE_FOR_OWNERS")
    return (
        _rest_operation(
            LIST, "List webhooks", "Returns all webhooks, including those that are off, without their secrets.", _list, PAGING
        ),
        _rest_operation(GET, "Get a webhook", "Returns the webhook with this id, without its secret.", _get),
        _rest_operation(
            CREATE,
            "Create a webhook",
            "Creates a webhook. From now on, it receives a message about each event that it subscribes to, regardless of who "
            "caused it. Messages contain whole records, so grant this only to keys that may read all of them. Only this response "
            "contains the secret.",
            _create,
            SETTINGS + read_only,
            (*setting_refusals, *with_codes("TOO_MANY_WEBHOOKS")),
        ),
        _rest_operation(
            UPDATE,
            "Change a webhook",
            "Changes a webhook. Fields that are not sent keep their values. When it is switched on again, it receives what it "
            "missed.",
            _update,
            (*SETTINGS, SKIP, *read_only),
            setting_refusals,
        ),
        _rest_operation(
            DELETE, "Delete a webhook", "Deletes a webhook and the messages that are waiting to be sent to it.", _delete
        ),
        targeted_write(
            name="webhooks.rotate",
            summary="Rotate a webhook's secret",
            doc="Generates a new secret and returns it. The secret is returned only once. Until the old secret expires, messages "
            "are signed with both. If messages are still signed with an even older secret (`oldSecretUntil`), that stops at once.",
            run=_rotate,
            fields=(OVERLAP,),
        ),
        targeted_write(
            name="webhooks.disable",
            summary="Switch off a webhook with a reason",
            doc="Done by the service itself if an endpoint is gone or has failed for a week.",
            run=_disable,
            fields=(_BECAUSE,),
        ),
    )


def _rest_operation(
    verb: Verb,
    summary: str,
    doc: str,
    run: Callable[[Context], Outcome],
    fields: tuple[Field, ...] = (),
    refusals: tuple[tuple[str, str], ...] = (),
) -> Operation:
    missing = (("INVALID_ID", MISSING[verb.name]),) if verb.has_target else ()
    return Operation(
        name=f"webhooks.{verb.name}",
        summary=summary,
        doc=doc,
        run=run,
        fields=fields,
        judges_input=verb.writes,
        # One with a body makes the service send whole records to wherever the caller likes.
        access=Access(Basis.GRANTED, is_granted_alone=verb.writes and verb.body is not None),
        verb=verb,
        path=PATH,
        refusals=missing + refusals,
        response_fields=() if verb.response is Response.NULL else RECORD,
        secret_once=(SECRET,) if verb.creates else (),
        find_fate=_find_fate if verb.creates else None,
        varies=not verb.writes,  # it changes with the time: an old secret expires
    )


def serialize_webhook(webhook: Webhook, now: str) -> dict[str, Any]:
    """Serialise a webhook: everything but its secret."""
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
        "disabledBecause": reasons.REASONS.read(webhook.disabled_because or ""),
        "oldSecretUntil": webhook.old_until if webhook.old_until and webhook.old_until > now else None,
        "maker": webhook.maker,
        "createdAt": webhook.created_at,
        "updatedAt": webhook.updated_at,
    }


def webhook_version(webhook: Mapping[str, Any]) -> str:
    """Return the version of a webhook's record. It changes with the settings, not with the state of delivery."""
    return compute_version(encode_json([webhook[field.name] for field in SETTINGS]))


def find_webhook(context: Context, code: str) -> Webhook:
    """Return the webhook that a call is about; refuse an id that does not exist."""
    return require_found(endpoints.find(context.tx, context.call.target or 0), say("webhook"), context.call.target, code)


def _find_fate(context: Context, number: int) -> Fate:
    if endpoints.find(context.tx, number) is not None:
        return Fate(is_there=True)
    last = events.find_last_change(context.tx, "webhooks", number, events.find_newest_number(context.tx) + 1)
    return Fate(is_there=False, deleted_by=last and last.event)


# --- the operations -----------------------------------------------------------------------------------------------


def _list(context: Context) -> Outcome:
    page, per_page = parse_paging(context.input)
    total, listed = endpoints.list_page(context.tx, per_page, (page - 1) * per_page)
    return Outcome(serialize_page([serialize_webhook(webhook, context.now) for webhook in listed], total, page, per_page))


def _get(context: Context) -> Outcome:
    return Outcome(serialize_webhook(find_webhook(context, MISSING["get"]), context.now))


def _create(context: Context) -> Outcome:
    given = require(SETTINGS, context.input)
    raise_faults((*given.faults, *_find_faults(context, given, url="", patterns=())))
    _judge_alarms(context, find_alarm_patterns(given.get("events")))
    if endpoints.count(context.tx) >= MOST:
        raise Refused("TOO_MANY_WEBHOOKS", say("There are already {most} webhooks. Delete one that is not needed.", most=MOST))
    kept = generate_secret(context.environment.outgoing.key)
    settings = {field.name: given.get(field.name, field.default) for field in SETTINGS}
    webhook = Webhook(
        id=next_number(context.tx, "webhooks"),
        url=settings["url"],
        events=list(settings["events"]),
        description=settings["description"],
        enabled=settings["enabled"],
        secret=kept,
        old_secret=None,
        old_until=None,
        disabled_at=None if settings["enabled"] else context.now,
        disabled_because=None,
        created_at=context.at,
        updated_at=context.at,
        cursor=events.find_span(context.tx)[1],
        maker=context.call.actor.serialize(),
    )
    endpoints.insert(context.tx, webhook)
    after = serialize_webhook(webhook, context.now)
    once = {**after, "secret": format_secret(kept, context.environment.outgoing.key)}
    return Outcome(once, webhook.id, after=after, public=after)


def _update(context: Context) -> Outcome:
    old = find_webhook(context, MISSING["update"])
    before = serialize_webhook(old, context.now)
    check_precondition(context.call.expected, before)
    given = context.input.excuse(context.call.raw, before)
    raise_faults((*given.faults, *_find_faults(context, given, old.url, old.events)))
    new = replace(
        old,
        url=given.get("url", old.url),
        events=list(given.get("events", old.events)),
        description=given.get("description", old.description),
        enabled=given.get("enabled", old.enabled),
    )
    wanted = find_alarm_patterns(new.events)
    is_switched_on = new.enabled and not old.enabled
    goes_elsewhere = is_switched_on or new.url != old.url
    _judge_alarms(context, [one for one in wanted if goes_elsewhere or not is_subscribed(old.events, one)])
    if new.enabled != old.enabled:
        new.disabled_at, new.disabled_because = (None if new.enabled else context.now), None
    if is_switched_on or is_webhook_widened(asdict(old), asdict(new)):
        new.maker = context.call.actor.serialize()
    skip = bool(given.get(SKIP.name))
    if skip or new.events != list(old.events):
        _empty_outbox(context, old, skip=skip)
        attempt = Attempt(context.now, new.url, 0, None, say(reasons.NO_SUBSCRIBER), None)
        outbox.give_up_unwanted(context.tx, old.id, lambda kind: is_subscribed(new.events, kind), attempt)
    if skip or (new.url, new.enabled) != (old.url, old.enabled):
        new.failing_since = None
        endpoints.reset_failures(context.tx, old.id)
        outbox.restart(context.tx, old.id, context.now)  # messages that failed before get another chance
    return _save(context, old, new, also=(SKIP.name,) if skip else ())


def _empty_outbox(context: Context, webhook: Webhook, *, skip: bool) -> None:
    """Withdraw messages that have not been tried, either to skip them or to select events again."""
    first = outbox.withdraw_untried(context.tx, webhook.id)
    if skip:
        endpoints.move_cursors(context.tx, [webhook.id], events.find_span(context.tx)[1])
    elif first is not None:
        endpoints.move_cursors(context.tx, [webhook.id], first - 1)


def _delete(context: Context) -> Outcome:
    old = find_webhook(context, MISSING["delete"])
    before = serialize_webhook(old, context.now)
    check_precondition(context.call.expected, before)
    context.input.raise_faults()
    endpoints.delete(context.tx, old.id)
    plan = {
        "dryRun": True,
        "deleted": {"count": 1, "ids": [old.id]},
        "moved": {"count": 0, "ids": [], "to": None},
        "changed": {"count": 0, "nodes": []},
    }
    return Outcome(None, old.id, before=before, plan=plan)


def _rotate(context: Context) -> Outcome:
    old = find_webhook(context, MISSING["rotate"])
    hours = context.input.get(OVERLAP.name, OVERLAP.default)
    kept = generate_secret(context.environment.outgoing.key)
    until = shift_timestamp(context.now, timedelta(hours=hours)) if hours else None
    new = replace(old, secret=kept, old_secret=old.secret if hours else None, old_until=until)
    outcome = _save(context, old, new, also=("secret",))
    once = {**outcome.result, "secret": format_secret(kept, context.environment.outgoing.key)}
    return outcome._replace(result=once, public=outcome.result)


def _disable(context: Context) -> Outcome:
    old = find_webhook(context, MISSING["disable"])
    is_outdated = context.call.actor == DELIVERY and not old.failures  # failures were cleared while this waited, as by a new URL
    if not old.enabled or is_outdated:
        return Outcome(serialize_webhook(old, context.now), happened=False)
    return _save(context, old, replace(old, enabled=False, disabled_at=context.now, disabled_because=context.input.get("because")))


def _save(context: Context, old: Webhook, new: Webhook, also: tuple[str, ...] = ()) -> Outcome:
    return save_change(context, old, new, lambda webhook: serialize_webhook(webhook, context.now), endpoints.update, also)


def _judge_alarms(context: Context, wanted: Collection[str]) -> None:
    """Refuse to let anybody but owners and the terminal send alarms to a new address, or send them again. Raises Refused."""
    actor = context.call.actor
    if wanted and not (actor.type == "terminal" or (actor.type == "admin" and actor.permit is None)):
        raise Refused(
            "ALARMS_ARE_FOR_OWNERS",
            say(
                "Only an owner, or somebody at the terminal, can have {names} sent to an address: alarms show who may do what "
                "here, and who signs in. Nothing was changed.",
                names=", ".join(sorted(wanted)),
            ),
        )


def _find_faults(context: Context, given: Input, url: str, patterns: Collection[str]) -> Iterable[Fault]:
    """Validate what the field types cannot: where a new URL leads, and whether new events exist.

    `url` and `patterns` are those that the webhook has. Settings and releases may have changed since they were accepted, but
    nothing is sent to an address that is not allowed, whatever a webhook says.
    """
    if (new := given.get("url", url)) != url:
        try:
            policy = context.environment.outgoing
            check_url(new, policy.allowed, policy.hosts, https_only=policy.https_only)
        except NotAllowed as reason:
            yield Fault("url", "ADDRESS_NOT_ALLOWED", say("url {reason}", reason=reason.args[0]))
    if (wanted := given.get("events")) is not None:
        known = event_patterns(context.environment.event_types)
        if not wanted:
            yield Fault("events", "INVALID_VALUE", say("events is empty: name at least one event, or * for all."))
        suggestions = Suggestions(known)
        for pattern in wanted:
            if pattern not in known and pattern not in patterns:
                near = suggestions.find(pattern)
                hint = (
                    say("Did you mean {near}?", near=near)
                    if near
                    else say("Examples of events are {names}.", names=", ".join(known[:4]))
                )
                yield Fault(
                    "events", "UNKNOWN_EVENT", say("events: there is no event '{pattern}'. {hint}", pattern=pattern, hint=hint)
                )
