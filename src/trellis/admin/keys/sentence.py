"""Sentences that describe what a key will be able to do, made from the values in its form."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from trellis.admin.keys.bounds import BoundRow
from trellis.admin.keys.grants import GrantGrid
from trellis.sentences import Sentence, join, mark, say

_DOES: Final[Mapping[str, Sentence]] = {
    "list": say("read"),
    "get": say("read"),
    "create": say("create"),
    "update": say("change"),
    "copy": say("copy"),
    "delete": say("delete"),
    "restore": say("undo changes to"),
    "approve": say("approve"),
    "reject": say("reject"),
}
_LEADS: Final = (
    mark("It may {phrases}."),
    mark("With approval by somebody else for each call, it may {phrases}."),
    mark("In dry runs only, it may {phrases}."),
)
_OTHERS: Final = {"webhooks": say("webhooks"), "proposals": say("proposals")}
_MOST_BOUNDS: Final = 5  # limited grants that are listed one by one


@dataclass(frozen=True, slots=True)
class Abilities:
    """Sentences about a key: what it may do, how far its grants reach, and for how long, from where and how often it works."""

    may: tuple[str, ...]
    reach: tuple[str, ...]
    works: str


def describe_abilities(grid: GrantGrid, rows: Sequence[BoundRow], value_of: Mapping[str, Any]) -> Abilities:
    """Describe what a key with these grants may do. `value_of` contains the form's other settings by name, as they are shown."""
    may = tuple(
        say(lead, phrases=_join_phrases(_list_phrases(grid, names)))
        for number, lead in enumerate(_LEADS)
        if (names := [row.name for row in rows if _find_lead(row) == number])
    )
    bounded: list[str] = [
        say("{summary}: only {limits}.", summary=say(row.summary), limits=join(limits, ", "))
        for row in rows
        if (limits := _list_limits(row.values))
    ]
    more = len(bounded) - _MOST_BOUNDS
    if more > 1:
        bounded = [*bounded[:_MOST_BOUNDS], say("And {more} more grants are limited.", more=more)]
    return Abilities(may or (say("The key may not do anything yet."),), tuple(bounded), _describe_work(value_of))


def _find_lead(row: BoundRow) -> int:
    if row.values["level"] == "propose":
        return 1
    return 2 if row.values["dryRunOnly"] == "1" else 0


def _list_phrases(grid: GrantGrid, names: Sequence[str]) -> list[str]:
    """Return phrases for some operations: one for all resources with the same verbs, then the summaries of the other operations."""
    does = {**_DOES, **name_columns(grid)}
    titles = {row.resource: say(row.title.lower()) for row in grid.rows} | _OTHERS
    verbs: dict[str, tuple[str, ...]] = {}
    alone: list[str] = []
    for name in names:
        resource, _, verb = name.partition(".")
        if resource in titles and (said := does.get(verb)) is not None:
            verbs[resource] = tuple(dict.fromkeys((*verbs.get(resource, ()), said)))
        elif (box := grid.find(name)) is not None:
            alone.append(say(start_small(box.summary)))
    order: list[str] = list(dict.fromkeys(does.values()))
    sorted_verbs = {resource: tuple(sorted(found, key=order.index)) for resource, found in verbs.items()}
    by_verbs = sorted(sorted_verbs, key=lambda resource: list(dict.fromkeys(sorted_verbs.values())).index(sorted_verbs[resource]))
    together: list[str] = [
        say("{verbs} {things}", verbs=_join(found), things=_join([titles[resource] for resource in resources]))
        for found, resources in groupby(by_verbs, key=sorted_verbs.__getitem__)
    ]
    return together + alone


def name_columns(grid: GrantGrid) -> dict[str, Sentence]:
    """Return what keys do with the verbs whose columns have no word of their own in these sentences: `Touch` → `touch`."""
    return {name: say(heading.lower()) for name, heading in grid.columns.items() if name not in _DOES}


def _list_limits(values: Mapping[str, str]) -> list[str]:
    limits: list[str] = [say("within {nodes}", nodes=values["under"])] if values["under"] else []
    limits += [say("until {time}", time=values["until"])] if values["until"] else []
    limits += [_describe_per_day(values["perDay"])] if values["perDay"] else []
    return limits + ([say("what it did itself")] if values["ownOnly"] == "1" else [])


def _describe_per_day(count: str) -> str:
    """Describe a number of uses as it was typed; `describe_per_day` in core takes a validated number."""
    return say("once a day") if count == "1" else say("{count} times a day", count=count)


def _describe_rate(count: str) -> str:
    return say("once a minute") if count == "1" else say("{count} times a minute", count=count)


def _describe_work(value_of: Mapping[str, Any]) -> str:
    """Describe for how long a key works, from where and how often, and whether its requests are logged."""
    addresses = [one.strip() for one in str(value_of["addresses"]).splitlines() if one.strip()]
    where = say("only from {addresses}", addresses=_join(addresses)) if addresses else say("from anywhere")
    parts = [say("It works {lasts}, {where}", lasts=value_of["lasts"], where=where)]
    parts += [say("at most {often}", often=_describe_per_day(value_of["perDay"]))] if value_of["perDay"] else []
    has_rate = value_of["rateLimit"] not in {"", "0"}
    parts += [say("at most {often}", often=_describe_rate(value_of["rateLimit"]))] if has_rate else []
    logged = "" if value_of["logRequests"] else say(" Its requests are not logged.")
    return say("{parts}.{logged}", parts=join(parts, ", "), logged=logged)


def start_small(summary: str) -> str:
    """Return the summary of an operation with a small first letter, for use within a sentence."""
    return summary[:1].lower() + summary[1:]


def _join(words: Iterable[str]) -> str:
    *first, last = words
    return say("{first} and {last}", first=join(first, ", "), last=last) if first else join((last,))


def _join_phrases(phrases: Iterable[str]) -> str:
    *first, last = phrases
    return say("{first}; and {last}", first=join(first, "; "), last=last) if first else join((last,))
