"""The API keys that a document has: made or changed, never revoked. Only at the terminal and in the panel."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from trellis.core.operation import Call, Context
from trellis.core.structure.changes import Change
from trellis.core.structure.document import KEYS, refuse_document
from trellis.core.structure.entries import KeyEntry
from trellis.errors import Refused
from trellis.sentences import say

_MOST: Final = 1000  # keys that are looked through for those with a name
_ALIVE: Final = "active"
_RECORDED: Final = {"expires": "expiresAt"}  # settings that a record has under another name


class KeyChange(NamedTuple):
    """A key that was made or changed: the operation's name, target and input, the event, and the new secret, to be shown once."""

    change: Change
    request: tuple[str, int | None, Mapping[str, Any]]
    event: int
    secret: dict[str, Any] | None


def apply_keys(context: Context, call: Call, entries: Sequence[KeyEntry]) -> Iterator[KeyChange]:
    """Make the keys of a document, and change those that there are; which one it is says the name. Raises Refused."""
    if not entries:
        return
    if context.call.actor.type == "key":
        raise refuse_document(
            [(entries[0].place, "Keys can be created only at the terminal and in the panel: apply this document there.")]
        )
    for entry in entries:
        known = _find(context, entry)
        inner = call.build_inner(f"{KEYS}.{'create' if known is None else 'update'}", entry.settings, known)
        try:
            outcome = context.run(inner)
        except Refused as refused:
            raise refuse_document([(entry.place, refused.detail)]) from None
        if outcome.event is None:
            continue
        before = outcome.before or {}
        after: Any = outcome.after
        differences = [
            {"member": member, "before": before.get(name), "after": after.get(name)}
            for member in entry.settings
            if known is not None and before.get(name := _RECORDED.get(member, member)) != after.get(name)
        ]
        action = "create" if known is None else "update"
        change = Change(action, KEYS, outcome.resource_id, None, entry.name, entry.place, differences)
        secret = {"id": outcome.resource_id, "name": entry.name, "key": outcome.result["key"]} if known is None else None
        yield KeyChange(change, (inner.operation, known, entry.settings), outcome.event, secret)


def _find(context: Context, entry: KeyEntry) -> int | None:
    """Return the id of the key with a name; None if there is none. Raises Refused if there are several."""
    listing = context.call.build_inner(f"{KEYS}.list", {"search": entry.name, "state": _ALIVE, "perPage": 1000}, None)
    found = [key["id"] for key in context.run(listing).result["results"] if key["name"] == entry.name]
    if len(found) > 1:
        detail = say("There are {count} active keys with this name. Rename all but one.", count=len(found))
        raise refuse_document([(entry.place, detail)])
    return found[0] if found else None
