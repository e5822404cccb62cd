"""What undoing a change of a key would do, from a dry run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from trellis.admin.events import MemberChange, compare_states
from trellis.admin.nodes import fetch_groups
from trellis.admin.page import PageRequest
from trellis.admin.times import Clock
from trellis.admin.undo.plan import RESTORE
from trellis.core.events import changed_members
from trellis.core.keys import is_key_widened, list_bounds
from trellis.core.version import compute_version

KEYS: Final = "keys"
_HIDDEN: Final = frozenset({"state", "lastUsedAt"})


@dataclass(frozen=True, slots=True)
class KeyPlan:
    """What undo would change in a key. `record` is the key as it is now. `widens`: the key may do more afterwards.

    `version` changes with anything that the page shows.
    """

    record: Mapping[str, Any]
    changes: tuple[MemberChange, ...]
    widens: bool
    version: str


async def plan_undo_of_key(request: PageRequest, event: Mapping[str, Any]) -> KeyPlan:
    """Return the plan from a dry run of undo. Raises Refused as undo itself would."""
    planned = (await request.dry_run(RESTORE, target=event["seq"]))["record"]
    now = await request.fetch("keys.get", target=event["resourceId"])
    names = [name for name in changed_members(now, planned) if name not in _HIDDEN]
    states = [{name: state[name] for name in names} for state in (now, planned)]
    return KeyPlan(
        now,
        compare_states(names, _shown(now, request.clock), _shown(planned, request.clock), None, await fetch_groups(request)),
        is_key_widened(now, planned),
        compute_version(orjson.dumps(states, option=orjson.OPT_SORT_KEYS)),
    )


def _shown(key: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Return a key with its bounds in words."""
    return {**key, "bounds": list_bounds(key["bounds"], clock.short)}
