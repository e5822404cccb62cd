"""Carries out a document: runs the usual operations to create, change, move and delete nodes so that the community matches it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.fields import EVERYONE, Field, Integer, isolate
from trellis.core.kind import NodeKind
from trellis.core.operation import Context, Outcome, Progress
from trellis.core.structure.applier import Applier
from trellis.core.structure.changes import NodeCall
from trellis.core.structure.document import refuse_document
from trellis.core.structure.entries import Document, NodeEntry
from trellis.core.structure.keys import apply_keys, check_keys
from trellis.core.structure.matching import MatchedSection, load_scopes, match_all
from trellis.core.structure.ordering import find_moves
from trellis.core.verbs import CREATE, DELETE, LIST
from trellis.errors import Refused
from trellis.sentences import advise, mark, mark_many, say, say_many
from trellis.store import nodes

_SHOWN: Final = 100  # names that a refusal or a report lists
MAX_DELETES: Final = Field(
    "maxDeletes", Integer(0, 1_000_000), "How many nodes may be deleted; if there would be more, nothing is done.", default=10
)
_NO_GROUP: Final = mark(
    "There is no group with the external id '{id}'. Give this id to a group, or put the group into the section groups."
)
_TOO_MANY: Final = mark_many(
    "{count:,} node would be deleted, and at most {most:,} may be: {named}.",
    "{count:,} nodes would be deleted, and at most {most:,} may be: {named}.",
)


class Run:
    """One run of a document, inside its transaction.

    `applier` runs its operations and knows what they have done; `secrets` are those of new keys. `kept` lists the nodes that the
    document does not contain and that are not to be deleted.
    """

    def __init__(self, context: Context, document: Document, actor: Actor) -> None:
        self.kept: list[tuple[NodeKind, nodes.Node]] = []
        self.secrets: list[dict[str, Any]] = []
        self.adoptable = 0
        self._context = context
        self._document = document
        self._options = context.input
        self.applier = Applier(context, context.call._replace(actor=actor, managed_by=document.name))
        self._scopes: list[MatchedSection] = []
        self._groups: dict[str, int] = {}
        self._ids: dict[NodeEntry, int] = {}
        self._deferred: list[tuple[MatchedSection, NodeEntry, dict[str, Any]]] = []
        self._progress = Progress(context.call, 0)

    def carry_out(self) -> None:
        """Do all that the document asks for. Raises Refused with all its faults; the transaction must then be rolled back."""
        self._check_reading()
        self._check_emptiness()
        self._find_nodes()
        self._check_deletes(doomed := [(scope, i) for scope in self._scopes for i in scope.doomed])
        total = sum(1 for _ in self._document.walk()) + len(self._document.keys) + len(doomed)
        self._progress = Progress(self._context.call, total)
        for scope in self._scopes:
            self._put_level(scope, scope.section.entries, scope.root)
        self.applier.finish_updates()
        self.applier.raise_faults()
        ranks = {entry.location: rank for rank, entry in enumerate(e for scope in self._scopes for e in scope.section.walk())}
        self.applier.sort_changes(lambda change: ranks[change.location] if change.location is not None else -1)
        for scope in reversed(self._scopes):  # groups are deleted last: by then, the nodes that named them have been changed
            self._delete(scope)
        for scope, entry, raw in self._deferred:
            self.applier.update(NodeCall(scope.section, entry, scope.matched[entry], raw, self._ids[entry]))
        for scope, level, parent in self._find_levels():
            self._order(scope, level, parent)
        self.applier.finish_updates()
        self.secrets += apply_keys(self._context, self.applier, self._document.keys, self._progress)
        self.applier.raise_faults()

    # --- checks before the first change ---------------------------------------------------------------------------

    def _check_reading(self) -> None:
        """Check that the caller may list the kinds and keys in the document, and groups if needed. Raises Refused."""
        kinds = {section.kind.name: section.kind for section in self._document.sections}
        groups = self._context.environment.group_kind
        if groups is not None and any(kind.options or kind.group_fields for kind in kinds.values()):
            kinds[groups.name] = groups
        for kind in kinds.values():
            self._context.run(self._context.call.build_inner(kind.operation(LIST.name), {"perPage": 1}, None))
        check_keys(self._context, self._document.keys)

    def _check_emptiness(self) -> None:
        if self._document.empty and not self._options.get("allowEmpty"):
            where = ", ".join(location.path or location.file or "the document" for location in self._document.empty)
            empty = say("There is nothing in {where}.", where=where)
            raise Refused("EMPTY_DOCUMENT", advise(empty, say("If that is intended, allow it with allowEmpty (--allow-empty).")))

    def _find_nodes(self) -> None:
        """Find the nodes and groups that the document is about. Raises Refused with all faults that are seen before any change."""
        sections = sorted(self._document.sections, key=lambda section: not section.kind.is_group)
        self._scopes = load_scopes(self._context, sections)
        faults = match_all(self._context.tx, self._scopes, self._document.name, adopt=bool(self._options.get("adopt")))
        for scope in self._scopes:
            self._ids |= {entry: node.id for entry, node in scope.matched.items()}
            self.adoptable += scope.adoptable
            own = [node.id for node in scope.missing if node.managed_by in {None, self._document.name}]
            scope.doomed = own if self._options.get("prune") else []
        for scope in self._scopes:
            if scope.root in self._find_doomed(scope.kind):
                fault = say("under: '{under}' would be deleted, since no part of the document has it.", under=scope.section.under)
                faults.append((scope.section.location, fault))
        self._find_groups()
        known = self._groups.keys() | {e.external_id for s in self._scopes if s.kind.is_group for e in s.section.walk()}
        for entry in self._document.walk():
            for name, who in entry.groups.items():
                for one in (one for one in who if who != EVERYONE and one not in known):
                    faults.append((entry.locate(name), say(_NO_GROUP, id=isolate(one))))
        if faults:
            raise refuse_document(faults)

    def _find_groups(self) -> None:
        """Find the groups that permissions may name: all within the bound of `groups.list` that have an external id and stay."""
        kind = self._context.environment.group_kind
        if kind is None:
            return
        doomed, reach = self._find_doomed(kind), self._context.find_reach(kind, kind.operation(LIST.name))
        for node in nodes.find_all(self._context.tx, kind.name):
            external_id = node.external_id or kind.built_in.get(node.id)
            if external_id is not None and node.id not in doomed and (reach is None or node.id in reach.roots):
                self._groups[external_id] = node.id
        self._groups |= {e.external_id: n.id for s in self._scopes if s.kind.is_group for e, n in s.matched.items()}

    def _find_doomed(self, kind: NodeKind) -> set[int]:
        """Return the ids of the nodes of a kind that are to be deleted, for all parts of the document together."""
        return {node for scope in self._scopes if scope.kind is kind for node in scope.doomed}

    def _check_deletes(self, doomed: list[tuple[MatchedSection, int]]) -> None:
        most = self._options.get(MAX_DELETES.name, MAX_DELETES.default)
        if len(doomed) > most:
            named = [f"{scope.kind.singular} '{isolate(scope.nodes[i].name)}'" for scope, i in doomed[:_SHOWN]]
            named += ["…"] * (len(doomed) > _SHOWN)
            too_many = say_many(len(doomed), *_TOO_MANY, most=most, named=", ".join(named))
            detail = advise(too_many, say("If that is intended, allow it with maxDeletes (--max-deletes)."))
            raise Refused("TOO_MANY_DELETES", detail, facts={"deletes": len(doomed)})

    # --- creating and changing ------------------------------------------------------------------------------------

    def _put_level(self, scope: MatchedSection, entries: list[NodeEntry], parent: int | None) -> None:
        """Make siblings and all nodes below them match their entries: adjacent new siblings together, then those below each."""
        before: int | None = None
        for is_new, group in groupby(entries, lambda entry: entry not in scope.matched):
            for run in nodes.split_into_batches([*group], nodes.AT_ONCE if is_new else 1):
                made = self._create(scope, run, parent, before) if is_new else [self._put(scope, run[0], parent, before)]
                before = next((node for node in reversed(made) if node is not None), before)
                self._progress.done(len(run))
                for entry, node in zip(run, made, strict=True):
                    if node is not None:
                        self._put_level(scope, entry.children, node)

    def _put(self, scope: MatchedSection, entry: NodeEntry, parent: int | None, before: int | None) -> int:
        """Make a node match its entry; return its id."""
        old = scope.matched[entry]
        raw = self._find_differences(scope, entry, old)
        waits = _becomes_leaf(scope, entry, old)
        if waits:
            self._deferred.append((scope, entry, raw))
            raw = {}
        if old.parent_id != parent:
            raw |= {"parentId": parent} | _place_behind(scope, parent, before)
            if old.id in scope.children.get(old.parent_id, ()):
                scope.children[old.parent_id].remove(old.id)
            _insert(scope, [old.id], parent, before)
        if raw or (old.managed_by != self._document.name and not waits):
            self.applier.update(NodeCall(scope.section, entry, old, raw, old.id, adopted=entry in scope.adopted))
        return old.id

    def _create(
        self, scope: MatchedSection, entries: Sequence[NodeEntry], parent: int | None, before: int | None
    ) -> list[int | None]:
        """Create adjacent siblings: together, or one by one if that is refused, so that each fault gets the location of its entry.

        Returns their ids, with None for each that was refused.
        """
        parents = {"parentId": parent} if scope.kind.tree else {}
        raws = [self._find_differences(scope, entry, None) | parents for entry in entries]
        raws[0] |= _place_behind(scope, parent, before)
        node_calls = [NodeCall(scope.section, entry, None, raw, None) for entry, raw in zip(entries, raws, strict=True)]
        if len(node_calls) == 1:
            outcome = self.applier.run(node_calls[0], CREATE)
            return [None] if outcome is None else self._keep_created(scope, entries, [outcome], parent, before)
        if (outcomes := self.applier.run_together(node_calls, CREATE)) is not None:
            return self._keep_created(scope, entries, outcomes, parent, before)
        made: list[int | None] = []
        for entry in entries:
            made += self._create(scope, [entry], parent, before)
            before = made[-1] or before
        return made

    def _keep_created(
        self, scope: MatchedSection, entries: Sequence[NodeEntry], outcomes: list[Outcome], parent: int | None, before: int | None
    ) -> list[int | None]:
        numbers = [int(outcome.result["id"]) for outcome in outcomes]
        created = dict(zip(entries, numbers, strict=True))
        self._ids |= created
        if scope.kind.is_group:
            self._groups |= {entry.external_id: number for entry, number in created.items()}
        _insert(scope, numbers, parent, before)
        return [*numbers]

    def _find_differences(self, scope: MatchedSection, entry: NodeEntry, old: nodes.Node | None) -> dict[str, Any]:
        """Return the members of an entry that differ from the node, in the form that the operation accepts."""
        kind = scope.kind
        current: Mapping[str, Any] = {} if old is None else {**old.fields, "name": old.name}
        secrets = {f.name for f in kind.secrets}
        raw = {n: v for n, v in entry.values.items() if old is None or n in secrets or current.get(n, ...) != v}
        permissions: dict[str, Any] = {}
        for name, who in entry.groups.items():
            option = name.removeprefix("permissions.")
            wanted = who if isinstance(who, str) else sorted(self._groups[one] for one in who if one in self._groups)
            stored = None if old is None else (old.fields if option == name else old.permissions).get(option)
            if old is None or (sorted(stored) if isinstance(stored, list) else stored) != wanted:
                (raw if option == name else permissions)[option] = wanted
        if permissions:
            raw["permissions"] = permissions
        if old is None or old.external_id != entry.external_id:
            raw["externalId"] = entry.external_id
        return raw

    # --- deleting -------------------------------------------------------------------------------------------------

    def _delete(self, scope: MatchedSection) -> None:
        kind, gone = scope.kind, self._find_doomed(scope.kind)
        self.kept += [(kind, node) for node in scope.missing if node.id not in gone]
        tops = [i for i in scope.doomed if scope.nodes[i].parent_id not in gone]
        first = len(self.applier.changes)
        together = self._delete_leaves(scope, [top for top in tops if not scope.children.get(top)])
        for top in (top for top in tops if top not in together):
            node, below = scope.nodes[top], list(scope.walk_below(top))
            kept = (scope.nodes[i] for i in below if i in scope.nodes and i not in gone)  # nodes that another document manages
            if (other := next(kept, None)) is not None:
                self.applier.add_fault(scope.section.location, _tell_managed_elsewhere(scope.kind, node, other))
                continue
            raw = {"deleteChildrenOrMove": -1} if below else {}
            if self.applier.run(NodeCall(scope.section, None, node, raw, top), DELETE) is not None:
                scope.children[node.parent_id].remove(top)
            self._progress.done(1 + len(below))
        ranks = {top: rank for rank, top in enumerate(tops)}
        self.applier.sort_changes(lambda change: ranks[change.id or 0], first)

    def _delete_leaves(self, scope: MatchedSection, leaves: list[int]) -> set[int]:
        """Delete nodes with nothing below them, a hundred at a time, and return their ids; a hundred with a refused one is left."""
        kind, gone = scope.kind, set[int]()
        for batch in () if kind.is_group else nodes.split_into_batches(leaves, nodes.AT_ONCE):
            node_calls = [NodeCall(scope.section, None, scope.nodes[leaf], {}, leaf) for leaf in batch]
            if self.applier.run_together(node_calls, DELETE) is not None:
                gone.update(batch)
                self._progress.done(len(batch))
        for parent in {scope.nodes[leaf].parent_id for leaf in gone}:
            scope.children[parent] = [node for node in scope.children[parent] if node not in gone]
        return gone

    # --- ordering -------------------------------------------------------------------------------------------------

    def _order(self, scope: MatchedSection, level: list[NodeEntry], parent: int | None) -> None:
        """Put siblings into the order of the document; siblings that it does not contain follow in their present order."""
        entries = {self._ids[entry]: entry for entry in level if entry in self._ids}
        now, wanted = scope.children[parent], [*entries]
        if now[: len(wanted)] == wanted:
            return
        for node, before in find_moves(now, [*wanted, *(i for i in now if i not in entries)]):
            raw = {"position": 0} if before is None else {"after": before}
            self.applier.update(NodeCall(scope.section, entries.get(node), scope.nodes.get(node), raw, node))

    def _find_levels(self) -> list[tuple[MatchedSection, list[NodeEntry], int | None]]:
        """Return the siblings of ordered kinds with their parent; siblings from several parts of the document are joined."""
        levels: dict[tuple[str, int | None], tuple[MatchedSection, list[NodeEntry], int | None]] = {}
        for scope in self._scopes:
            below = [(entry.children, self._ids[entry]) for entry in scope.section.walk() if entry.children and entry in self._ids]
            for level, parent in [(scope.section.entries, scope.root), *below] if scope.kind.ordered else ():
                levels.setdefault((scope.kind.name, parent), (scope, [], parent))[1].extend(level)
        return [*levels.values()]


def _tell_managed_elsewhere(kind: NodeKind, node: nodes.Node, other: nodes.Node) -> str:
    return say(
        "{node} is to be deleted, but '{name}' ({id}) below it is managed by the document '{document}'.",
        node=say("'{name}' ({singular} {id})", name=isolate(node.name), singular=kind.singular, id=node.id),
        name=isolate(other.name),
        id=other.id,
        document=other.managed_by,
    )


def _insert(scope: MatchedSection, numbers: list[int], parent: int | None, before: int | None) -> None:
    siblings = scope.children[parent]
    is_last = not siblings or siblings[-1] == before
    at = len(siblings) if is_last else 0 if before is None else siblings.index(before) + 1
    siblings[at:at] = numbers


def _place_behind(scope: MatchedSection, parent: int | None, before: int | None) -> dict[str, Any]:
    """Return where to put a node that is new under a parent: behind its predecessor in the document, or first if it has none."""
    siblings = scope.children.get(parent, ())
    if not scope.kind.ordered or not siblings or siblings[-1] == before:
        return {}
    return {"position": 0} if before is None else {"after": before}


def _becomes_leaf(scope: MatchedSection, entry: NodeEntry, old: nodes.Node) -> bool:
    """Return whether a node with children is to become one that must not have any. That has to wait until the children are gone."""
    wanted = {**old.fields, **entry.values}
    return bool(scope.children.get(old.id)) and scope.kind.leaf_only(wanted) and not scope.kind.leaf_only(old.fields)
