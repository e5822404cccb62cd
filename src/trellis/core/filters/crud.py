"""The operations on saved filters.

A filter is the query of a URL, without what the query finds: whoever opens a filter sees what their role lets them see. It is not
checked against the list when it is saved, since lists change: the page reports which parts of it are not understood.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from trellis.core.actor import Actor
from trellis.core.events import save_change
from trellis.core.fields import Boolean, Field, Invalid, Text, Type, invalid_id, isolate, quote
from trellis.core.keys import redact_keys
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.core.version import check_fields
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store import filters
from trellis.store.counters import next_number
from trellis.store.filters import SavedFilter

MOST: Final = 50  # filters of one administrator
LISTS: Final[Mapping[str, str]] = {  # each with the operation that reads it
    "requests": "requests.list",
    "events": "events.search",
    "deliveries": "deliveries.list",
    "keys": "keys.list",
    "proposals": "proposals.list",
}
PLACES: Final = frozenset(("before", "page"))  # parts of a query that are a place in a list, not a filter
_MOST_PAIRS: Final = 30
_NO_FILTER: Final = "1T118/1"


@dataclass(frozen=True, slots=True)
class FilterQuery(Type):
    """The query of a URL, without the place in the list and without empty parts."""

    longest: int = 1000

    def parse(self, raw: Any) -> str:
        text = Text(self.longest).parse(raw).removeprefix("?")
        if redact_keys(text) != text:
            raise Invalid(say("contains the secret part of a key, which must not be saved in a filter."))
        try:
            pairs = parse_qsl(text, max_num_fields=_MOST_PAIRS)
        except ValueError:
            raise Invalid(say("has more than {most_pairs} parts.", most_pairs=_MOST_PAIRS)) from None
        kept = [(name, value) for name, value in pairs if name not in PLACES and not name.startswith("_")]
        return Text(self.longest).parse(urlencode(kept))  # which may be longer than what was sent

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest, "examples": ["status=4xx&path=forums"]}


NAME: Final = Field("name", Text(60, 1, visible=True), "The name of the filter.", required=True, example="Refused writes")
LIST: Final = Field(
    "list", Text(40, 1), "The list that the filter is for, such as requests or events.", required=True, example="requests"
)
QUERY: Final = Field("query", FilterQuery(), "The filter, as in the list's address.", required=True, example="status=4xx")
SHARED: Final = Field("shared", Boolean(), "Whether other administrators see the filter.", default=False)


def operations() -> tuple[Operation, ...]:
    """Return the operations on saved filters, for the panel and the terminal."""
    return (
        Operation(
            "filters.list",
            "List saved filters",
            "Returns your saved filters and those that others share, for the lists that you may read, sorted by name.",
            _list,
        ),
        Operation(
            "filters.create",
            "Save a filter",
            f"Saves a filter of a list under a name. An administrator can have at most {MOST}.",
            _create,
            (NAME, LIST, QUERY, SHARED),
            writes=True,
        ),
        targeted_write(
            "filters.update",
            "Change a saved filter",
            "Renames, replaces, shares or unshares a saved filter. Only the administrator who saved it can do this and, if it is "
            "shared, owners.",
            _update,
            (*(replace(field, required=False) for field in (NAME, QUERY)), SHARED),
            judges_input=True,
        ),
        targeted_write(
            "filters.delete",
            "Delete a saved filter",
            "Deletes a saved filter. Only the administrator who saved it can do this and, if it is shared, owners.",
            _delete,
        ),
    )


def _serialize(saved: SavedFilter) -> dict[str, Any]:
    return {
        "id": saved.id,
        "name": saved.name,
        "list": saved.list,
        "query": saved.query,
        "shared": saved.shared,
        "createdAt": saved.created_at,
        "updatedAt": saved.updated_at,
    }


def _list(context: Context) -> Outcome:
    actor = context.call.actor
    read = filters.read_all(context.tx, None if actor.type == "terminal" else _owner(context))
    return Outcome(
        [
            {**_serialize(saved), "isOwn": saved.admin_id == _owner(context), "by": name or say("the terminal")}
            for saved, name in read
            if _may_read_list(saved, actor)
        ]
    )


def _create(context: Context) -> Outcome:
    given = context.input
    wanted = given.get(LIST.name)
    if wanted not in LISTS or not context.call.actor.may(LISTS[wanted]):
        known = ", ".join(name for name, operation in LISTS.items() if context.call.actor.may(operation))
        raise refuse_fault(
            LIST.name, "INVALID_VALUE", say("list: there is no {wanted}; the lists are {known}.", wanted=quote(wanted), known=known)
        )
    own = [saved for saved, _ in filters.read_all(context.tx, _owner(context)) if saved.admin_id == _owner(context)]
    if len(own) >= MOST:
        detail = say("name: you already have {most} saved filters, which is the limit. Delete one that you do not need.", most=MOST)
        raise refuse_fault(NAME.name, "INVALID_VALUE", detail)
    saved = SavedFilter(
        id=next_number(context.tx, "filters"),
        admin_id=_owner(context),
        list=wanted,
        name=given.get(NAME.name),
        query=given.get(QUERY.name),
        shared=given.get(SHARED.name, SHARED.default),
        created_at=context.at,
        updated_at=context.at,
    )
    _require_other_names(saved, own)
    filters.insert(context.tx, saved)
    after = _serialize(saved)
    return Outcome(after, saved.id, after=after)


def _update(context: Context) -> Outcome:
    old = _find_own(context)
    given = context.input.excuse(context.call.raw, _serialize(old))
    given.raise_faults()
    new = replace(
        old,
        name=given.get(NAME.name, old.name),
        query=given.get(QUERY.name, old.query),
        shared=given.get(SHARED.name, old.shared),
    )
    of_same = [saved for saved, _ in filters.read_all(context.tx, old.admin_id) if saved.admin_id == old.admin_id]
    _require_other_names(new, of_same)
    sent = [field.name for field in (NAME, QUERY, SHARED) if field.name in context.call.raw]
    check_fields(context.call.expected, _serialize(old), _serialize(new), sent)
    return save_change(context, old, new, _serialize, filters.update)


def _delete(context: Context) -> Outcome:
    old = _find_own(context)
    filters.delete(context.tx, old.id)
    return Outcome(None, old.id, before=_serialize(old))


def _owner(context: Context) -> int:
    """Return the id of the administrator whose filters a call is about; 0 for those of the terminal."""
    actor = context.call.actor
    return (actor.id or 0) if actor.type == "admin" else 0


def _may_read_list(saved: SavedFilter, actor: Actor) -> bool:
    return saved.list in LISTS and actor.may(LISTS[saved.list])


def _find_own(context: Context) -> SavedFilter:
    """Return the filter that a call is about. Raises Refused if the caller may not see it or change it, or it does not exist."""
    saved, actor = filters.find(context.tx, context.call.target or 0), context.call.actor
    is_own = saved is not None and saved.admin_id == _owner(context)
    if saved is None or not (is_own or actor.type == "terminal" or (saved.shared and _may_read_list(saved, actor))):
        raise invalid_id(say("saved filter"), context.call.target, _NO_FILTER)
    if is_own or actor.type == "terminal" or actor.permit is None:
        return saved
    raise Refused(
        "NO_PERMISSION", say("{name} was saved by somebody else. Only they or an owner may change it.", name=isolate(saved.name))
    )


def _require_other_names(saved: SavedFilter, others: list[SavedFilter]) -> None:
    """Refuse a name that another filter of the same list has: nobody could tell them apart."""
    name = saved.name.casefold()
    if any(one.id != saved.id and one.list == saved.list and one.name.casefold() == name for one in others):
        detail = say("name {name} is already the name of another filter of this list. Choose another.", name=isolate(saved.name))
        raise refuse_fault(NAME.name, "INVALID_VALUE", detail)
