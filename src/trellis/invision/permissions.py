"""Reading permissions in the suite's form: one member for each option, by position, with `*` or ids separated by commas."""

from collections.abc import Iterator, Mapping
from typing import Any

from trellis.core.fields import EVERYONE, parse_whole_number, quote
from trellis.core.kind import NodeKind
from trellis.invision.suite import find_dialect_kind


def read_permissions(kind: NodeKind, value: Any, groups: Mapping[int, str], notes: list[str]) -> dict[str, Any] | None:
    """Return who may do what: option → external ids of groups, or EVERYONE. None if the permissions are not given.

    Values that are not understood allow nobody, and are added to `notes`.
    """
    members = {
        member: option for member, option in find_dialect_kind(kind).options.items() if member != option
    }  # not those of requests
    if not isinstance(value, Mapping) or not value.keys() & members.keys():
        return None
    found: dict[str, Any] = {}
    for member, option in members.items():
        unknown: list[str] = []
        found[option] = _read_option(value.get(member), groups, unknown)
        if unknown:
            named = ", ".join(unknown[:5]) + (", …" if len(unknown) > 5 else "")
            notes.append(f"{member} ({option}) names {named}: not among the groups that were sent, so left out.")
    return found


def _read_option(value: Any, groups: Mapping[int, str], unknown: list[str]) -> Any:
    parts = [*_split(value)]
    if EVERYONE in parts:
        return EVERYONE
    found: dict[str, None] = {}
    for part in parts:
        number = parse_whole_number(part)
        if number is not None and number in groups:
            found[groups[number]] = None
        else:
            unknown.append(quote(part))
    return sorted(found)


def _split(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield from (part.strip() for part in value.split(",") if part.strip())
    elif isinstance(value, list):
        yield from value
    elif value is not None:
        yield value
