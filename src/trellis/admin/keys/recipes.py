"""Recipes for keys: initial settings for the form of a new key, which can be changed before it is made. Each is one row here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from trellis.admin.keys.grants import GrantGrid
from trellis.core.keys import PRESETS, SETTINGS
from trellis.sentences import say


@dataclass(frozen=True, slots=True)
class Recipe:
    """The operations that one type of program needs, and the name that its key begins with.

    `words` is its name within a sentence. A recipe that `reads_nodes` also grants the operations that read nodes, of every kind. A
    recipe with a `preset` has its name and begins with its settings, and the preset stays with the key; see core/keys/presets.py.
    """

    title: str
    words: str
    summary: str
    grants: tuple[str, ...] = ()
    name: str = ""
    preset: str = ""
    reads_nodes: bool = False

    def describe(self, grid: GrantGrid) -> dict[str, Any]:
        """Return the settings that the recipe adds to those of its preset, or of an empty form, as they are entered in the form."""
        wanted = {*self.grants, *(grid.reads_of_nodes if self.reads_nodes else ())}
        return {} if self.preset else {"name": self.name, "grants": [box.name for box in grid.boxes if box.name in wanted]}


RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        "calendar-sync": Recipe(
            say("Calendar sync"),
            say("calendar sync"),
            say(
                "For a program that keeps calendars here and elsewhere in sync: it reads groups and calendars, and "
                "creates and changes calendars. It deletes nothing."
            ),
            ("groups.list", "groups.get", "calendars.list", "calendars.get", "calendars.create", "calendars.update"),
            "Calendar sync",
        ),
        "mirror": Recipe(
            say("Mirror"),
            say("mirror"),
            say(
                "For a copy of the community elsewhere, such as a search index: it reads every part and follows the "
                "event feed, which shows all changes, including those to keys."
            ),
            ("structure.export", "events.list"),
            "Mirror",
            reads_nodes=True,
        ),
        "read-only": Recipe(
            say("Read-only"),
            say("read only"),
            say("For a program that only displays data: it reads every part of the community."),
            name="Reader",
            reads_nodes=True,
        ),
        "agent": Recipe(say("An agent"), say("agent"), PRESETS["agent"].summary, preset="agent"),
    }
)
_KEPT: Final = tuple(field.name for field in SETTINGS if field.name not in {"name", "expires"})


def describe_copy(key: Mapping[str, Any], now: str, is_grantable: Callable[[str], bool]) -> dict[str, Any]:
    """Return the settings for a copy of a key, without grants whose bounds have expired or that can no longer be granted."""
    ended = {name for name, bound in key["bounds"].items() if bound.get("until") and bound["until"] <= now}
    kept = {name: key[name] for name in _KEPT}
    kept["grants"] = [name for name in key["grants"] if name not in ended and is_grantable(name)]
    kept["bounds"] = {name: bound for name, bound in key["bounds"].items() if name in kept["grants"]}
    return kept | {"name": f"{key['name'][:90]} (copy)", "expires": "90d", "preset": key["preset"] or ""}
