"""API keys: the operations that make, change, rotate and revoke them, and the judgement of one that is presented."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from ipaddress import IPv6Network, ip_network
from typing import Any, Final

from trellis.core.events import differing
from trellis.core.operation import Act, Operation, Outcome
from trellis.core.page import PAGING, PER_PAGE, page_of
from trellis.core.secret import Secret, new_secret
from trellis.core.values import (
    Boolean,
    Field,
    Given,
    Integer,
    Invalid,
    Moment,
    Text,
    Words,
    elements,
    invalid_id,
    moment,
    required,
    shown,
)
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import keys
from trellis.store.keys import Key
from trellis.store.nodes import next_number

_NAME_OF_SEQUENCE: Final = "keys"
_MOST_OVERLAP: Final = 7


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a key ends: a moment, a span from now such as 90d or 12h, or null for never."""

    widget: str = "text"

    def parse(self, raw: Any) -> str | timedelta | None:
        if raw in (None, "", "never"):
            return None
        text = raw.strip() if isinstance(raw, str) else ""
        if text[-1:] in _SPANS and text[:-1].isdecimal() and len(text) <= 6 and 0 < int(text[:-1]) <= 36_500:
            return timedelta(**{_SPANS[text[-1]]: int(text[:-1])})
        try:
            return Moment().parse(raw)
        except Invalid:
            raise Invalid(
                f"must be a span such as 90d or 12h, a moment in ISO 8601, or null for never, not {shown(raw)}."
            ) from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["90d", "2026-12-31T00:00:00Z"]}


_SPANS: Final[Mapping[str, str]] = {"d": "days", "h": "hours"}


@dataclass(frozen=True, slots=True)
class Networks:
    """A list of addresses and CIDR networks; an empty list is every address."""

    widget: str = "text"

    def parse(self, raw: Any) -> list[str]:
        parts = elements(raw if raw is not None else [])
        if parts is None or len(parts) > 100:
            raise Invalid(f"must be at most 100 addresses or networks such as 192.0.2.0/24, not {shown(raw)}.")
        return sorted({self._network(part) for part in parts})

    @staticmethod
    def _network(part: Any) -> str:
        try:
            network = ip_network(str(part).strip(), strict=False)
        except ValueError:
            raise Invalid(f"must be addresses or networks such as 192.0.2.0/24, not {shown(part)}.") from None
        if isinstance(network, IPv6Network) and network.prefixlen >= 96 and (mapped := network.network_address.ipv4_mapped):
            return f"{mapped}/{network.prefixlen - 96}"  # callers are compared by their IPv4 address
        return str(network)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}, "maxItems": 100}


_GRANTS: Final = Words()
_SETTINGS: Final = (
    Field("name", Text(100, 1), "What the key is for; shown in lists and logs.", example="Calendar sync"),
    Field(
        "grants",
        _GRANTS,
        "The operations that it may run; `forums.*`, `*.list` and `*` stand for all that match now.",
        default=(),
    ),
    Field("expires", Expiry(), "When it ends: 90d, 12h, a moment, or null for never."),
    Field(
        "addresses",
        Networks(),
        "From where it may be used: addresses or CIDR networks; none is everywhere.",
        default=(),
    ),
    Field(
        "rateLimit",
        Integer(0, 10_000_000, nullable=True),
        "Requests per minute; null is the service's limit, 0 is none.",
    ),
    Field("logRequests", Boolean(), "Whether its requests are written to the request log.", default=True),
)
_CHANGES: Final = (
    Field("grant", _GRANTS, "Operations to add to the granted ones.", write_only=True),
    Field("ungrant", _GRANTS, "Operations to take from the granted ones.", write_only=True),
)
_OVERLAP: Final = Field(
    "overlapDays", Integer(0, _MOST_OVERLAP), "For how many days the old secret lives on beside the new one.", default=0
)
_REASON: Final = Field("reason", Text(500), "Why it is revoked; shown in the list.")


def operations() -> tuple[Operation, ...]:
    """Give the operations on keys. All are for the panel and the terminal."""
    return (
        Operation("keys.list", "List keys", "All keys, revoked ones too; never a secret.", _list, PAGING),
        Operation("keys.get", "Get a key", "One key by its id; never its secret.", _get, has_target=True),
        Operation("keys.create", "Make a key", "Makes a key and shows it, once.", _create, _SETTINGS, writes=True),
        Operation(
            "keys.update",
            "Change a key",
            "Changes a key's name, grants or limits.",
            _update,
            _SETTINGS + _CHANGES,
            writes=True,
            has_target=True,
        ),
        Operation(
            "keys.rotate",
            "Rotate a key",
            "Makes a new secret and shows it, once.",
            _rotate,
            (_OVERLAP,),
            writes=True,
            has_target=True,
        ),
        Operation(
            "keys.revoke",
            "Revoke a key",
            "Ends a key for good. It stays in the list and the log.",
            _revoke,
            (_REASON,),
            writes=True,
            has_target=True,
        ),
    )


def written(key: Key, now: str) -> dict[str, Any]:
    """Write a key for a reader: everything but its secret."""
    return {
        "id": key.id,
        "name": key.name,
        "public": f"trl_{key.public}",
        "state": state_of(key, now),
        "grants": key.grants,
        "expiresAt": key.expires_at,
        "addresses": key.addresses,
        "rateLimit": key.rate_limit,
        "logRequests": key.log_requests,
        "oldSecretUntil": key.old_until if key.old_until and key.old_until > now else None,
        "revokedAt": key.revoked_at,
        "revokedBecause": key.revoked_because,
        "lastUsedAt": key.last_used_at,
        "createdAt": key.created_at,
        "updatedAt": key.updated_at,
    }


