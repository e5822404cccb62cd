"""API keys: the operations that create, list, change, rotate and revoke them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final

from trellis.core.dialect import TRELLIS
from trellis.core.events import save_change
from trellis.core.fields import Input, Suggestions, isolate, require, require_found, shift_timestamp
from trellis.core.keys.bounds import are_bounds_widened, settle_bounds
from trellis.core.keys.expiry import settle_expiry
from trellis.core.keys.fields import (
    CHANGES,
    FILTERS,
    FOR_TRYING,
    IDS,
    KEEP_WEBHOOKS,
    OVERLAP,
    REASON,
    RECORDED,
    SETTINGS,
    are_within,
)
from trellis.core.keys.presets import PRESET, apply_preset
from trellis.core.keys.secret import Secret, new_secret, redact_keys
from trellis.core.keys.state import key_state
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.core.paging import parse_paging, serialize_page
from trellis.core.version import compute_version, encode_json
from trellis.errors import Fault, Refused, raise_faults
from trellis.sentences import say
from trellis.store import keys
from trellis.store.counters import next_number
from trellis.store.keys import Key

MISSING: Final = "1T105/2"  # the code for a key that does not exist
_TRIED_FOR: Final = timedelta(hours=1)


def operations() -> tuple[Operation, ...]:
    """Return the operations on keys, all for the panel and the terminal."""
    return (
        Operation(
            "keys.list", "List keys", "Returns all keys, including revoked ones, without their secrets.", _list, (*FILTERS, IDS)
        ),
        Operation("keys.get", "Get a key", "Returns the key with this id, without its secret.", _get, has_target=True),
        Operation(
            "keys.create",
            "Create a key",
            "Creates a key and returns it in full. The full key is returned only once.",
            _create,
            (*SETTINGS, PRESET),
            writes=True,
            judges_input=True,
        ),
        targeted_write(
            "keys.update",
            "Change a key",
            "Changes a key's name, owner, note, grants, limits or dialect.",
            _update,
            SETTINGS + CHANGES,
            judges_input=True,
            undone_from_event=True,
        ),
        targeted_write(
            "keys.rotate",
            "Rotate a key",
            "Generates a new secret and returns it. The secret is returned only once. If a secret from before the last rotation is "
            "still valid (`oldSecretUntil`), it stops working at once: a key has at most two secrets.",
            _rotate,
            (OVERLAP,),
        ),
        targeted_write(
            "keys.revoke",
            "Revoke a key",
            "Revokes a key permanently and switches off its webhooks. The key stays in the list and the log.",
            _revoke,
            (REASON, KEEP_WEBHOOKS),
        ),
    )


def serialize_key(key: Key, now: str) -> dict[str, Any]:
    """Serialise a key: everything but its secret."""
    return {
        "id": key.id,
        "name": key.name,
        "owner": key.owner,
        "note": key.note,
        "public": f"trl_{key.public}",
        "state": key_state(key, now),
        "grants": key.grants,
        "bounds": key.bounds,
        "expiresAt": key.expires_at,
        "addresses": key.addresses,
        "rateLimit": key.rate_limit,
        "perDay": key.per_day,
        "logRequests": key.log_requests,
        "dialect": key.dialect,
        "preset": key.preset,
        "oldSecretUntil": key.old_until if key.old_until and key.old_until > now else None,
        "pausedAt": key.paused_at,
        "pausedBecause": key.paused_because,
        "revokedAt": key.revoked_at,
        "revokedBecause": key.revoked_because,
        "lastUsedAt": key.last_used_at,
        "createdAt": key.created_at,
        "updatedAt": key.updated_at,
    }


def key_version(key: Mapping[str, Any]) -> str:
    """Return the version of a serialised key. It changes with the key's settings, not when the key is used."""
    return compute_version(encode_json([key[member] for member in RECORDED.values()]))


def check_key_version(context: Context, key: Key) -> None:
    """Refuse a write that was meant for another version of a key. Without expected versions any version will do."""
    if context.call.expected and key_version(serialize_key(key, context.now)) not in context.call.expected:
        raise Refused(
            "PRECONDITION_FAILED", say("Somebody has changed this key since you read it. Read it again before you change it.")
        )


