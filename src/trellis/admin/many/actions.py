"""The actions on many nodes: a row of data for each action, and a function that finds what its operation is sent for each node."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.forms import Form, read_id, read_ids, split_values
from trellis.admin.many.plan import Bodies, Record, fetch_below, leave_out_nested, require_few
from trellis.admin.nodes import GroupNames, describe_field, list_choices
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import EVERYONE, MAX_INTEGER, Choice
from trellis.core.nodes import NodeKind
from trellis.errors import refuse_fault
from trellis.sentences import mark, mark_many, say, say_many

PARENT: Final = "to"
SOURCE: Final = "source"
_ALONG: Final = "withChildren"
SET: Final = "_set."  # before the name of a field that is to be set

BuildBodies = Callable[[PageRequest, NodeKind, Sequence[Record], GroupNames], Awaitable[Bodies]]
PickerRow = tuple[str, str, str, bool]  # name, label, label of the choice of no node, and whether only parents are offered


@dataclass(frozen=True, slots=True)
class Action:
    """An action on many nodes, which runs the operation with the verb `verb` on each, with the body that `build_bodies` returns.

    `asks`: its form has choices to make before anything can be planned. `takes_along`: the nodes below a node go along with it;
    `along` is the name of the checkbox that decides this, if there is one. `moves`: the target cannot be one of the nodes, or below
    one of them.
    """

    name: str
    verb: str
    button: str
    icon: str
    build_bodies: BuildBodies
    done: tuple[str, str]
    title: str
    asks: bool = True
    takes_along: bool = True
    along: str = ""
    deletes: bool = False
    moves: bool = False
    needs_order: bool = False
    needs_options: bool = False
    sets_fields: bool = False
    pickers: tuple[PickerRow, ...] = ()

    def fits(self, kind: NodeKind) -> bool:
        """Return whether a kind has the order and the permissions that the action needs."""
        return (kind.ordered or not self.needs_order) and (bool(kind.options) or not self.needs_options)

    def list_pickers(self, kind: NodeKind) -> list[PickerRow]:
        """List the pickers of the action's form for a kind."""
        return [row for row in self.pickers if kind.tree or row[0] != PARENT]

    def tell_along(self, kind: NodeKind, form: Submitted) -> str:
        """Return the words that everything below goes along, if that was ticked; otherwise ""."""
        return say(" with everything below") if kind.tree and self.along and form.get(self.along) == "1" else ""

    def describe(self, kind: NodeKind, form: Submitted, count: int) -> str:
        """Return a sentence on what was done to `count` nodes."""
        return say_many(count, *self.done, nodes=kind.counted(count), along=self.tell_along(kind, form))


async def _delete(_request: PageRequest, kind: NodeKind, records: Sequence[Record], _groups: GroupNames) -> Bodies:
    body = {"deleteChildrenOrMove": -1} if kind.tree else {}
    return [(record, body) for record in records]


async def _move(request: PageRequest, kind: NodeKind, records: Sequence[Record], _groups: GroupNames) -> Bodies:
    is_first = request.form.get("place") == "first"
    parent = _find_parent(kind, request.form)
    return [(record, parent | {"position": place if is_first else MAX_INTEGER}) for place, record in enumerate(records)]


async def _copy(request: PageRequest, kind: NodeKind, records: Sequence[Record], _groups: GroupNames) -> Bodies:
    is_beside = request.form.get("where") != "there"
    body: dict[str, Any] = {} if is_beside else _find_parent(kind, request.form)
    if kind.tree:
        body[_ALONG] = request.form.get(_ALONG) == "1"
    return [(record, body | ({"name": f"{record['name'][:240]} (copy)"} if is_beside else {})) for record in records]


def _find_parent(kind: NodeKind, form: Submitted) -> dict[str, Any]:
    if not kind.tree:
        return {}
    if PARENT not in form:
        raise refuse_fault(PARENT, "MISSING_VALUE", say("Choose where to put them."))
    return {"parentId": form[PARENT]}


async def _find_permitted(request: PageRequest, kind: NodeKind, records: Sequence[Record]) -> Sequence[Record]:
    """Return the records whose permissions are to change: the ticked nodes, and the nodes below them if the form says so."""
    if request.form.get("below") != "1":
        return records
    found = {record["id"]: record for record in records}
    for record in await leave_out_nested(request, kind, records):
        require_few(kind, len(found))
        for one in await fetch_below(request, kind, record["id"]):
            found.setdefault(one["id"], one)
    return tuple(found.values())


