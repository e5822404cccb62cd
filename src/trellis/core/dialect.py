"""Dialects: the names and shapes that the requests and responses of a key may have in place of our own, declared kind by kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
class DialectMember:
    """A member of a response. `schema` is its JSON Schema, and `doc` describes it.

    `compute` makes its value from our own record, and from a function that returns groups as the dialect shows them.
    """

    name: str
    schema: Mapping[str, Any]
    doc: str
    compute: Callable[[Record, FindGroups], Any]


def declare_copy(name: str, schema: Mapping[str, Any], doc: str) -> DialectMember:
    """Declare a member that our own record has under the same name."""
    return DialectMember(name, schema, doc, lambda record, _: record[name])


def declare_constant(name: str, value: Any, schema: Mapping[str, Any], doc: str) -> DialectMember:
    """Declare a member whose value is always the same."""
    return DialectMember(name, schema, doc, lambda _, __: value)


def serialize_record(members: Iterable[DialectMember], record: Record, find_groups: FindGroups) -> dict[str, Any]:
    """Return one of our records with these members in place of ours."""
    return {member.name: member.compute(record, find_groups) for member in members}


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectKind:
    """A kind of node in a dialect: its names and the members of its records.

    `members` are the members of a record in responses, in order. `options` maps the names under which permissions may be sent to
    our names. `defaults` are used on create for fields that are not sent, by our names; `{at}` in a text is the time of the
    request. `codes` maps our error codes to the dialect's where they differ.
    """

    members: tuple[DialectMember, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A dialect, as one declaration for each kind. Requests and responses for a kind without a declaration use our own names.

    `answers` are the members of responses that are not about nodes, in order, by operation. `statuses` are the HTTP statuses of
    refusals that differ from ours, by message, and `error_type` is the media type of errors. `clamped` are the list parameters
    whose values are clamped to the allowed range, and `ignored` the list parameters that are ignored if their values are not
    allowed. With `key_in_url`, keys may be sent as `?key=`. `rules` describe what is different, in a sentence each, and `cannot`
    what clients have to do without.
    """

    name: str
    title: str
    doc: str
    kinds: Mapping[str, DialectKind]
    answers: Mapping[str, tuple[DialectMember, ...]] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    clamped: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    key_in_url: bool = False
    error_type: str
    rules: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
