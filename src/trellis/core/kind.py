"""A kind of node as a declaration: its names, fields, permissions and the few rules that are its own."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from trellis.core.fields import (
    Boolean,
    Color,
    ExternalId,
    Field,
    Groups,
    Integer,
    NodeId,
    Nullable,
    ParentId,
    Permissions,
    Text,
    Timestamp,
    Type,
)
from trellis.core.verbs import Verb
from trellis.errors import Fault
from trellis.sentences import Sentence, say

_OWN_CODES: Mapping[str, str] = {"NO_TITLE": "2"}

_INHERIT = Field(
    "inheritPermissions",
    Boolean(),
    "Whether options that a form leaves out of `permissions` take the parent's values. Without it, a form that creates something "
    "under a parent and sends `permissions` must name every option: a form cannot send an empty list, so a missing option could "
    "also mean nobody. JSON requests and updates never need it.",
    default=False,
    write_only=True,
    for_agents=False,
)

_CHILD_COUNT = Field("childCount", Integer(), "How many children it has; only with `include=childCount`.", read_only=True)

Values = Mapping[str, Any]
Rule = Callable[[Values], Iterable[Fault]]


@dataclass(frozen=True, slots=True)
class Derived:
    """A read-only member of a record, computed from its name and stored fields."""

    name: str
    type: Type
    doc: str
    compute: Callable[[str, Values], Any]


@dataclass(frozen=True, slots=True)
class Leaf:
    """The nodes of a kind that must not have children: those whose field has this value; by default none.

    `one` and `several` are what sentences call them: `a redirect`, `redirects`.
    """

    field: str = ""
    value: str = ""
    one: str = ""
    several: str = ""

    def __post_init__(self) -> None:
        for name in ("one", "several"):
            object.__setattr__(self, name, say(getattr(self, name)))


_NO_LEAF: Final = Leaf()


@dataclass(frozen=True)  # without slots: the cached properties need a __dict__
class NodeKind:
    """One kind of node.

    `name` is the resource (`forums`) and the first half of its operations' names; `singular` is the name of a single node. `path`
    is its path in the REST API, and `also` are aliases of the path. `over_rest` are the verbs that are served over REST, by default
    all; the panel and the terminal have the five standard verbs for every kind. `code` is the stem of the kind's own error codes;
    `codes` are the error codes that do not follow this pattern, by verb or message.

    `tree`: its nodes may have children. `ordered`: its nodes have a position, which callers can choose. `leaf` says which nodes
    must not have children. `prepare` adjusts the complete fields of a node before they are stored,
    and `rules` validate them; `refuses` are the messages of refusals that only its fields and rules raise. `built_in` maps the ids
    of nodes that cannot be deleted to the external ids by which structure documents name them if they have none of their own.
    `is_group`: permissions are given to its nodes. `example` is the name of a node in examples.
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
    option_titles: Mapping[str, str] = field(default_factory=dict)
    tree: bool = False
    ordered: bool = True
    also: tuple[str, ...] = ()
    over_rest: tuple[Verb, ...] | None = None
    derived: tuple[Derived, ...] = ()
    prepare: Callable[[Values], Values] = lambda fields: fields
    rules: tuple[Rule, ...] = ()
    refuses: tuple[str, ...] = ()
    example: str = ""
    leaf: Leaf = _NO_LEAF
    built_in: Mapping[int, str] = field(default_factory=dict)
    is_group: bool = False
    codes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("singular", "title"):  # they are values in sentences, which are translated
            object.__setattr__(self, name, say(getattr(self, name)))

    @cached_property
    def plural(self) -> str:
        """The name of several nodes, as written within a sentence."""
        return say(self.title.lower())

    def counted(self, count: int) -> Sentence:
        """Return a number of nodes in words: `3 forums`."""
        return say("{count:,} {noun}", count=count, noun=self.singular if count == 1 else self.plural)

    def operation(self, verb: str) -> str:
        """Return the name of one of its operations."""
        return f"{self.name}.{verb}"

    def leaf_only(self, fields: Values) -> bool:
        """Return whether a node with these fields must not have children."""
        return fields.get(self.leaf.field) == self.leaf.value

    def serves(self, wanted: Verb) -> bool:
        """Return whether a verb is served over REST."""
        return self.over_rest is None or wanted in self.over_rest

    def missing_code(self, verb: Verb) -> str:
        """Return the error code of 'no such record' for one operation."""
        return self.codes.get(verb.name) or f"1{self.code}/{verb.code}"

    def code_of(self, message: str) -> str:
        """Return the kind's own code for a refusal, or "" if it uses the code in the table of refusals."""
        suffix = _OWN_CODES.get(message)
        return self.codes.get(message) or (f"1{self.code}/{suffix}" if suffix else "")

    @cached_property
    def secrets(self) -> tuple[Field, ...]:
        """The fields that callers can set but never read."""
        return tuple(f for f in self.fields if f.write_only)

    @cached_property
    def blank(self) -> dict[str, Any]:
        """An empty record: its members, in order."""
        return dict.fromkeys(f.name for f in self.response_fields)

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """The names of its permission options, in order."""
        return tuple(self.options)

    def option_title(self, option: str) -> str:
        """Return the title of a permission option, for people."""
        return self.option_titles.get(option) or option.capitalize()

    def option_label(self, option: str) -> str:
        """Return the label of a permission option in a statement of what groups may do: `May reply`."""
        return say(f"May {self.option_title(option).lower()}")

    @cached_property
    def group_fields(self) -> tuple[Field, ...]:
        """The fields that name groups, besides the permissions."""
        return tuple(f for f in self.fields if isinstance(f.type, Groups))

    @cached_property
    def name_field(self) -> Field:
        """The field for the name, with its aliases."""
        return Field(
            "name",
            Text(255, 1, visible=True, missing="NO_TITLE"),
            f"The {self.singular}'s name, 1 to 255 characters after trimming, without control characters.",
            also=("title",),
            required=True,
            missing="NO_TITLE",
            example=self.example or f"A {self.singular}",
        )

    @cached_property
    def external_id_field(self) -> Field:
        """The field for the id of the node in another system."""
        return Field(
            "externalId",
            ExternalId(nullable=True),
            f"The id of the {self.singular} in another system: 1 to 255 visible characters, unique among the {self.title.lower()}; "
            "null if there is none.",
            brief="",
            title="Id in another system",
            seldom=True,
        )

    @cached_property
    def external_key(self) -> Field:
        """The field for the external id of the node that an operation is about."""
        doc = f"The external id of the {self.singular}."
        return replace(self.external_id_field, type=ExternalId(), doc=doc, required=True, example=f"{self.name}-7", brief=None)

    @cached_property
    def placement(self) -> tuple[Field, ...]:
        """The fields for the placement of a node."""
        parent = Field(
            "parentId",
            ParentId(),
            f'The id of the parent {self.singular}; null for the top level (also "", 0 and -1).',
            also=("parent",),
            brief="null: top level",
        )
        external_parent = Field(
            "parentExternalId",
            ExternalId(),
            f"The external id of the parent {self.singular}, instead of `parentId`.",
            write_only=True,
            for_agents=False,
        )
        place = (
            Field(
                "position",
                Integer(),
                "The position among the siblings, counted from 0. A position past the end means last.",
                example=0,
                brief="",
            ),
            *(
                Field(
                    name,
                    NodeId(),
                    f"The sibling to place the node {name}. Send at most one of position, before and after.",
                    write_only=True,
                    brief="",
                )
                for name in ("before", "after")
            ),
        )
        return ((parent, external_parent) if self.tree else ()) + (place if self.ordered else ())

    @cached_property
    def permissions_field(self) -> tuple[Field, ...]:
        """The fields for permissions and for copying them; none for a kind without options."""
        if not self.options:
            return ()
        return (
            Field(
                "permissions",
                Permissions(self.options, external=True),
                'Who may do what: for each option, "*" (every group) or a list of groups, by id or as `{"externalId": "mods"}`. '
                "On create, an option that is left out becomes "
                + ("the parent's value, or [] (nobody) at the top level" if self.tree else "[] (nobody)")
                + "; on update, it keeps its value."
                + (" A form cannot send an empty list; there, `permissions[view]=` means nobody." if self.tree else ""),
                example={next(iter(self.options)): "*"},
            ),
            Field(
                "copyPermissionsFrom",
                NodeId(),
                f"The {self.singular} to copy permissions from. Options in `permissions` take precedence.",
                write_only=True,
            ),
            *((_INHERIT,) if self.tree else ()),
        )

    @cached_property
    def response_fields(self) -> tuple[Field, ...]:
        """The fields of a record, in order."""
        place = tuple(f for f in self.placement if not f.write_only)
        path = Field(
            "path",
            Text(100_000),
            "The names from the top level down to the node, joined by ' > '.",
            read_only=True,
            example="A > B",
        )
        return (
            Field("id", NodeId(), "Its id, never reused after a delete.", read_only=True, example=1),
            self.name_field,
            Field("url", Text(4096), "The node's address in the community.", read_only=True),
            self.external_id_field,
            Field(
                "managedBy",
                Nullable(Text(100)),
                "The name of the structure document that manages the node. Changes made by hand are reverted when the document "
                "is applied.",
                read_only=True,
            ),
            *place,
            *((path,) if self.tree else ()),
            *(replace(f, type=Color(kept=True)) if isinstance(f.type, Color) else f for f in self.fields if not f.write_only),
            *(Field(d.name, d.type, d.doc, read_only=True) for d in self.derived),
            *(replace(f, type=Permissions(self.options)) for f in self.permissions_field if not f.write_only),
            Field("createdAt", Timestamp(), "When it was created.", read_only=True),
            Field(
                "updatedAt",
                Timestamp(),
                "When it was last changed. A shift caused by siblings does not count.",
                read_only=True,
            ),
        )

    @property
    def included(self) -> tuple[Field, ...]:
        """The fields that the records of a list have only if they are asked for."""
        return (_CHILD_COUNT,) if self.tree else ()

    @cached_property
    def accepted(self) -> tuple[Field, ...]:
        """The fields that create and update accept: the writable ones, and the read-only ones, which they ignore."""
        readable = tuple(f for f in (*self.response_fields, *self.included) if f.read_only)
        writable = (
            self.name_field,
            self.external_id_field,
            *self.placement,
            *(replace(f, type=Groups(external=True)) if f in self.group_fields else f for f in self.fields if not f.read_only),
            *self.permissions_field,
        )
        return writable + readable