async def _permit(request: PageRequest, kind: NodeKind, records: Sequence[Record], groups: GroupNames) -> Bodies:
    form, how = request.form, request.form.get("how", "give")
    records = await _find_permitted(request, kind, records)
    if how == "same":
        if (source := read_id(form.get(SOURCE, ""))) is None:
            raise refuse_fault(
                SOURCE, "MISSING_VALUE", say("Choose the {singular} to copy the permissions from.", singular=kind.singular)
            )
        wanted = (await request.fetch(kind.operation("get"), target=source))["permissions"]
        return [(record, {"permissions": wanted}) for record in records]
    options, who = (frozenset(filter(None, split_values(form.all(name)))) for name in ("options", "groups"))
    if not options or not who:
        raise refuse_fault("options", "MISSING_VALUE", say("Tick at least one right and one group."))
    if len(who) > len(groups) + 1:  # more than there are, with every group as one
        raise refuse_fault("groups", "INVALID_VALUE", say("Some of these groups no longer exist. Reload the page."))
    change = _give if how == "give" else _take
    bodies = []
    for record in records:
        held = record["permissions"]
        changed = {option: change(held.get(option, []), who, groups) for option in kind.options if option in options}
        bodies.append((record, {"permissions": changed}))
    return bodies


def _give(held: Any, who: frozenset[str], _groups: GroupNames) -> Any:
    if held == EVERYONE or EVERYONE in who:
        return EVERYONE
    return sorted({*held, *read_ids(who)})


def _take(held: Any, who: frozenset[str], groups: GroupNames) -> Any:
    """Remove groups from a right. If every group has it, the other groups keep it by name; removing every group leaves nobody."""
    if EVERYONE in who:
        return []
    return [one for one in (sorted(groups) if held == EVERYONE else held) if str(one) not in who]


def build_fields(kind: NodeKind, typed: Submitted, records: Sequence[Record]) -> Form:
    """Build the form of the fields that can be set in many nodes; it starts with the values that all of them have in common."""
    fields = [f for f in kind.fields if not (f.read_only or f.write_only)]
    names = {f.name for f in fields}
    values: Mapping[str, Any]
    if not names.isdisjoint(typed):
        values = Submitted((name, value) for name, value in typed.pairs if name in names)
    else:
        values = _find_common(records, names)
    return Form(
        fields,
        values,
        choices={f.name: list_choices(f.type) for f in fields if isinstance(f.type, Choice)},
        help={f.name: describe_field(f) for f in fields},
    )


def _find_common(records: Sequence[Record], names: Iterable[str]) -> dict[str, Any]:
    return {name: records[0][name] for name in names if all(one[name] == records[0][name] for one in records)}


async def _set_fields(request: PageRequest, kind: NodeKind, records: Sequence[Record], _groups: GroupNames) -> Bodies:
    typed = build_fields(kind, request.form, records).raw()
    wanted = {name: value for name, value in typed.items() if request.form.get(f"{SET}{name}") == "1"}
    if not wanted:
        raise refuse_fault("fields", "MISSING_VALUE", say("Tick at least one field to set."))
    return [(record, wanted) for record in records]


_TARGET: Final[PickerRow] = (PARENT, say("Under"), say("The top level"), True)
ACTIONS: Final[tuple[Action, ...]] = (
    Action(
        "move",
        "update",
        say("Move"),
        "move",
        _move,
        mark_many("{nodes} has moved.", "{nodes} have moved."),
        mark("Move {nodes}"),
        moves=True,
        needs_order=True,
        pickers=(_TARGET,),
    ),
    Action(
        "copy",
        "copy",
        say("Copy"),
        "copy",
        _copy,
        mark_many("{nodes} was copied{along}.", "{nodes} were copied{along}."),
        mark("Copy {nodes}"),
        along=_ALONG,
        pickers=(_TARGET,),
    ),
    Action(
        "permissions",
        "update",
        say("Permissions"),
        "lock",
        _permit,
        mark_many("The permissions of {nodes} have changed.", "The permissions of {nodes} have changed."),
        mark("Permissions of {nodes}"),
        takes_along=False,
        needs_options=True,
        pickers=((SOURCE, say("Same as"), "", False),),
    ),
    Action(
        "fields",
        "update",
        say("Fields"),
        "edit",
        _set_fields,
        mark_many("The fields of {nodes} have changed.", "The fields of {nodes} have changed."),
        mark("Fields of {nodes}"),
        takes_along=False,
        sets_fields=True,
    ),
    Action(
        "delete",
        "delete",
        say("Delete"),
        "trash",
        _delete,
        mark_many("{nodes} was deleted.", "{nodes} were deleted."),
        mark("Delete {nodes}"),
        asks=False,
        deletes=True,
    ),
)
