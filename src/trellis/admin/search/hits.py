"""The results of a search: one line with a link for each record, page and action."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin import PREFIX
from trellis.admin.nodes import path_above
from trellis.admin.page import PageRequest
from trellis.admin.rendering import find_icon
from trellis.admin.search.actions import Command, begins_action, build_actions
from trellis.admin.times import Clock
from trellis.admin.webhooks import webhook_name
from trellis.core.actor import describe_actor
from trellis.core.fields import isolate
from trellis.core.search import FIND
from trellis.sentences import join, say

_MOST_SAVED: Final = 6
_MOST_ACTIONS: Final = 6  # that are only named; twice as many are shown with a record
_MOST_READ: Final = 4 * _MOST_ACTIONS  # records that are read to find as many to which an action applies
_STATES: Final = {"paused": say("paused"), "expired": say("expired"), "revoked": say("revoked")}  # of keys that are not active
_LISTS: Final = {  # whose filters can be saved
    "requests": say("requests"),
    "events": say("events"),
    "deliveries": say("deliveries"),
    "keys": say("keys"),
    "proposals": say("proposals"),
}
_RESOURCES: Final = {"keys": say("API keys"), "webhooks": say("Webhooks"), "requests": say("Requests"), "events": say("Events")}


@dataclass(frozen=True, slots=True)
class Hit:
    """One line. `note` distinguishes it from similar ones; with `fill`, choosing it only completes the text."""

    title: str
    note: str
    path: str
    icon: str
    fill: str = ""


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Lines of one sort; `more` is how many others there are, and `all` the path of the page that lists them.

    `rest` is the path of a search that takes longer, if there may be others.
    """

    title: str
    hits: tuple[Hit, ...]
    more: int = 0
    all: str = ""
    rest: str = ""


async def find_hits(request: PageRequest, text: str) -> tuple[HitGroup, ...]:
    """Find everything that a text can stand for. Raises Refused."""
    records = await request.fetch(FIND, {"text": text}, slow=True)
    saved = await _find_saved(request, text)
    titles = {kind.name: kind.title for kind in request.kinds} | _RESOURCES
    every = build_actions(request.catalogue, request.kinds)
    allowed = (action for action in every if request.view.may_open(request, action.path.format(id=0)))
    actions = [action.said_in(request.language) for action in allowed]
    pages, done = HitGroup(say("Go to"), _find_pages(request, text)), await _find_actions(request, actions, text)
    is_action = begins_action(actions, text)
    sections = [done, pages] if is_action else [pages]
    for one in records["results"]:
        name, described = one["resource"], (describe(one["resource"], record, request.clock) for record in one["records"])
        hits = tuple(hit for hit in described if request.view.may_open(request, hit.path))
        searched = name in _RESOURCES and name != "keys"
        rest = "" if one["complete"] or name != "events" else f"/events?{urlencode({'requestId': text})}"
        sections.append(HitGroup(titles[name], hits, max(0, one["total"] - len(hits)), "" if searched else f"/{name}", rest))
    sections += [saved] if is_action else [saved, done]
    return tuple(section for section in sections if section.hits or section.rest)


def describe(resource: str, record: Mapping[str, Any], clock: Clock, path: str = "") -> Hit:
    """Describe a record in a line; `path` is where the line leads, if not to the record's own page."""
    title, note, number = _TEXTS.get(resource, _describe_node)(record, clock)
    return Hit(title, note, path or f"/{resource}/{number}", find_icon(resource))


def _describe_node(record: Mapping[str, Any], _: Clock) -> tuple[str, str, int]:
    above = path_above(record)
    return record["name"], say("in {above}", above=isolate(above)) if above else "", record["id"]


def _describe_key(record: Mapping[str, Any], _: Clock) -> tuple[str, str, int]:
    said = [record["public"] + "…", isolate(record["owner"]), _STATES.get(record["state"], "")]
    return record["name"], join((one for one in said if one), ", "), record["id"]


def _describe_webhook(record: Mapping[str, Any], _: Clock) -> tuple[str, str, int]:
    return webhook_name(record), record["url"] if record["description"] else "", record["id"]


