"""The bounds of a key's grants: reading them as they are entered, checking, comparing and describing them."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from trellis.core.bounds import ALLOW, LEVELS, Bound, describe_per_day
from trellis.core.bounds import read_bounds as read
from trellis.core.fields import (
    MAX_ID,
    Boolean,
    Choice,
    Field,
    Input,
    Integer,
    Invalid,
    Type,
    parse_json_text,
    parse_whole_number,
    quote,
    split_list,
)
from trellis.core.keys.expiry import Expiry, settle_expiry
from trellis.core.operation import Context, Operation
from trellis.errors import Fault
from trellis.sentences import join, say

MOST_RECORDS: Final = 100  # that one bound may name
_MOST: Final = 500  # bounds of one key


@dataclass(frozen=True, slots=True)
class RecordReferences(Type):
    """Records by resource and id, such as `forums:12`. The id alone is enough if the operation is about only one resource."""

    def parse(self, raw: Any) -> tuple[str, ...] | None:
        if raw is None:
            return None
        parts = split_list(raw)
        if not parts or len(parts) > MOST_RECORDS:
            raise Invalid(
                say("must be 1 to {most_records} records such as forums:12, not {raw}.", most_records=MOST_RECORDS, raw=quote(raw))
            )
        return tuple(dict.fromkeys(self._parse_one(part) for part in parts))

    @staticmethod
    def _parse_one(part: Any) -> str:
        resource, _, number = part.strip().rpartition(":") if isinstance(part, str) else ("", "", part)
        found = parse_whole_number(number)
        if found is None or not 1 <= found <= MAX_ID or not (resource == "" or resource.isidentifier()):
            raise Invalid(say("must be records such as forums:12, not {part}.", part=quote(part)))
        return f"{resource}:{found}"

    def schema(self) -> dict[str, Any]:
        one = {"anyOf": [{"type": "string", "pattern": "^[a-z]+:[1-9][0-9]*$"}, {"type": "integer", "minimum": 1}]}
        return {"type": ["array", "null"], "items": one, "minItems": 1, "maxItems": MOST_RECORDS}


MEMBERS: Final = (
    Field("level", Choice(LEVELS), "`allow`, or `propose`: somebody else has to approve.", default=ALLOW),
    Field(
        "under",
        RecordReferences(),
        "The records that the grant is for, such as forums:12; in a tree, with everything below them. null means all.",
        example=["forums:12"],
    ),
    Field("until", Expiry(), "When the grant ends: 7d, 12h, a timestamp, or null for never.", example="7d"),
    Field(
        "perDay",
        Integer(0, 1_000_000_000, nullable=True),
        "How many times a day (UTC) the grant may be used; null means no limit.",
        example=100,
    ),
    Field("dryRunOnly", Boolean(), "Whether the operation may only be tried: it is always rolled back.", default=False),
    Field(
        "ownOnly",
        Boolean(),
        "Whether the operation shows or undoes only what the key itself did: for `events.list`, and for the grants to restore.",
        default=False,
    ),
)
_BY_NAME: Final = {member.name: member for member in MEMBERS}


@dataclass(frozen=True, slots=True)
class BoundsByOperation:
    """Bounds by operation: an object that maps names or patterns to objects with MEMBERS, or to null for no bound."""

    widget: str = "bounds"

    def parse(self, raw: Any) -> dict[str, dict[str, Any] | None]:
        raw = parse_json_text(raw)
        if raw in (None, ""):
            return {}
        if not isinstance(raw, Mapping) or len(raw) > _MOST:
            raise Invalid(
                say('must be an object such as {{"forums.update": {{"under": ["forums:12"]}}}}, not {raw}.', raw=quote(raw))
            )
        return {str(name): self._parse_one(str(name), bound) for name, bound in raw.items()}

    @staticmethod
    def _parse_one(name: str, raw: Any) -> dict[str, Any] | None:
        where = quote(name).strip("'")
        raw = parse_json_text(raw)
        if raw is None or raw == "":
            return None
        if not isinstance(raw, Mapping):
            raise _invalid(where, say("must be an object of {names}, not {raw}.", names=", ".join(_BY_NAME), raw=quote(raw)))
        found: dict[str, Any] = {}
        for member, value in raw.items():
            if member not in _BY_NAME:
                raise _invalid(
                    f"{where}.{quote(member).strip(chr(39))}",
                    say("is not a bound; the bounds are {names}.", names=", ".join(_BY_NAME)),
                )
            try:
                found[member] = _BY_NAME[member].type.parse(value)
            except Invalid as invalid:
                raise _invalid(f"{where}.{member}", invalid.detail) from None
        return found

    def schema(self) -> dict[str, Any]:
        properties = {member.name: member.schema() for member in MEMBERS}
        bound = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
        return {"type": "object", "additionalProperties": bound, "maxProperties": _MOST}


def _invalid(where: str, detail: str) -> Invalid:
    path = f"bounds.{where}"
    return Invalid(detail, parts=((path, join((path, detail))),))


# --- checking what was entered ------------------------------------------------------------------------------------


def settle_bounds(
    given: Input, old: Mapping[str, Any], grants: AbstractSet[str], context: Context
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the bounds of a key that will have these grants, as they are stored, and the faults found.

    The field `bounds` replaces all existing bounds, `bound` only those that it names. A bound is removed with its grant.
    """
    faults: list[Fault] = []
    operations = context.environment.operations
    settled = {} if "bounds" in given else {name: bound for name, bound in old.items() if name in grants}
    for field in ("bounds", "bound"):
        for pattern, members in given.get(field, {}).items():
            names = [name for name in sorted(grants) if fnmatchcase(name, pattern)]
            if not names:
                detail = say(
                    "{field}: the key has no grant of {pattern} to limit. Grant it as well.",
                    field=field,
                    pattern=quote(pattern),
                )
                faults.append(Fault(field, "UNKNOWN_OPERATION", detail))
            for name in names:
                before = old.get(name, {})
                operation = operations.get(name)
                if operation is None and before and members is not None:
                    settled[name] = before  # the operation has gone since, and may come back
                    continue
                ended = before.get("until")  # may stay, so that a key with a grant that has ended can be changed
                bound = None if members is None or operation is None else _settle(operation, members, context, field, ended, faults)
                if bound is None or bound == Bound():
                    settled.pop(name, None)
                else:
                    settled[name] = bound.serialize()
    return dict(sorted(settled.items())), faults


