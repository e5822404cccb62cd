"""Finding records of all resources by a name, a number, the public part of a key, or the id of a request."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trellis.core.events import show_event
from trellis.core.fields import MAX_ID, Field, Integer, Invalid, Text, TextList, Type, drop_separators, parse_whole_number, quote
from trellis.core.keys import find_public_part, redact_keys, serialize_key
from trellis.core.kind import NodeKind
from trellis.core.nodes import serialize_nodes
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.requests import serialize_request
from trellis.core.webhooks import serialize_webhook
from trellis.errors import refuse_fault
from trellis.sentences import say
from trellis.store import events, keys, lists, nodes, requests
from trellis.store.keys import Key
from trellis.store.lists import Query
from trellis.store.nodes import Node
from trellis.store.webhooks import endpoints

FIND: Final = "search.find"
_FEW: Final = 6  # records of one resource
_MOST: Final = 50
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~+/=:-]{8,128}")


@dataclass(frozen=True, slots=True)
class SearchText(Type):
    """The text that somebody searches for. A whole key is refused, since its secret part has no business in a search."""

    longest: int = 200

    def parse(self, raw: Any) -> str:
        value = Text(self.longest).parse(raw)
        if redact_keys(value) != value:
            raise Invalid(
                say(
                    "contains the secret part of a key, which cannot be searched for. Search for the public part only, up to the "
                    "second underscore."
                )
            )
        return value

    def schema(self) -> dict[str, Any]:
        return Text(self.longest).schema()


class Found(NamedTuple):
    """Some records of one resource, and how many were found in all; `complete` is false if there may be others."""

    records: list[dict[str, Any]]
    total: int
    complete: bool = True


class SearchQuery(NamedTuple):
    """A search: the text, what it may stand for besides a name, and the number of records of each resource at most."""

    text: str
    number: int | None  # the number of a record
    public: str  # the public part of a key
    limit: int


Look = Callable[[Context, SearchQuery], Found]

TEXT: Final = Field(
    "text",
    SearchText(),
    "A part of a name, a number, the public part of a key, or the id of a request.",
    default="",
    example="News",
)
_FIELDS: Final = (
    TEXT,
    Field("resources", TextList(least=1), "Where to look, such as forums or keys. The default is everywhere."),
    Field("limit", Integer(1, _MOST), "How many records of each resource at most.", default=_FEW),
)


def operations() -> tuple[Operation, ...]:
    """Return the operation, for the panel and the terminal."""
    return (
        Operation(
            FIND,
            "Find records",
            "Returns the nodes, keys and webhooks whose names contain a text, and the records whose number, public part or request "
            "id it is. Without a text it returns the first records of the `resources`. `complete` is false if a "
            "resource may have more than `total`: events are searched for 30 ms at most.",
            _find,
            _FIELDS,
        ),
    )


def _find(context: Context) -> Outcome:
    given = context.input
    sources: dict[str, Look] = {kind.name: partial(_find_nodes, kind) for kind in context.environment.kinds}
    sources.update(_SOURCES)
    chosen = given.get("resources", ())
    if unknown := [name for name in chosen if name not in sources]:
        detail = say(
            "resources: {unknown} cannot be searched; choose from {sources}.",
            unknown=quote(unknown[0]),
            sources=", ".join(sources),
        )
        raise refuse_fault("resources", "INVALID_VALUE", detail)
    wanted = _read(given.get(TEXT.name, TEXT.default), given.get("limit", _FEW))
    names = [name for name in chosen or (sources if wanted.text else ()) if context.call.actor.sees(name)]
    looked = {name: sources[name](context, wanted) for name in names}
    return Outcome(
        {
            "results": [
                {"resource": name, "records": found.records, "total": found.total, "complete": found.complete}
                for name, found in looked.items()
                if found.records or not found.complete
            ]
        }
    )


def _read(text: str, limit: int) -> SearchQuery:
    number = parse_whole_number(drop_separators(text.removeprefix("#")))
    is_id = number is not None and 1 <= number <= MAX_ID
    return SearchQuery(text, number if is_id else None, find_public_part(text), limit)


def _find_nodes(kind: NodeKind, context: Context, wanted: SearchQuery) -> Found:
    """Find nodes: the one with the number, then those whose names begin with the text, then those whose names contain it."""
    if wanted.public:
        return Found([], 0)
    tx, folded = context.tx, nodes.fold_name(wanted.text)
    numbered = None if wanted.number is None else nodes.find(tx, kind.name, wanted.number)
    begin = nodes.find_beginning_with(tx, kind.name, folded, wanted.limit)
    query = Query({"search": folded} if folded else {}, "name", limit=2 * wanted.limit)
    total, within = lists.read_page(tx, kind.name, query)
    found: dict[int, Node] = {node.id: node for node in (*((numbered,) if numbered else ()), *begin, *within)}
    shown = list(found.values())[: wanted.limit]
    total += numbered is not None and folded not in nodes.fold_name(numbered.name)
    return Found(serialize_nodes(kind, context, shown), total)


def _find_keys(context: Context, wanted: SearchQuery) -> Found:
    filters = {"search": wanted.public or wanted.text} if wanted.text else {}
    total, within = keys.read_page(context.tx, wanted.limit, 0, filters, now=context.now, newest_first=True)
    numbered = None if wanted.number is None else keys.find(context.tx, wanted.number)
    if numbered is not None:
        total += keys.read_page(context.tx, 1, 0, filters | {"ids": [numbered.id]}, now=context.now)[0] == 0
    found: dict[int, Key] = {one.id: one for one in (*((numbered,) if numbered else ()), *within)}
    return Found([serialize_key(one, context.now) for one in list(found.values())[: wanted.limit]], total)


def _find_webhooks(context: Context, wanted: SearchQuery) -> Found:
    if wanted.public:
        return Found([], 0)
    text = wanted.text.casefold()
    every = endpoints.list_all(context.tx)  # there are 100 at most
    found = [one for one in every if one.id == wanted.number or text in one.description.casefold() or text in one.url.casefold()]
    return Found([serialize_webhook(one, context.now) for one in found[: wanted.limit]], len(found))


def _find_requests(context: Context, wanted: SearchQuery) -> Found:
    found = []
    if wanted.number is not None and (numbered := requests.find(context.tx, wanted.number)) is not None:
        found.append(numbered)
    if _is_request_id(wanted):
        found += requests.find_all_by_request_id(context.tx, wanted.text, wanted.limit + 1)
    return _cut([serialize_request(one) for one in found], wanted)


def _find_events(context: Context, wanted: SearchQuery) -> Found:
    found, complete, actor = [], True, context.call.actor
    if (
        wanted.number is not None
        and (numbered := events.find(context.tx, wanted.number)) is not None
        and actor.sees(numbered.resource)
    ):
        found.append(numbered)
    if _is_request_id(wanted):
        seen = {} if actor.permit is None else {"resources": actor.permit.resources}
        searched = events.search(context.tx, {"request_id": wanted.text, **seen}, wanted.limit)
        found, complete = found + searched.found, searched.next is None
    return _cut([show_event(one, actor) for one in found], wanted, complete=complete)


def _cut(records: list[dict[str, Any]], wanted: SearchQuery, *, complete: bool = True) -> Found:
    """Return the first records; how many others there are is not known."""
    shown = records[: wanted.limit]
    return Found(shown, len(shown), complete and len(records) <= wanted.limit)


def _is_request_id(wanted: SearchQuery) -> bool:
    return not wanted.public and _REQUEST_ID.fullmatch(wanted.text) is not None


_SOURCES: Final[Mapping[str, Look]] = MappingProxyType(
    {"keys": _find_keys, "webhooks": _find_webhooks, "requests": _find_requests, "events": _find_events}
)