def _describe_request(record: Mapping[str, Any], clock: Clock) -> tuple[str, str, int]:
    return (
        f"{record['method']} {record['path']}",
        f"{record['status']}, {clock.short(record['at'])}, {record['requestId']}",
        record["id"],
    )


def _describe_event(record: Mapping[str, Any], clock: Clock) -> tuple[str, str, int]:
    about = (record["after"] or record["before"] or {}).get("name")
    title = f"{record['operation']}: {isolate(str(about))}" if about else record["operation"]
    said = (say("event {number}", number=record["seq"]), clock.short(record["at"]), describe_actor(record["actor"]))
    return title, join(said, ", "), record["seq"]


_TEXTS: Final = {
    "keys": _describe_key,
    "webhooks": _describe_webhook,
    "requests": _describe_request,
    "events": _describe_event,
}


# --- pages and actions --------------------------------------------------------------------------------------------


def _find_pages(request: PageRequest, text: str) -> tuple[Hit, ...]:
    """Find the pages of the menu whose titles, or a word in them, begin with the text; without a text, all of them."""
    wanted = text.casefold()
    entries = [(request.language.sentence(entry.title), entry) for _, found in request.view.menu_of(request) for entry in found]
    return tuple(
        Hit(title, "", entry.path.removeprefix(PREFIX), entry.icon)
        for title, entry in entries
        if entry.path.startswith(PREFIX)
        and (title.casefold().startswith(wanted) or any(word.startswith(wanted) for word in title.casefold().split()))
    )


async def _find_saved(request: PageRequest, text: str) -> HitGroup:
    """Find saved filters by their names; without a text, the first ones of the administrator's own."""
    found = await request.fetch("filters.list")
    chosen = [one for one in found if (text.casefold() in one["name"].casefold() if text else one["isOwn"])]
    hits = tuple(
        Hit(one["name"], say("filter of {list}", list=_LISTS.get(one["list"], one["list"])), f"/filters/{one['id']}", "search")
        for one in chosen[:_MOST_SAVED]
    )
    return HitGroup(say("Saved filters"), hits, len(chosen) - len(hits))


async def _find_actions(request: PageRequest, actions: Sequence[Command], text: str) -> HitGroup:
    """Find actions: those on the record that the text names, and those that the text begins to name."""
    if not text:
        return HitGroup(say("Actions"), tuple(_name(action) for action in actions if not action.resource))
    read = [(action, rest) for action in actions if (rest := action.read(text)) is not None]
    with_rest = [(action, rest) for action, rest in read if rest and action.resource and action.is_named(text)]
    with_rest += [
        (action, "") for action, rest in read if not rest and action.resource and action.words.casefold() == text.casefold()
    ]
    named = [_name(action) for action, rest in read if not rest and (action, "") not in with_rest]
    return HitGroup(say("Actions"), (*await _apply(request, with_rest), *named[:_MOST_ACTIONS]))


def _name(action: Command) -> Hit:
    if not action.resource:
        return Hit(action.title, "", action.path, "plus" if "/new" in action.path else "right")
    fill = f"{action.words} "
    return Hit(f"{action.title} …", "", f"/search?text={fill.strip().replace(' ', '+')}+", "right", fill)


async def _apply(request: PageRequest, actions: Sequence[tuple[Command, str]]) -> Iterable[Hit]:
    """Find the records for the actions, with one read for each text that follows the words of an action."""
    hits: list[Hit] = []
    for rest in dict.fromkeys(rest for _, rest in actions):
        chosen = [action for action, its_rest in actions if its_rest == rest]
        raw = {"text": rest, "resources": list(dict.fromkeys(action.resource for action in chosen)), "limit": _MOST_READ}
        found = {one["resource"]: one["records"] for one in (await request.fetch(FIND, raw, slow=True))["results"]}
        for action in chosen:
            fitting = [record for record in found.get(action.resource, ()) if action.applies(record)]
            for record in fitting[:_MOST_ACTIONS]:
                path = action.path.format(id=record.get("id", record.get("seq")))
                hit = describe(action.resource, record, request.clock, path)
                hits.append(Hit(f"{action.title} {isolate(hit.title)}", hit.note, hit.path, hit.icon))
    return hits[: 2 * _MOST_ACTIONS]
