"""The operation that exports the structure of the community as a document."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from trellis.core.bounds import Reach
from trellis.core.fields import EVERYONE, Choice, ExternalId, Field, Text, TextList
from trellis.core.kind import NodeKind
from trellis.core.nodes import DEEPEST, slug
from trellis.core.operation import Access, Basis, Context, Operation, Outcome, RawText
from trellis.core.structure.document import FORMAT
from trellis.core.structure.reach import find_section_reach, find_under, tell_no_such
from trellis.core.structure.text import write_yaml
from trellis.core.verbs import LIST, Response, Verb
from trellis.errors import Refused, refuse_fault
from trellis.refusals import with_codes
from trellis.sentences import say, say_many
from trellis.store import events, nodes
from trellis.store.nodes import Node

_MOST: Final = 10_000  # nodes in one document
_LONGEST_PATH: Final = 240  # characters of an external id that is made from a path, without the number added to it
PATH: Final = "/core/structure"
SCHEMA_PATH: Final = "/api/structure.schema.json"
EXPORT: Final = Verb(
    name="export",
    method="GET",
    response=Response.ANSWER,
    answer="The document. With `format=yaml` it is text of the type `application/yaml`.",
)
_SECTIONS: Final = Field(
    "sections", TextList(least=1), "The sections to write, such as forums. The default is all that the key may list."
)
_UNDER: Final = Field("under", ExternalId(), "Only what is below the node with this external id; needs one section, of a tree.")
_MISSING: Final = Field(
    "externalIds",
    Choice({"path": "Make them of the names on the way to the node.", "fail": "Refuse."}),
    "What to do with nodes that have no external id: `path` writes one such as `news.archive`, `fail` refuses the export.",
    default="path",
)
_FORMAT: Final = Field("format", Choice({"json": "JSON.", "yaml": "YAML."}), "How to write it.", default="json")
_YAML: Final = "application/yaml"


def operation(kinds: Sequence[NodeKind]) -> Operation:
    """Return the operation `structure.export`."""
    return Operation(
        name="structure.export",
        summary="Export the structure",
        doc="Returns the groups, the nodes and their order as one document for `structure.plan` and `structure.apply`. It contains "
        "no ids and no passwords. The sections are those asked for, or all that the key may list and that are not empty. At most "
        f"{_MOST:,} nodes, with at most {nodes.MOST_BYTES >> 20} MiB of text, are written at once.",
        run=partial(_export, kinds),
        fields=(_SECTIONS, _UNDER, _MISSING, _FORMAT),
        access=Access(Basis.GRANTED, reads_nodes=True, uses=tuple(kind.operation(LIST.name) for kind in kinds)),
        verb=EXPORT,
        path=PATH,
        refusals=with_codes("TREE_TOO_LARGE", "INVALID_VALUE"),
        response_fields=(
            Field("format", Text(), f"The format of the document: `{FORMAT}`.", example=FORMAT),
            Field("name", Text(), "Its name, which is the `managedBy` of the nodes that it manages.", example="community"),
        ),
        slow=True,
        varies=True,
        text_type=_YAML,
    )


def _export(kinds: Sequence[NodeKind], context: Context) -> Outcome:
    given = context.input
    chosen, left_out = _choose_sections(kinds, context)
    exporter = _Exporter(context)
    under = given.get(_UNDER.name)
    if under is not None and (len(chosen) != 1 or not chosen[0].tree):
        raise refuse_fault(_UNDER.name, "INVALID_VALUE", say("under needs exactly one section, of a kind that is a tree."))
    document: dict[str, Any] = {"format": FORMAT, "name": slug(context.environment.community_name) or "community"}
    if under is not None:
        document["under"] = under
    if under is None and len(chosen) == 1:
        under = exporter.find_only_root(chosen[0])
        document |= {} if under is None else {"under": under}
    sections = {kind.name: exporter.write_section(kind, under) for kind in chosen}
    document["name"] = exporter.find_manager() or document["name"]
    document |= {name: entries for name, entries in sections.items() if entries or given.get(_SECTIONS.name)}
    if given.get(_FORMAT.name, _FORMAT.default) == "json":
        return Outcome(document)
    revision = events.find_newest_number(context.tx)
    served_at = context.environment.public_url
    comments = [
        *([f"yaml-language-server: $schema={served_at}{SCHEMA_PATH}"] if served_at is not None else []),
        f"{context.environment.community_name}, {context.environment.community_url}, revision {revision}, {context.now}",
        *(f"The section {kind.name} is left out: the caller may not list it." for kind in left_out),
    ]
    return Outcome(RawText(write_yaml(document, comments), _YAML))


def _choose_sections(kinds: Sequence[NodeKind], context: Context) -> tuple[list[NodeKind], list[NodeKind]]:
    """Return the kinds to write, and the kinds that are left out because the caller may not list them. Raises Refused."""
    actor, wanted = context.call.actor, context.input.get(_SECTIONS.name)
    known = {kind.name for kind in kinds}
    if unknown := [name for name in wanted or () if name not in known]:
        detail = say(
            "sections: there is no section '{unknown}'; there are {names}.", unknown=unknown[0], names=", ".join(sorted(known))
        )
        raise refuse_fault(_SECTIONS.name, "INVALID_VALUE", detail)
    may = [kind for kind in kinds if actor.may_at(kind.operation(LIST.name), context.now)]
    chosen = [kind for kind in kinds if kind.name in wanted] if wanted else may
    naming = any(kind.options or kind.group_fields for kind in chosen)
    groups = context.environment.group_kind
    needed = [*chosen, groups] if naming and groups is not None else chosen
    for kind in needed if wanted or chosen else kinds[:1]:  # the gate judges each as if it were listed
        context.run(context.call.build_inner(kind.operation(LIST.name), {"perPage": 1}, None))
    return chosen, [] if wanted else [kind for kind in kinds if kind not in may]


class _Exporter:
    """Writes sections. Keeps the external ids of the groups, by which permissions name them.

    Groups that the caller may not list are not named: what names them is refused, since leaving them out would change its meaning.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._missing = context.input.get(_MISSING.name, _MISSING.default)
        self._room = nodes.Room(_MOST)
        self._groups: dict[int, str] = {}
        self._managers: set[str] = set()
        self._hidden: set[int] = set()
        self._group_reach: Reach | None = None
        groups = context.environment.group_kind
        if groups is not None:
            found = nodes.find_all(context.tx, groups.name)
            self._group_reach = context.find_reach(groups, groups.operation(LIST.name))
            if self._group_reach is not None:
                self._hidden = {node.id for node in found}.difference(self._group_reach.roots)
            self._groups = self._find_external_ids(groups, [node for node in found if node.id not in self._hidden])

    def find_manager(self) -> str | None:
        """Return the name of the document that manages the exported nodes; None if no document does, or more than one."""
        return next(iter(self._managers)) if len(self._managers) == 1 else None

    def write_section(self, kind: NodeKind, under: str | None) -> list[dict[str, Any]]:
        """Write all nodes of a kind, or those below a node, in order.

        Raises Refused (TREE_TOO_LARGE, INVALID_VALUE, OUT_OF_BOUNDS).
        """
        tx, reach = self._context.tx, find_section_reach(self._context, kind)
        if reach is not None and kind.tree and under is None:
            raise reach.refuse(say("Send only this section, and set under to the external id of a node there."))
        root = self._find_root(kind, under, reach)
        tops = reach.roots if reach is not None and not kind.tree else None
        try:
            found = nodes.find_tree(tx, kind.name, root, DEEPEST + 1, self._room, tops)
        except nodes.TooMuch as much:
            raise _refuse_size(much) from None
        external_ids = self._groups if kind.is_group else self._find_external_ids(kind, found)
        children: dict[int | None, list[dict[str, Any]]] = {root: []}
        levels: dict[int | None, int] = {root: 0}
        for node in found:  # parents come before their children
            levels[node.id] = levels[node.parent_id] + 1
            if levels[node.id] > DEEPEST:
                raise Refused(
                    "TREE_TOO_LARGE",
                    say("There are more than {deepest} levels. Send under (--under) to get a part of them.", deepest=DEEPEST),
                )
            entry = self._write_entry(kind, node, external_ids[node.id])
            children[node.parent_id].append(entry)
            if kind.tree:
                children[node.id] = []
                entry["children"] = children[node.id]
        if not kind.ordered:
            children[root].sort(key=lambda entry: str(entry["externalId"]))
        for entries in children.values():
            for entry in entries:
                if not entry.get("children", True):
                    del entry["children"]
        return children[root]

    def find_only_root(self, kind: NodeKind) -> str | None:
        """Return the external id of the node below which the call may export a tree; None unless it is limited to exactly one."""
        reach = find_section_reach(self._context, kind)
        tops = nodes.find_tops(self._context.tx, kind.name, reach.roots) if reach is not None and kind.tree else []
        root = nodes.find(self._context.tx, kind.name, tops[0]) if len(tops) == 1 else None
        return None if root is None else root.external_id

    def _find_root(self, kind: NodeKind, under: str | None, reach: Reach | None) -> int | None:
        if under is None:
            return None
        root = find_under(self._context, kind, under, reach)
        if root is None:
            raise refuse_fault(_UNDER.name, "INVALID_VALUE", tell_no_such(kind, under))
        return root

    def _write_entry(self, kind: NodeKind, node: Node, external_id: str) -> dict[str, Any]:
        if node.managed_by is not None:
            self._managers.add(node.managed_by)
        entry: dict[str, Any] = {"externalId": external_id, "name": node.name}
        own = {f.name for f in kind.group_fields}
        for f in kind.fields:
            if not (f.read_only or f.write_only):
                value = node.fields.get(f.name, f.default)
                entry[f.name] = self._name_groups(value) if f.name in own else value
        if kind.options:
            entry["permissions"] = {option: self._name_groups(node.permissions.get(option, [])) for option in kind.options}
        return entry

    def _name_groups(self, who: Any) -> Any:
        if self._group_reach is not None and who != EVERYONE and not self._hidden.isdisjoint(who):
            raise self._group_reach.refuse(say("Permissions in this part of the structure name other groups."))
        return who if who == EVERYONE else sorted(self._groups[group] for group in who if group in self._groups)

    def _find_external_ids(self, kind: NodeKind, found: Sequence[Node]) -> dict[int, str]:
        """Return the external ids of nodes, by id. Nodes that have none get one made from their path, or are refused."""
        external_ids = {node.id: node.external_id or kind.built_in.get(node.id) for node in found}
        taken = {*(external_id for external_id in external_ids.values() if external_id is not None), *kind.built_in.values()}
        without = [node for node in found if external_ids[node.id] is None]
        if without and self._missing == "fail":
            named = ", ".join(f"{kind.singular} {node.id} ('{node.name}')" for node in without[:20])
            detail = say_many(
                len(without),
                "{count:,} {noun} has no external id: {named}{value}.",
                "{count:,} {noun} have no external id: {named}{value}.",
                noun=kind.singular if len(without) == 1 else kind.plural,
                named=named,
                value=", …" if len(without) > 20 else "",
            )
            raise refuse_fault(_MISSING.name, "INVALID_VALUE", detail)
        paths: dict[int | None, str] = {}
        for node in found:
            own = slug(node.name) or f"{slug(kind.singular)}-{node.id}"
            paths[node.id] = (f"{paths[node.parent_id]}.{own}" if paths.get(node.parent_id) else own)[-_LONGEST_PATH:]
        return {number: one for number, one in external_ids.items() if one is not None} | self._make_external_ids(
            kind, {node.id: paths[node.id] for node in without}, taken
        )

    def _make_external_ids(self, kind: NodeKind, paths: Mapping[int, str], taken: set[str]) -> dict[int, str]:
        """Make external ids from paths. None is in `taken`, or belongs to another node of the kind, even outside of the export."""
        free = {path: _number(path) for path in paths.values()}
        made: dict[int, str] = {}
        waiting = [*paths]
        while waiting:
            for node in waiting:
                made[node] = next(one for one in free[paths[node]] if one not in taken)
                taken.add(made[node])
            elsewhere = nodes.find_by_external_ids(self._context.tx, kind.name, (made[node] for node in waiting))
            waiting = [node for node in waiting if made[node] in elsewhere]
        return made


def _number(path: str) -> Iterator[str]:
    path = path.lstrip(".")
    yield path
    yield from (f"{path}-{number}" for number in count(2))


def _refuse_size(much: nodes.TooMuch) -> Refused:
    many = say(
        "There are more than {most:,} nodes. Ask for fewer sections (--section), or send under (--under) to get what is below one "
        "node.",
        most=_MOST,
    )
    large = say(
        "The nodes have more than {mib} MiB of text. Ask for fewer sections (--section), or send under (--under) to get what is "
        "below one node.",
        mib=much.mib,
    )
    return Refused("TREE_TOO_LARGE", many if much.mib is None else large)
