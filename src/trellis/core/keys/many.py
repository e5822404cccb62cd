"""The operations that change or revoke several keys, all or none of them, by running the operation for one key on each."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from trellis.core.fields import Field, Ids, Input
from trellis.core.keys.fields import CHANGES, KEEP_WEBHOOKS, REASON
from trellis.core.operation import DRY_RUN, Call, Context, Operation, Outcome, Preparation, Progress

MOST: Final = 200  # keys at once
_IDS: Final = Field("ids", Ids(MOST), "The ids of the keys.", required=True, example=[1, 2])
_GRANTS: Final = tuple(field for field in CHANGES if field.name in {"grant", "ungrant"})
_UPDATE: Final = "keys.update"
_REVOKE: Final = "keys.revoke"


def operations() -> tuple[Operation, ...]:
    """Return the operations, all for the panel and the terminal."""
    return (
        _build(
            _UPDATE,
            "Change the grants of several keys",
            f"Adds grants to up to {MOST} keys, or removes them, in one change set: for all of these keys or for none. Keys that "
            "need no change are left as they are. Grants are added without bounds.",
            _GRANTS,
        ),
        _build(
            _REVOKE,
            "Revoke several keys",
            f"Revokes up to {MOST} keys permanently, all of them or none, and switches off their webhooks.",
            (replace(REASON, doc="Why the keys are revoked; shown in the list."), KEEP_WEBHOOKS),
        ),
    )


def _build(single: str, summary: str, doc: str, fields: tuple[Field, ...]) -> Operation:
    return Operation(
        f"{single}_many",
        summary,
        doc,
        partial(_run, single),
        (_IDS, *fields),
        writes=True,
        is_change_set=True,
        preparation=Preparation(calls=partial(_list_calls, single)),
    )


def _list_calls(single: str, call: Call, given: Input) -> Iterator[Call]:
    for number in given.get("ids", ()):
        yield call._replace(operation=single, raw=_leave_out_ids(call.raw), target=number)


def _leave_out_ids(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name not in {_IDS.name, DRY_RUN.name}}


def _run(single: str, context: Context) -> Outcome:
    """Run the operation on each key; return, for each, its event (None if it left none), the key, and the webhooks switched off."""
    ids = context.input.get(_IDS.name)
    progress, raw = Progress(context.call, len(ids)), _leave_out_ids(context.call.raw)
    dry = bool(context.input.get(DRY_RUN.name))
    results: list[dict[str, Any]] = []
    last = None
    for number in ids:
        outcome = context.run(context.call.build_inner(single, raw, number))
        last = outcome.event or last
        event = None if dry else outcome.event
        webhooks = [one["id"] for one in outcome.touched if one["resource"] == "webhooks"]
        results.append({"id": number, "event": event, "key": outcome.result, "webhooks": webhooks})
        progress.done()
    result = {"results": results}
    return Outcome(result, plan=result | {"dryRun": True}, happened=False, event=last)
