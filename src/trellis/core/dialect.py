"""Dialects: the names and shapes that a key may have in place of our own, declared kind by kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

TRELLIS: Final = "trellis"
INVISION: Final = "invision"
DIALECTS: Final[Mapping[str, str]] = MappingProxyType(
    {TRELLIS: "The native dialect.", INVISION: "For clients of Invision Community 4, which work unchanged."}
)

Record = Mapping[str, Any]
Who = str | Sequence[int]  # "*" for every group, or ids
FindGroups = Callable[[Who], list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an answer. `compute` makes it from our own record; groups that this names are found as the dialect shows them.

    `schema` is its JSON Schema, and `doc` describes it.
    """

    name: str
    schema: Mapping[str, Any]
    doc: str
    compute: Callable[[Record, FindGroups], Any]


def declare_copy(name: str, schema: Mapping[str, Any], doc: str) -> Member:
    """Declare a member that is in our own record under the same name."""
    return Member(name, schema, doc, lambda record, _: record[name])


def declare_constant(name: str, value: Any, schema: Mapping[str, Any], doc: str) -> Member:
    """Declare a member that is always the same."""
    return Member(name, schema, doc, lambda _, __: value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a dialect makes of one kind.

    `members` are those of a record in answers, in order. `options` are the names under which permissions may be sent, each with
    ours. `defaults` are used on create where nothing is sent, by our names; `{at}` in a text is the time of the request. `codes`
    are the error codes that differ from ours, each with the one that the dialect has for it.
    """

    members: tuple[Member, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A dialect, as one declaration for each kind; a kind without one is answered and read in our own names.

    `answers` are the members of answers that are not about nodes, in order, by operation. `statuses` are the HTTP statuses of
    refusals that differ from ours, by message, and `error_type` is the media type of errors. `clamped` are the parameters of lists
    whose values are brought within bounds, and `ignored` those that are ignored if their values are not allowed. With
    `key_in_url`, keys may be sent as `?key=`. `rules` say, sentence by sentence, what is different, and `cannot` what clients have
    to do without.
    """

    name: str
    title: str
    doc: str
    kinds: Mapping[str, Shape]
    answers: Mapping[str, tuple[Member, ...]] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    clamped: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    key_in_url: bool = False
    error_type: str
    rules: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