def state_of(key: Key, now: str) -> str:
    """Say whether a key is active, expired or revoked."""
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= now else "active"


# --- the operations -----------------------------------------------------------------------------------------------


def _list(act: Act) -> Outcome:
    act.given.demand()
    page, per_page = act.given.get("page", 1), act.given.get("perPage", PER_PAGE)
    total, found = keys.page(act.tx, per_page, (page - 1) * per_page)
    return Outcome(page_of([written(key, act.now) for key in found], total, page, per_page))


def _get(act: Act) -> Outcome:
    act.given.demand()
    return Outcome(written(_found(act), act.now))


def _found(act: Act) -> Key:
    key = keys.find(act.tx, act.call.target or 0)
    if key is None:
        raise invalid_id("key", act.call.target, "1T105/2")
    return key


def _living(act: Act) -> Key:
    key = _found(act)
    if key.revoked_at:
        raise Refused("KEY_REVOKED", f"The key '{key.name}' was revoked at {key.revoked_at}. Make a new one.")
    return key


_BLANK: Final = Key(
    id=0,
    public="",
    name="",
    digest="",
    old_digest=None,
    old_until=None,
    grants=[],
    expires_at=None,
    addresses=[],
    rate_limit=None,
    log_requests=True,
    created_at="",
    updated_at="",
    revoked_at=None,
    revoked_because=None,
    last_used_at=None,
)


def _create(act: Act) -> Outcome:
    given = required((replace(_SETTINGS[0], required=True),), act.given)
    settings, faults = _settled(act, given, _BLANK)
    if given.faults or faults:
        raise refuse_faults(given.faults + faults)
    secret = new_secret()
    number = next_number(act.tx, _NAME_OF_SEQUENCE)
    key = replace(settings, id=number, public=secret.public, digest=secret.digest, created_at=act.now, updated_at=act.now)
    keys.insert(act.tx, key)
    after = written(key, act.now)
    return Outcome(_shown_once(after, secret), key.id, after=after, plan=after)


def _update(act: Act) -> Outcome:
    old = _living(act)
    new, faults = _settled(act, act.given, old)
    if act.given.faults or faults:
        raise refuse_faults(act.given.faults + faults)
    return _changed(act, old, new)


def _rotate(act: Act) -> Outcome:
    old = _living(act)
    act.given.demand()
    days = act.given.get("overlapDays", 0)
    secret = new_secret(old.public)
    until = moment(datetime.fromisoformat(act.now) + timedelta(days=days)) if days else None
    new = replace(old, digest=secret.digest, old_digest=old.digest if days else None, old_until=until)
    outcome = _changed(act, old, new, also=("secret",))
    return outcome._replace(result=_shown_once(outcome.result, secret), plan=outcome.result)


def _revoke(act: Act) -> Outcome:
    old = _living(act)
    act.given.demand()
    new = replace(old, revoked_at=act.now, revoked_because=act.given.get("reason") or None, old_digest=None, old_until=None)
    return _changed(act, old, new)


def _changed(act: Act, old: Key, new: Key, also: tuple[str, ...] = ()) -> Outcome:
    before, after = written(old, act.now), written(new, act.now)
    changed = differing(before, after) + also
    if not changed:
        return Outcome(before, happened=False)
    new = replace(new, updated_at=act.now)
    keys.update(act.tx, new)
    after["updatedAt"] = act.now
    return Outcome(after, old.id, before, after, changed)


def _shown_once(after: Mapping[str, Any], secret: Secret) -> dict[str, Any]:
    return {"id": after["id"], "key": str(secret), **after}


def _settled(act: Act, given: Given, key: Key) -> tuple[Key, tuple[Fault, ...]]:
    """Put what was given over a key."""
    grantable = act.world.grantable
    faults: list[Fault] = []
    grants = set(_matching(given, "grants", grantable, faults) if "grants" in given else key.grants)
    grants |= set(_matching(given, "grant", grantable, faults))
    grants -= set(_matching(given, "ungrant", grantable | frozenset(key.grants), faults))
    expires = given.get("expires", key.expires_at)
    if isinstance(expires, timedelta):
        expires = moment(datetime.fromisoformat(act.now) + expires)
    if "expires" in given and expires is not None and expires <= act.now:
        faults.append(Fault("expires", "INVALID_VALUE", f"expires lies in the past: {expires}. To end a key now, revoke it."))
    settled = replace(
        key,
        name=given.get("name", key.name),
        grants=sorted(grants),
        expires_at=expires,
        addresses=given.get("addresses", key.addresses),
        rate_limit=given.get("rateLimit", key.rate_limit),
        log_requests=given.get("logRequests", key.log_requests),
    )
    return settled, tuple(faults)


def _matching(given: Given, field: str, operations: Iterable[str], faults: list[Fault]) -> list[str]:
    """Give the operations that the patterns sent under a field stand for; add a fault for each that stands for none."""
    operations = sorted(operations)
    found: list[str] = []
    for pattern in given.get(field, ()):
        matches = [name for name in operations if fnmatchcase(name, pattern)]
        if not matches:
            near = get_close_matches(pattern, operations, 1)
            hint = f" Did you mean {near[0]}?" if near else " `trellis routes` lists them."
            faults.append(
                Fault(
                    field,
                    "UNKNOWN_OPERATION",
                    f"{field}: no operation that a key can be granted matches '{pattern}'.{hint}",
                )
            )
        found.extend(matches)
    return found