def _settle(
    operation: Operation, members: Mapping[str, Any], context: Context, field: str, ended: str | None, faults: list[Fault]
) -> Bound:
    """Return the bound of one operation; add a fault for each member that it cannot have."""
    where = f"{field}.{operation.name}"
    until = settle_expiry(members.get("until"), context.now)
    if until is not None and until <= context.now and until != ended:
        detail = say("{where}.until is in the past: {until}. To end a grant now, take it away.", where=where, until=until)
        faults.append(Fault(f"{where}.until", "INVALID_VALUE", detail))
    level = members.get("level", ALLOW)
    keeps = operation.writes and not operation.is_plan
    if level != ALLOW and not keeps:
        detail = say(
            "{where}.level: {name} changes nothing, so there is nothing to approve. Grant it, or leave it out.",
            where=where,
            name=operation.name,
        )
        faults.append(Fault(f"{where}.level", "INVALID_VALUE", detail))
    under = _settle_under(operation, members.get("under"), context, where, faults)
    dry_run_only = bool(members.get("dryRunOnly")) and keeps
    own_only = bool(members.get("ownOnly"))
    if own_only and not operation.access.is_about_events:
        detail = say(
            "{where}.ownOnly: {name} neither shows events nor undoes them. Leave ownOnly out.", where=where, name=operation.name
        )
        faults.append(Fault(f"{where}.ownOnly", "INVALID_VALUE", detail))
    return Bound(level, under, until, members.get("perDay"), dry_run_only, own_only)


def _settle_under(
    operation: Operation, under: Iterable[str] | None, context: Context, where: str, faults: list[Fault]
) -> tuple[str, ...] | None:
    if under is None:
        return None
    if not operation.can_be_limited:
        detail = say(
            "{where}.under: {name} is not about nodes, so it cannot be limited to some of them. Leave under out.",
            where=where,
            name=operation.name,
        )
        faults.append(Fault(f"{where}.under", "INVALID_VALUE", detail))
        return None
    known = tuple(kind.name for kind in context.environment.kinds) if operation.kind is None else (operation.kind.name,)
    found: list[str] = []
    for reference in under:
        resource, _, number = reference.partition(":")
        resource = resource or (known[0] if len(known) == 1 else "")
        if resource not in known:
            detail = say(
                "{where}.under: {name} is about {known}, so it cannot be limited to '{reference}'. Name records such as "
                "{known_known}:12.",
                where=where,
                name=operation.name,
                known=" and ".join(known),
                reference=reference.removeprefix(":"),
                known_known=known[0],
            )
            faults.append(Fault(f"{where}.under", "INVALID_VALUE", detail))
            return None
        found.append(f"{resource}:{number}")
    return tuple(sorted(dict.fromkeys(found), key=lambda one: (one.partition(":")[0], int(one.partition(":")[2]))))


# --- comparing and describing -------------------------------------------------------------------------------------


def are_bounds_widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a grant that a key keeps allows more than before, such as other records, a longer time or more uses."""
    old, new = read(before["bounds"]), read(after["bounds"])
    kept = set(before["grants"]) & set(after["grants"])
    return any(_is_widened(old[name], new.get(name, Bound())) for name in old if name in kept)


def _is_widened(old: Bound, new: Bound) -> bool:
    return (
        (old.is_proposed and not new.is_proposed)
        or (old.dry_run_only and not new.dry_run_only)
        or (old.own_only and not new.own_only)
        or (old.under is not None and (new.under is None or not set(new.under) <= set(old.under)))
        or (old.until is not None and (new.until is None or new.until > old.until))
        or (old.per_day is not None and (new.per_day is None or new.per_day > old.per_day))
    )


def _tell_utc(moment: str) -> str:
    return f"{moment[:16].replace('T', ' ')} UTC"


def describe_bound(bound: Bound, tell_time: Callable[[str], str] = _tell_utc) -> str:
    """Describe a bound in a sentence: what it limits the grant to."""
    said: list[str] = []
    if bound.under is not None:
        said.append(say("within {nodes}", nodes=", ".join(bound.under)))
    if bound.until is not None:
        said.append(say("until {time}", time=tell_time(bound.until)))
    if bound.per_day is not None:
        said.append(describe_per_day(bound.per_day))
    if bound.dry_run_only:
        said.append(say("in dry runs"))
    if bound.own_only:
        said.append(say("what it did itself"))
    if bound.is_proposed:
        said.append(say("to be approved by somebody else"))
    return say("Only {limits}.", limits=join(said, ", ")) if said else ""


def describe_bounds(bounds: Mapping[str, Any], tell_time: Callable[[str], str] = _tell_utc) -> dict[str, str]:
    """Describe the bounds of a key, by operation."""
    return {name: describe_bound(bound, tell_time) for name, bound in read(bounds).items()}


def list_bounds(bounds: Mapping[str, Any], tell_time: Callable[[str], str] = _tell_utc) -> list[str]:
    """Describe the bounds of a key, each with its operation."""
    return [say("{operation}: {bound}", operation=name, bound=words) for name, words in describe_bounds(bounds, tell_time).items()]
