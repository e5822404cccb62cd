"""Applies the API keys in a document: creates or changes them, and never revokes any. Only at the terminal and in the panel."""

from collections.abc import Sequence
from typing import Any, Final

from trellis.core.keys import RECORDED
from trellis.core.operation import Context, Progress
from trellis.core.paging import MOST_PER_PAGE, read_all
from trellis.core.structure.applier import Applier
from trellis.core.structure.changes import Change
from trellis.core.structure.document import KEYS, refuse_document
from trellis.core.structure.entries import KeyEntry
from trellis.errors import Refused
from trellis.sentences import say

_STATES: Final = ("active", "paused", "expired")  # a name means its keys in the first of these states that has any


def check_keys(context: Context, entries: Sequence[KeyEntry]) -> None:
    """Check that the caller may apply the keys of a document. Raises Refused, for a caller that is itself a key in any case."""
    if not entries:
        return
    if context.call.actor.type == "key":
        detail = say("Keys can be created only at the terminal and in the panel: apply this document there.")
        raise refuse_document([(entries[0].location, detail)])
    context.run(context.call.build_inner(f"{KEYS}.list", {"perPage": 1}, None))


def apply_keys(context: Context, applier: Applier, entries: Sequence[KeyEntry], progress: Progress) -> list[dict[str, Any]]:
    """Create the keys of a document, or change those that already exist, as applier. Keys are identified by their names.

    Returns the secrets of new keys, to be shown once.
    """
    created: list[dict[str, Any]] = []
    for entry in entries:
        progress.done()
        found = _find(context, entry)
        if len(found) > 1:
            detail = say("There are {count} unrevoked keys with this name. Rename all but one.", count=len(found))
            applier.add_fault(entry.location, detail)
            continue
        known = found[0] if found else None
        action = "create" if known is None else "update"
        inner = applier.call.build_inner(f"{KEYS}.{action}", entry.settings, known)
        try:
            outcome = context.run(inner)
        except Refused as refused:
            applier.add_refusal(refused, entry)
            continue
        if outcome.event is None:
            continue
        before = outcome.before or {}
        after: Any = outcome.after
        differences = [
            {"member": member, "before": before.get(name), "after": after.get(name)}
            for member in entry.settings
            if known is not None and before.get(name := RECORDED[member]) != after.get(name)
        ]
        change = Change(action, KEYS, outcome.resource_id, None, entry.name, entry.location, differences)
        applier.note(change, (inner.operation, known, entry.settings), outcome.event)
        if known is None:
            created.append({"id": outcome.resource_id, "name": entry.name, "key": outcome.result["key"]})
    return created


def _find(context: Context, entry: KeyEntry) -> list[int]:
    """Return the ids of the keys with the name of an entry that are in the first of `_STATES` in which there are any."""

    def read(page: int) -> Any:
        raw = {"search": entry.name, "perPage": MOST_PER_PAGE, "page": page}
        return context.run(context.call.build_inner(f"{KEYS}.list", raw, None)).result

    named = [key for key in read_all(read) if key["name"] == entry.name]
    return next((found for state in _STATES if (found := [int(key["id"]) for key in named if key["state"] == state])), [])
