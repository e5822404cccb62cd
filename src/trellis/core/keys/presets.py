"""Presets of keys: the grants, bounds and limits that a key gets if it is created with one."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final

from trellis.core.bounds import PROPOSE, Bound
from trellis.core.fields import Choice, Field, Input, Nullable
from trellis.core.operation import Operation


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a preset: it grants the operations that `applies_to` selects, with this bound."""

    applies_to: Callable[[Operation], bool]
    bound: Bound


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset: the settings of its keys. The first rule that applies to an operation decides on its grant.

    `pause` is the label of the action that pauses all its keys.
    """

    title: str
    pause: str
    summary: str
    expires: timedelta
    per_day: int
    rules: tuple[Rule, ...]

    def list_grants(self, operations: Iterable[Operation]) -> dict[str, Bound]:
        """Return the bounds of the grants that the preset gives, by operation."""
        found: dict[str, Bound] = {}
        for operation in operations:
            rule = next((rule for rule in self.rules if rule.applies_to(operation)), None)
            if rule is not None and operation.is_grantable:
                found[operation.name] = rule.bound
        return found


def _reads(operation: Operation) -> bool:
    """Return whether an operation is about nodes, and makes no lasting change."""
    return operation.can_be_limited and (operation.is_plan or not operation.writes)


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "agent": Preset(
            title="An agent",
            pause="Pause all agents",
            summary="Can read every part of the community, try out any change, propose changes for somebody else to approve, and "
            "undo what it did itself. Up to 1,000 uses a day; expires after 7 days.",
            expires=timedelta(days=7),
            per_day=1_000,
            rules=(
                Rule(lambda operation: operation.access.is_about_events, Bound(own_only=True)),
                Rule(_reads, Bound()),
                Rule(lambda operation: operation.can_be_limited, Bound(PROPOSE)),
            ),
        ),
    }
)
WORDS: Final = {name: preset.summary for name, preset in PRESETS.items()}
PRESET: Final = Field(
    "preset",
    Nullable(Choice(WORDS)),
    "The preset that provides what is not sent: grants with their bounds, the expiry and the daily limit. Bounds that are sent "
    "are added to those of the preset; grants that are sent replace its grants and get the bounds that it has for them. The "
    "preset stays with the key, so that all keys of a preset can be paused at once.",
    example="agent",
)


def describe_preset(preset: Preset, operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the settings that a preset gives, as they are entered."""
    gives = preset.list_grants(operations)
    return {
        "grants": list(gives),
        "bounds": {name: bound.serialize() for name, bound in gives.items() if bound != Bound()},
        "expires": f"{preset.expires.days}d",
        "perDay": preset.per_day,
    }


def apply_preset(given: Input, operations: Iterable[Operation]) -> Input:
    """Return the settings of a new key. Those that were not sent come from its preset, if it has one."""
    preset = PRESETS.get(given.get(PRESET.name) or "")
    if preset is None:
        return given
    gives = preset.list_grants(operations)
    grants = given.get("grants", tuple(gives))
    held = {name: bound for name, bound in gives.items() if any(fnmatchcase(name, pattern) for pattern in grants)}
    bounds = _combine_bounds({name: bound.serialize() for name, bound in held.items()}, given.get("bounds", {}))
    settings = {"grants": grants, "bounds": bounds, "expires": preset.expires, "perDay": preset.per_day}
    return Input({**settings, **given.values, "bounds": bounds}, given.faults)


def _combine_bounds(own: Mapping[str, Mapping[str, Any]], sent: Mapping[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return the bounds of a preset combined with those that were sent: null removes a bound, and members are added to it."""
    combined: dict[str, Any] = dict(sent)
    for name, bound in own.items():
        members: Mapping[str, Any] | None = bound
        for pattern, more in sent.items():
            if fnmatchcase(name, pattern):
                members = None if more is None else {**(members or {}), **more}
        combined[name] = members
    return combined
