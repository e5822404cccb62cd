"""Undoing many events at once, of a change set or of a key since a time: a preview with every conflict, and then the undo."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.keys import RESTORE_OF_KEY, build_selection_form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted, find_status
from trellis.admin.undo.plan import OUTDATED
from trellis.core.fields import drop_separators, isolate, shift_timestamp
from trellis.core.version import compute_version
from trellis.errors import Refused
from trellis.sentences import drop_advice, join, say, say_many

_RESTORE: Final = "changesets.restore"
_SKIP: Final = "skipConflicts"
_AFTER: Final = "after"
_LAST: Final = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
_KEYS: Final = "keys"
_SKIP_LABEL: Final = say("Skip events that cannot be undone")


@dataclass(frozen=True, slots=True)
class UndoSelection:
    """Events to undo together, and the operation that does so, with its target and parameters. The paths are without /admin.

    `newest` is the newest of the events, and `count` their number, if they are a change set and any of its events are left. `key`
    is the key that caused the events. `form` asks for the time or the event after which they came.
    """

    operation: str
    target: int
    raw: Mapping[str, Any]
    title: str
    path: str
    back: str
    events: str
    form: Form
    newest: Mapping[str, Any] | None = None
    count: int = 0
    key: Mapping[str, Any] | None = None


Select = Callable[[PageRequest], Awaitable[UndoSelection]]


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """An event that cannot be undone: its number, its operation in words, and why."""

    event: int
    operation: str
    why: str


@dataclass(frozen=True, slots=True)
class UndoManyPlan:
    """What would be undone, from the `result` of a dry run.

    `rows` are resource, operation and count; `version` differs if anything in the result does. `purged` is a sentence on how many
    other events have been purged; "" if none have. `of_keys`: keys may be able to do more afterwards.
    """

    count: int
    rows: tuple[tuple[str, str, int], ...]
    conflicts: tuple[UndoConflict, ...]
    conflict_count: int
    purged: str
    version: str
    result: Mapping[str, Any]
    of_keys: bool = False


async def _select_change_set(request: PageRequest) -> UndoSelection:
    number = request.number("id")
    events = f"/events?changeSet={number}"
    found = (await request.fetch("events.search", {"changeSet": number, "limit": 1}))["results"]
    newest = await request.fetch("events.get", target=found[0]["seq"]) if found else None
    typed = _read_query(request, _AFTER)
    return UndoSelection(
        operation=_RESTORE,
        target=number,
        raw=dict(typed),
        title=say("Undo change set {number:,}", number=number),
        path=f"/change-sets/{number}/undo",
        back=events,
        events=events,
        form=build_selection_form(request, _RESTORE, typed or None),
        newest=newest,
        count=0 if newest is None else newest["changeSetCount"],
    )


async def _select_of_key(request: PageRequest) -> UndoSelection:
    key = await request.fetch("keys.get", target=request.number("id"))
    typed = _read_query(request, "since", _AFTER)
    return UndoSelection(
        operation=RESTORE_OF_KEY,
        target=key["id"],
        raw=dict(typed),
        title=say("Undo what {name} did", name=isolate(key["name"])),
        path=f"/keys/{key['id']}/undo",
        back=f"/keys/{key['id']}",
        events=f"/events?actor=key:{key['id']}",
        form=build_selection_form(request, RESTORE_OF_KEY, typed or None),
        key=key,
    )


def _read_query(request: PageRequest, *names: str) -> Submitted:
    """Return the parameters of the address with these names, without empty ones."""
    filters = Submitted.filters(request.query, request.clock)
    return Submitted((name, drop_separators(value)) for name, value in filters.items() if name in names)


# --- the preview --------------------------------------------------------------------------------------------------


async def show_of_key(request: PageRequest) -> Response:
    """Show what undoing a key's changes since a time would do; without a time, ask for one.

    The parameter `last` names a span that ends now, for links that are followed later than they were shown.
    """
    if (span := _LAST.get(request.query.get("last", ""))) is not None:
        since = shift_timestamp(request.now, -span)
        return request.redirect(f"/keys/{request.number('id')}/undo?{urlencode({'since': since})}")
    return await show(_select_of_key, request)


async def show(select: Select, request: PageRequest) -> Response:
    """Show what would be undone, or why it cannot be planned; of what a key did, without a time, ask for one."""
    chosen = await select(request)
    if chosen.key is not None and not chosen.raw:
        return _show(request, chosen, None)
    try:
        plan = await _plan(request, chosen)
    except Refused as refused:
        return _show_refused(request, chosen, refused)
    if plan.of_keys:
        request.require_recent_password()
    return _show(request, chosen, plan)


async def _plan(request: PageRequest, chosen: UndoSelection) -> UndoManyPlan:
    """Return the plan from a dry run of the undo. Raises Refused as the undo itself would, but not for conflicts."""
    result = await request.dry_run(chosen.operation, chosen.raw, chosen.target)
    titles = {kind.name: kind.title for kind in request.kinds} | {_KEYS: "API keys"}
    resources = [(one["operation"].partition(".")[0], one["operation"], one["count"]) for one in result["counts"]]
    return UndoManyPlan(
        count=result["undoneCount"],
        rows=tuple((titles.get(name, name), _describe(request, operation), count) for name, operation, count in resources),
        conflicts=tuple(
            UndoConflict(one["event"], _describe(request, one["operation"]), drop_advice(one["detail"]))
            for one in result["conflicts"]
        ),
        conflict_count=result["conflictCount"],
        purged=_tell_purged(result["purgedCount"]),
        version=compute_version(orjson.dumps(result, option=orjson.OPT_SORT_KEYS)),
        result=result,
        of_keys=any(resource == _KEYS for resource, _, _ in resources),
    )


def _tell_purged(count: int | None) -> str:
    if count is None:
        return say("Older events have been purged, possibly including some of these.")
    if not count:
        return ""
    return say_many(
        count,
        "{count:,} event has been purged and cannot be undone.",
        "{count:,} events have been purged and cannot be undone.",
    )


def _describe(request: PageRequest, operation: str) -> str:
    found = request.catalogue.get(operation)
    return operation if found is None else found.summary


# --- the undo -----------------------------------------------------------------------------------------------------


async def undo(select: Select, request: PageRequest) -> Response:
    """Undo the events, if the plan is still the one that the page showed."""
    chosen = await select(request)
    if (done := await request.find_done(chosen.operation)) is not None:  # the form was sent twice
        return _go_back(request, chosen, done)
    try:
        plan = await _plan(request, chosen)
    except Refused as refused:
        return _show_refused(request, chosen, refused)
    if plan.of_keys:
        request.require_recent_password()
    try:
        raw = _build_skip_form(request, chosen, request.form).raw()
        if request.form.get("_plan", "") != plan.version:
            return _show(request, chosen, plan, 409, OUTDATED)
        check_plan = partial(_check_plan, plan)
        result = await request.perform_once(chosen.operation, {**chosen.raw, **raw}, chosen.target, check_plan=check_plan)
    except Refused as refused:
        if "conflicts" in refused.facts:
            count = (
                say_many(plan.conflict_count, "{count:,} event cannot be undone.", "{count:,} events cannot be undone.")
                if plan.conflict_count
                else ""
            )
            why = join(part for part in (count, plan.purged) if part)
            problem: str = say(
                "Nothing was changed: {why} Tick “{skip_label}” to undo the others.", why=why, skip_label=_SKIP_LABEL
            )
        else:
            problem = refused.detail
        return _show(request, chosen, await _plan(request, chosen), find_status(refused), problem)
    return _go_back(request, chosen, result.value, result.change_set)


def _go_back(request: PageRequest, chosen: UndoSelection, result: Mapping[str, Any], change_set: int | None = None) -> Response:
    if not result["undoneCount"]:
        return request.redirect(chosen.back, say("There was nothing left to undo."), "note")
    events = None if change_set is None else (say("Show the events"), f"/events?changeSet={change_set}")
    return request.redirect(chosen.back, _tell(result), link=events)


def _check_plan(plan: UndoManyPlan, done: Mapping[str, Any]) -> None:
    """Refuse an undo if somebody has changed meanwhile what is undone. `done` is its result."""
    if any(done[name] != plan.result[name] for name in ("counts", "conflicts", "conflictCount", "purgedCount")):
        raise Refused("PRECONDITION_FAILED", OUTDATED)


def _tell(result: Mapping[str, Any]) -> str:
    undone = say_many(result["undoneCount"], "{count:,} event was undone.", "{count:,} events were undone.")
    if not (left := result["conflictCount"]):
        return undone
    kept = say_many(
        left, "{count:,} could not be undone and remains unchanged.", "{count:,} could not be undone and remain unchanged."
    )
    return join((undone, kept))


# --- responses ----------------------------------------------------------------------------------------------------


def _build_skip_form(request: PageRequest, chosen: UndoSelection, typed: Submitted | None = None) -> Form:
    fields = [field for field in request.catalogue.find(chosen.operation).fields if field.name == _SKIP]
    return Form(fields, typed, labels={_SKIP: _SKIP_LABEL}, help={_SKIP: say("All other events are undone.")})


def _show_refused(request: PageRequest, chosen: UndoSelection, refused: Refused) -> Response:
    """Show the form again if its time or event is invalid, or if a later event would help. Raises the refusal otherwise."""
    if _AFTER in refused.facts:
        return _show(request, chosen, None, refused.status, too_many=refused)
    if not any(chosen.form.field_of(fault) for fault in refused.faults):
        raise refused
    return _show(request, chosen, None, chosen.form.add_refusal(refused).status)


def _show(
    request: PageRequest,
    chosen: UndoSelection,
    plan: UndoManyPlan | None,
    status: int = 200,
    problem: str = "",
    *,
    too_many: Refused | None = None,
) -> Response:
    """Show the page. `too_many` refuses more events than can be undone at once, and names one after which few enough remain."""
    after = None if too_many is None else too_many.facts[_AFTER]
    return request.page(
        "events/undo_many.html",
        status=status,
        title=chosen.title,
        chosen=chosen,
        plan=plan,
        form=_build_skip_form(request, chosen),
        problem=problem,
        too_many=too_many and drop_advice(too_many.detail),
        fewer="" if after is None else f"{chosen.path}?{urlencode({**chosen.raw, _AFTER: after})}",
    )


PAGES: Final = (
    Page("GET", "/change-sets/{id:int}/undo", partial(show, _select_change_set), "events", needs=("changesets.restore",)),
    Page("POST", "/change-sets/{id:int}/undo", partial(undo, _select_change_set), "events", needs=("changesets.restore",)),
    Page("GET", "/keys/{id:int}/undo", show_of_key, "keys", needs=("events.restore_of_key",)),
    Page("POST", "/keys/{id:int}/undo", partial(undo, _select_of_key), "keys", needs=("events.restore_of_key",)),
)
