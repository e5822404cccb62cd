"""The operations that pause a key or all keys of a preset, and the one that resumes a key."""

from dataclasses import replace
from typing import Any, Final

from trellis.core.keys.crud import find_unrevoked, save_key
from trellis.core.keys.fields import WHY_PAUSED
from trellis.core.keys.presets import PRESET
from trellis.core.keys.secret import redact_keys
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.store import keys

_PAUSE: Final = "keys.pause"
_WHICH: Final = replace(PRESET, doc="The preset whose keys to pause.", required=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations, all for the panel and the terminal."""
    return (
        targeted_write(
            _PAUSE,
            "Pause a key",
            "Refuses every request of a key until the key is resumed. Its grants are kept, and its webhooks stay on.",
            _pause,
            (WHY_PAUSED,),
            undone_from_event=True,
        ),
        targeted_write(
            "keys.resume",
            "Resume a key",
            "Lets a paused key be used again as before.",
            _resume,
            undone_from_event=True,
        ),
        Operation(
            "keys.pause_preset",
            "Pause all keys of a preset",
            "Pauses all keys that were created with a preset, in one change set, and returns their ids. Keys that are already "
            "paused or revoked are left as they are. Each key is resumed individually.",
            _pause_preset,
            (_WHICH, WHY_PAUSED),
            writes=True,
            is_change_set=True,
        ),
    )


def _pause(context: Context) -> Outcome:
    old = find_unrevoked(context)
    if old.paused_at:
        return save_key(context, old, old)
    because = redact_keys(context.input.get(WHY_PAUSED.name, ""))
    return save_key(context, old, replace(old, paused_at=context.now, paused_because=because or None))


def _resume(context: Context) -> Outcome:
    old = find_unrevoked(context)
    return save_key(context, old, replace(old, paused_at=None, paused_because=None))


def _pause_preset(context: Context) -> Outcome:
    found = keys.find_running(context.tx, context.input.get(PRESET.name) or "")
    raw = {WHY_PAUSED.name: context.input.get(WHY_PAUSED.name) or ""}
    event = None
    for number in found:
        event = context.run(context.call.build_inner(_PAUSE, raw, number)).event
    result: dict[str, Any] = {"count": len(found), "keys": found}
    return Outcome(result, happened=False, event=event)