def is_for_trying(key: Mapping[str, Any]) -> bool:
    """Return whether a key was made to try operations in the reference: its note is FOR_TRYING, and it expires within an hour."""
    if key["note"] != FOR_TRYING or key["expiresAt"] is None:
        return False
    return datetime.fromisoformat(key["expiresAt"]) - datetime.fromisoformat(key["createdAt"]) <= _TRIED_FOR


def is_key_widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a change lets a key do more, more often, for longer, from more addresses, without being logged, or again."""
    more = not set(after["grants"]) <= set(before["grants"])
    longer = before["expiresAt"] is not None and (after["expiresAt"] is None or after["expiresAt"] > before["expiresAt"])
    elsewhere = bool(before["addresses"]) and not are_within(after["addresses"], before["addresses"])
    unlogged = before["logRequests"] and not after["logRequests"]
    oftener = _is_raised(before["perDay"], after["perDay"]) or _is_rate_raised(before["rateLimit"], after["rateLimit"])
    resumed = before["pausedAt"] is not None and after["pausedAt"] is None
    return more or longer or elsewhere or unlogged or oftener or resumed or are_bounds_widened(before, after)


def _is_raised(before: int | None, after: int | None) -> bool:
    return before is not None and (after is None or after > before)


def _is_rate_raised(before: int | None, after: int | None) -> bool:
    """Return whether a limit of requests per minute was raised: 0 means no limit.

    What the service's default limit (None) is can change, so it counts as more than any other limit.
    """
    return before != 0 and (after == 0 or _is_raised(before, after))


# --- the operations -----------------------------------------------------------------------------------------------


def _list(context: Context) -> Outcome:
    page, per_page = parse_paging(context.input)
    filters = {name: context.input.get(name) for name in ("search", "state", "preset", "operation") if context.input.get(name)}
    filters |= {"ids": context.input.get("ids")} if "ids" in context.input else {}
    newest = context.input.get("order") == "newest"
    total, listed = keys.read_page(context.tx, per_page, (page - 1) * per_page, filters, now=context.now, newest_first=newest)
    return Outcome(serialize_page([serialize_key(key, context.now) for key in listed], total, page, per_page))


def _get(context: Context) -> Outcome:
    return Outcome(serialize_key(find_key(context), context.now))


def find_key(context: Context, number: int | None = None) -> Key:
    """Return the key that a call targets, or the one with this number. Raises Refused (INVALID_ID)."""
    number = context.call.target if number is None else number
    return require_found(keys.find(context.tx, number or 0), say("key"), number, MISSING)


def find_unrevoked(context: Context, number: int | None = None) -> Key:
    """Return the key that a call targets, or the one with this number. Raises Refused (INVALID_ID, KEY_REVOKED)."""
    key = find_key(context, number)
    if key.revoked_at:
        raise Refused(
            "KEY_REVOKED",
            say(
                "The key '{name}' was revoked at {revoked_at}. Create a new one.", name=isolate(key.name), revoked_at=key.revoked_at
            ),
        )
    return key


def _create(context: Context) -> Outcome:
    given = apply_preset(require((replace(SETTINGS[0], required=True),), context.input), context.environment.operations.values())
    secret = new_secret()
    blank = Key(0, secret.public, name="", digest=secret.digest, dialect=TRELLIS, created_at=context.at, updated_at=context.at)
    settings, faults = _apply_settings(context, given, blank)
    raise_faults(given.faults + faults)
    key = replace(settings, id=next_number(context.tx, "keys"), preset=given.get(PRESET.name))
    keys.insert(context.tx, key)
    after = serialize_key(key, context.now)
    return Outcome(_with_secret(after, secret), key.id, after=after, public=after)


def _update(context: Context) -> Outcome:
    old = find_unrevoked(context)
    check_key_version(context, old)
    given = context.input.excuse(context.call.raw, serialize_key(old, context.now))
    new, faults = _apply_settings(context, given, old)
    raise_faults(given.faults + faults)
    return save_key(context, old, new)


def _rotate(context: Context) -> Outcome:
    old = find_unrevoked(context)
    days = context.input.get(OVERLAP.name, OVERLAP.default)
    secret = new_secret(old.public)
    until = shift_timestamp(context.now, timedelta(days=days)) if days else None
    new = replace(old, digest=secret.digest, old_digest=old.digest if days else None, old_until=until)
    outcome = save_key(context, old, new, also=("secret",))
    return outcome._replace(result=_with_secret(outcome.result, secret), public=outcome.result)


def _revoke(context: Context) -> Outcome:
    old = find_unrevoked(context)
    why = redact_keys(context.input.get("reason", ""))
    new = replace(old, revoked_at=context.now, revoked_because=why or None, old_digest=None, old_until=None)
    outcome = save_key(context, old, new)
    if context.input.get(KEEP_WEBHOOKS.name):
        return outcome
    from trellis.store.webhooks import endpoints, reasons  # noqa: PLC0415  # start-up time: most commands revoke no key

    because = say(reasons.KEY_REVOKED, name=isolate(old.name))
    off = endpoints.switch_off_made_by(context.tx, "key", old.id, context.at, because)
    return outcome._replace(touched=tuple({"resource": "webhooks", "id": webhook, "how": "switched off"} for webhook in off))


def save_key(context: Context, old: Key, new: Key, also: tuple[str, ...] = ()) -> Outcome:
    """Write a key if something has changed; `also` names changes that the serialised key does not show, such as a new secret."""
    return save_change(context, old, new, lambda key: serialize_key(key, context.now), keys.update, also)


def _with_secret(after: Mapping[str, Any], secret: Secret) -> dict[str, Any]:
    return {"id": after["id"], "key": str(secret), **after}


def _apply_settings(context: Context, given: Input, key: Key) -> tuple[Key, tuple[Fault, ...]]:
    """Apply the settings in a request to a key; return the key and the faults found."""
    grantable, alone = context.environment.grantable, context.environment.granted_alone
    faults: list[Fault] = []
    kept = grantable.union(name for name in given.get("grants", ()) if name in key.grants)  # with those that have gone since
    grants = set(_match_operations(given, "grants", kept, faults, alone) if "grants" in given else key.grants)
    grants |= set(_match_operations(given, "grant", grantable, faults, alone))
    grants -= set(_match_operations(given, "ungrant", grantable | frozenset(key.grants), faults))
    expires = settle_expiry(given.get("expires", key.expires_at), context.now)
    if expires is not None and expires <= context.now and expires != key.expires_at:  # an expired key may stay expired
        faults.append(
            Fault(
                "expires", "INVALID_VALUE", say("expires is in the past: {expires}. To end a key now, revoke it.", expires=expires)
            )
        )
    bounds, unfit = settle_bounds(given, key.bounds, grants, context)
    faults += unfit
    settled = replace(
        key,
        name=given.get("name", key.name),
        owner=given.get("owner", key.owner),
        note=given.get("note", key.note),
        grants=sorted(grants),
        bounds=bounds,
        expires_at=expires,
        addresses=given.get("addresses", key.addresses),
        rate_limit=given.get("rateLimit", key.rate_limit),
        per_day=given.get("perDay", key.per_day),
        log_requests=given.get("logRequests", key.log_requests),
        dialect=given.get("dialect", key.dialect),
    )
    return settled, tuple(faults)


def _match_operations(
    given: Input, field: str, operations: Iterable[str], faults: list[Fault], alone: frozenset[str] = frozenset()
) -> list[str]:
    """Return the operations that match the patterns in a field; add a fault for each pattern that matches none.

    A pattern for several resources, such as `*.create`, leaves out the operations in `alone`; `*` includes them.
    """
    operations = sorted(operations)
    found: list[str] = []
    suggestions = Suggestions(operations)
    for pattern in given.get(field, ()):
        left_out = alone if pattern != "*" and set("*?[") & set(pattern.partition(".")[0]) else frozenset[str]()
        matches = [name for name in operations if name not in left_out and fnmatchcase(name, pattern)]
        if not matches:
            hint = suggestions.suggest(pattern) or say(" `trellis routes` lists them.")
            faults.append(
                Fault(
                    field,
                    "UNKNOWN_OPERATION",
                    say("{field}: no grantable operation matches '{pattern}'.{hint}", field=field, pattern=pattern, hint=hint),
                )
            )
        found.extend(matches)
    return found
