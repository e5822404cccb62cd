"""A kind of node as a declaration: its names, fields, permissions and the few rules that are its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trellis.core.fields import Field, Groups, Integer, NodeId, ParentId, Permissions, Text, Timestamp, Type
from trellis.core.verbs import Verb
from trellis.errors import Fault

_OWN_CODES: Mapping[str, str] = {"NO_TITLE": "2"}

Values = Mapping[str, Any]
Rule = Callable[[Values], Iterable[Fault]]


@dataclass(frozen=True, slots=True)
class Derived:
    """A read-only member of a record that is worked out from its name and stored fields."""

    name: str
    type: Type
    doc: str
    compute: Callable[[str, Values], Any]


@dataclass(frozen=True)  # without slots: the cached properties need a __dict__
class NodeKind:
    """One kind of node.

    `name` is the resource (`forums`) and the first half of its operations' names; `singular` is what one of them is called.
    `path` is where the REST API serves it, `also` other paths that mean the same. `over_rest` are the verbs that are served
    there, by default all that there are; the panel and the terminal have the five standard ones of every kind. `code` is the
    stem of its own error codes, `codes` are those that do not follow from it, by verb or message.

    `tree`: its nodes may have children. `ordered`: its position is told and can be chosen. `leaf_only` says of which stored
    fields a node must not have children. `prepare` settles the complete fields of a node before it is kept, `rules` judge
    them; `refuses` are messages of refusals that only its fields and rules have. `built_in` are the ids that cannot be deleted.
    `is_group`: its nodes are whom permissions are given to. `example` is a name for examples.
    """

    name: str
    singular: str
    title: str
    application: str
    path: str
    doc: str
    code: str
    fields: tuple[Field, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    tree: bool = False
    ordered: bool = True
    also: tuple[str, ...] = ()
    over_rest: tuple[Verb, ...] | None = None
    derived: tuple[Derived, ...] = ()
    prepare: Callable[[Values], Values] = lambda fields: fields
    rules: tuple[Rule, ...] = ()
    refuses: tuple[str, ...] = ()
    example: str = ""
    leaf_only: Callable[[Values], bool] = lambda _: False
    built_in: frozenset[int] = frozenset()
    is_group: bool = False
    codes: Mapping[str, str] = field(default_factory=dict)

    def operation(self, verb: str) -> str:
        """Name one of its operations."""
        return f"{self.name}.{verb}"

    def serves(self, wanted: Verb) -> bool:
        """Say whether a verb is served over REST."""
        return self.over_rest is None or wanted in self.over_rest

    def missing_code(self, verb: Verb) -> str:
        """Give the code of 'no such record' for one operation."""
        return self.codes.get(verb.name) or f"1{self.code}/{verb.code}"

    def code_of(self, message: str) -> str:
        """Give its own code of a refusal, or "" where that of the table holds."""
        suffix = _OWN_CODES.get(message)
        return self.codes.get(message) or (f"1{self.code}/{suffix}" if suffix else "")

    @cached_property
    def secrets(self) -> tuple[Field, ...]:
        """The fields that callers set and never read."""
        return tuple(f for f in self.fields if f.write_only)

    @cached_property
    def readable(self) -> tuple[str, ...]:
        """The names of its own fields that stand in a record."""
        return tuple(f.name for f in self.fields if not f.write_only)

    @cached_property
    def blank(self) -> dict[str, Any]:
        """A record with nothing in it: its members, in their order."""
        tree = ("parentId",) if self.tree else ()
        place = ("position",) if self.ordered else ()
        way = ("path",) if self.tree else ()
        permissions = ("permissions",) if self.options else ()
        derived = tuple(d.name for d in self.derived)
        names = ("id", "name", "url", *tree, *place, *way, *self.readable, *derived, *permissions, "createdAt", "updatedAt")
        return dict.fromkeys(names)

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """The names of its permission options, in their order."""
        return tuple(self.options)

    @cached_property
    def group_fields(self) -> tuple[Field, ...]:
        """The fields that name groups, beside the permissions."""
        return tuple(f for f in self.fields if isinstance(f.type, Groups))

    @cached_property
    def name_field(self) -> Field:
        """The name, and as which other names it is accepted."""
        return Field(
            "name",
            Text(255, 1, missing="NO_TITLE"),
            f"The {self.singular}'s name, 1 to 255 characters after trimming, without control characters.",
            also=("title",),
            required=True,
            missing="NO_TITLE",
            example=self.example or f"A {self.singular}",
        )

    @cached_property
    def placement(self) -> tuple[Field, ...]:
        """The fields that say where a node stands."""
        parent = Field(
            "parentId",
            ParentId(),
            f'The {self.singular} that it stands under; null for the top level (also "", 0 and -1).',
            also=("parent",),
        )
        place = (
            Field(
                "position",
                Integer(),
                "Its place among its siblings, counted from 0. Past the end means last.",
                example=0,
            ),
            Field(
                "before",
                NodeId(),
                "Put it before this sibling. At most one of position, before, after.",
                write_only=True,
            ),
            Field("after", NodeId(), "Put it after this sibling. At most one of position, before, after.", write_only=True),
        )
        return ((parent,) if self.tree else ()) + (place if self.ordered else ())

    @cached_property
    def permissions_field(self) -> tuple[Field, ...]:
        """The permissions, and from where they may be copied; nothing for a kind without options."""
        if not self.options:
            return ()
        return (
            Field(
                "permissions",
                Permissions(self.options),
                'Who may do what: for each option "*" (every group) or a list of group ids. An option left out on create is '
                + ("the parent's value, or [] (nobody) at the top level" if self.tree else "[] (nobody)")
                + "; on update it stays as it is.",
                example={next(iter(self.options)): "*"},
            ),
            Field(
                "copyPermissionsFrom",
                NodeId(),
                f"Take the permissions of this {self.singular}; options in `permissions` go before them.",
                write_only=True,
            ),
        )

    @cached_property
    def answered(self) -> tuple[Field, ...]:
        """What stands in a record, in its order."""
        place = tuple(f for f in self.placement if not f.write_only)
        path = Field(
            "path",
            Text(100_000),
            "The names from the top level down to it, with ' > ' between.",
            read_only=True,
            example="A > B",
        )
        return (
            Field("id", NodeId(), "Its id, never used again after a delete.", read_only=True, example=1),
            self.name_field,
            Field("url", Text(4096), "Its address in the community.", read_only=True),
            *place,
            *((path,) if self.tree else ()),
            *(f for f in self.fields if not f.write_only),
            *(Field(d.name, d.type, d.doc, read_only=True) for d in self.derived),
            *(f for f in self.permissions_field if not f.write_only),
            Field("createdAt", Timestamp(), "When it was made.", read_only=True),
            Field(
                "updatedAt",
                Timestamp(),
                "When it was last changed; a shift among siblings does not count.",
                read_only=True,
            ),
        )

    @cached_property
    def accepted(self) -> tuple[Field, ...]:
        """What create and update take: everything writable, and the read-only members, which are passed over."""
        readable = tuple(f for f in self.answered if f.read_only)
        writable = (
            self.name_field,
            *self.placement,
            *(f for f in self.fields if not f.read_only),
            *self.permissions_field,
        )
        return writable + readable
