"""The five operations that every kind of node has: list, get, create, update and delete."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from argon2 import PasswordHasher
from argon2.exceptions import VerificationError

from trellis.core.events import differing
from trellis.core.kind import NodeKind, Values, Verb
from trellis.core.operation import Access, Act, Operation, Outcome
from trellis.core.page import list_fields, page_of, query_of
from trellis.core.placement import judge_place, settle
from trellis.core.record import record, records, written
from trellis.core.tree import leaving
from trellis.core.values import EVERYONE, ChildrenFate, Field, Given, Password, invalid_id, required
from trellis.core.version import encode, version_of
from trellis.errors import REASONS, Fault, Refused, refuse_faults
from trellis.store import nodes
from trellis.store.nodes import Node

_SHOWN: Final = 1000  # ids that a plan lists; the counts are of all
_ANY: Final = "*"
# RFC 9106's low-memory profile would hold the one writer for 50 ms; this is OWASP's smallest: 19 MiB, 2 passes, 15 ms.
_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Give the five operations of a kind."""
    one, many = kind.singular, kind.title.lower()
    rows: tuple[tuple[Verb, str, str, Callable[[NodeKind, Act], Outcome], tuple[Field, ...], tuple[str, ...]], ...] = (
        ("list", f"List {many}", f"One page of the {many}. {kind.doc}", _list, list_fields(kind), ()),
        ("get", f"Get a {one}", f"One {one} by its id.", _get, (), ()),
        ("create", f"Create a {one}", f"Makes a {one}.", _create, kind.accepted, _faults_of(kind)),
        (
            "update",
            f"Change a {one}",
            f"Changes a {one}: what is not sent stays as it is. Where nothing changes, nothing is recorded."
            + (" `parentId` with at most one of `position`, `before` and `after` moves it." if kind.tree else ""),
            _update,
            kind.accepted,
            _faults_of(kind),
        ),
        ("delete", f"Delete a {one}", _delete_doc(kind), _delete, _delete_fields(kind), _delete_refusals(kind)),
    )
    return tuple(
        Operation(
            name=kind.operation(verb),
            summary=summary,
            doc=doc,
            run=partial(run, kind),
            fields=fields,
            writes=verb in {"create", "update", "delete"},
            snapshot=verb != "get",
            has_target=verb in {"get", "update", "delete"},
            access=Access.GRANTED if verb in kind.over_rest else Access.INSIDE,
            verb=verb,
            path=kind.path if verb in kind.over_rest else None,
            also=kind.also,
            kind=kind,
            refusals=_coded(kind, verb, messages),
            recode=kind.code_of,
        )
        for verb, summary, doc, run, fields, messages in rows
    )


def _faults_of(kind: NodeKind) -> tuple[str, ...]:
    place = ("INVALID_PARENT",) if kind.tree else ()
    order = ("INVALID_POSITION",) if kind.ordered else ()
    groups = ("INVALID_GROUP",) if kind.options or kind.group_fields else ()
    return ("NO_TITLE", *kind.refuses, *place, *order, *groups)


def _coded(kind: NodeKind, verb: Verb, messages: Iterable[str]) -> tuple[tuple[str, str], ...]:
    missing = (("INVALID_ID", kind.missing_code(verb)),) if verb in {"get", "update", "delete"} else ()
    return missing + tuple((message, kind.code_of(message) or REASONS[message].code) for message in messages)


# --- reading ------------------------------------------------------------------------------------------------------


def _list(kind: NodeKind, act: Act) -> Outcome:
    act.given.demand()
    query, page, per_page = query_of(kind, act.given)
    total, found = nodes.page(act.tx, kind.name, query)
    return Outcome(page_of(records(act.tx, kind, found, act.world.community_url), total, page, per_page))


def _get(kind: NodeKind, act: Act) -> Outcome:
    act.given.demand()
    found = nodes.find_with_path(act.tx, kind.name, act.call.target or 0)
    if found is None:
        raise invalid_id(kind.singular, act.call.target, kind.missing_code("get"))
    return Outcome(written(kind, found[0], found[1], act.world.community_url))


def _found(kind: NodeKind, act: Act, verb: Verb) -> Node:
    target = act.call.target or 0
    node = nodes.find(act.tx, kind.name, target)
    if node is None:
        raise invalid_id(kind.singular, target, kind.missing_code(verb))
    return node


def _seen(kind: NodeKind, act: Act, node: Node) -> dict[str, Any]:
    return record(act.tx, kind, node, act.world.community_url)


def _expect(act: Act, before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record."""
    if act.call.expected and _ANY not in act.call.expected and version_of(encode(before)) not in act.call.expected:
        raise Refused(
            "PRECONDITION_FAILED",
            "The record has changed since you read it: its ETag is not in If-Match. Get it again, and decide anew.",
        )


# --- creating and changing ----------------------------------------------------------------------------------------


def _create(kind: NodeKind, act: Act) -> Outcome:
    given = required((kind.name_field, *kind.fields), act.given, recode=kind.code_of)
    place = judge_place(act.tx, kind, given, None)
    defaults = {f.name: f.default for f in kind.fields}
    fields, faults = _settled_fields(kind, given, defaults)
    base = place.parent.permissions if place.parent is not None else {}
    permissions, wrong_groups = _settled_permissions(kind, act, given, base)
    _refuse((*given.faults, *place.faults, *faults, *wrong_groups))
    _digest_secrets(kind, given, fields, {})
    new = Node(
        id=nodes.next_number(act.tx, kind.name, more=1),
        parent_id=place.parent_id,
        position=0,
        name=given.get("name"),
        fields=fields,
        permissions=permissions,
        created_at=act.now,
        updated_at=act.now,
    )
    new = settle(act.tx, kind, new, place, new=True)
    nodes.insert(act.tx, kind.name, new)
    after = _seen(kind, act, new)
    return Outcome(after, resource_id=new.id, after=after)


def _update(kind: NodeKind, act: Act) -> Outcome:
    old = _found(kind, act, "update")
    before = _seen(kind, act, old)
    _expect(act, before)
    given = act.given
    place = judge_place(act.tx, kind, given, old)
    fields, faults = _settled_fields(kind, given, old.fields)
    permissions, wrong_groups = _settled_permissions(kind, act, given, old.permissions)
    children = _no_children_if_barren(kind, act, old, fields)
    _refuse((*given.faults, *place.faults, *faults, *wrong_groups, *children))
    changed_secrets = _digest_secrets(kind, given, fields, old.fields)
    placed = settle(act.tx, kind, old, place, new=False)
    new = replace(placed, name=given.get("name", old.name), fields=fields, permissions=permissions)
    after = _seen(kind, act, new)
    changed = differing(before, after) + changed_secrets
    if not changed:
        return Outcome(before, happened=False)
    new.updated_at = after["updatedAt"] = act.now
    nodes.update(act.tx, kind.name, new)
    return Outcome(after, resource_id=old.id, before=before, after=after, changed=changed)


def _refuse(faults: tuple[Fault, ...]) -> None:
    if faults:
        raise refuse_faults(faults)


def _settled_fields(kind: NodeKind, given: Given, base: Values) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Put what was given over what there is, and judge the whole by the kind's own rules."""
    fields = {f.name: given.get(f.name, base.get(f.name, f.default)) for f in kind.fields}
    fields = dict(kind.prepare({name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}))
    at_fault = {fault.field for fault in given.faults}
    return fields, tuple(fault for rule in kind.rules for fault in rule(fields) if fault.field not in at_fault)


def _no_children_if_barren(kind: NodeKind, act: Act, old: Node, fields: Values) -> tuple[Fault, ...]:
    if not kind.barren(fields) or kind.barren(old.fields) or not (count := nodes.count_children(act.tx, kind.name, old.id)):
        return ()
    detail = f"type redirect has no children, and this {kind.singular} has {count}: move or delete them first."
    return (Fault("type", "INVALID_VALUE", detail),)


def _digest_secrets(kind: NodeKind, given: Given, fields: dict[str, Any], old: Values) -> tuple[str, ...]:
    """Keep a digest in place of each password that was given; name those that differ from before."""
    changed: list[str] = []
    for field in kind.secrets:
        if field.name not in given or not isinstance(field.type, Password):
            continue
        plain, digest = given.get(field.name), old.get(field.name)
        if plain is None:
            fields[field.name] = None
        elif digest is not None and _matches(digest, plain):
            fields[field.name] = digest
        else:
            fields[field.name] = _HASHER.hash(plain)
        if fields[field.name] != digest:
            changed.append(field.name)
    return tuple(changed)


def _matches(digest: str, plain: str) -> bool:
    try:
        return _HASHER.verify(digest, plain)
    except VerificationError:
        return False


def _settled_permissions(kind: NodeKind, act: Act, given: Given, base: Values) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Put the permissions given over those copied, and these over those there are; every group must exist."""
    faults: list[Fault] = []
    if (source_id := given.get("copyPermissionsFrom")) is not None:
        source = nodes.find(act.tx, kind.name, source_id)
        if source is None:
            faults.append(
                Fault(
                    "copyPermissionsFrom",
                    "INVALID_VALUE",
                    f"copyPermissionsFrom: there is no {kind.singular} {source_id}.",
                )
            )
        else:
            base = source.permissions
    sent: Mapping[str, Any] = given.get("permissions") or {}
    named = {f"permissions.{option}": groups for option, groups in sent.items()}
    named |= {f.name: given.get(f.name) for f in kind.group_fields if f.name in given}
    faults.extend(_unknown_groups(act, named))
    permissions = {option: sent.get(option, base.get(option, ())) for option in kind.options}
    return {option: who if who == EVERYONE else list(who) for option, who in permissions.items()}, tuple(faults)


def _unknown_groups(act: Act, named: Mapping[str, Any]) -> Iterator[Fault]:
    groups = _audience(act)
    wanted = {group for who in named.values() if who != EVERYONE for group in who}
    unknown = wanted - nodes.existing(act.tx, groups.name, wanted) if groups else wanted
    for field, who in named.items():
        if who != EVERYONE and (missing := [str(group) for group in who if group in unknown]):
            yield Fault(field, "INVALID_GROUP", f"{field} names groups that do not exist: {', '.join(missing)}.")


def _audience(act: Act) -> NodeKind | None:
    return next((kind for kind in act.world.kinds if kind.audience), None)


# --- deleting -----------------------------------------------------------------------------------------------------

_FATE: Final = Field(
    "deleteChildrenOrMove",
    ChildrenFate(),
    "What happens to its children: -1 deletes everything below it, an id moves the children behind those of that one.",
    write_only=True,
    example=-1,
)
_NO_FATE: Final = replace(_FATE, doc="Taken as for trees; means nothing here, since there are no children.", example=None)


def _delete_fields(kind: NodeKind) -> tuple[Field, ...]:
    return (_FATE if kind.tree else _NO_FATE,)


def _delete_doc(kind: NodeKind) -> str:
    doc = f"Deletes a {kind.singular}. Its id is never used again."
    if kind.tree:
        doc += (
            " If it has children, `deleteChildrenOrMove` says what becomes of them; without it the answer is 409 with their number."
        )
    if kind.audience:
        doc += " Its id is taken out of every node's permissions. The built-in ones cannot be deleted."
    return doc


def _delete_refusals(kind: NodeKind) -> tuple[str, ...]:
    return (("CANNOT_DELETE",) if kind.built_in else ()) + (("INVALID_TARGET", "HAS_CHILDREN") if kind.tree else ())


def _delete(kind: NodeKind, act: Act) -> Outcome:
    node = _found(kind, act, "delete")
    before = _seen(kind, act, node)
    _expect(act, before)
    act.given.demand()
    if node.id in kind.built_in:
        raise Refused("CANNOT_DELETE", f"{node.name} is built in and cannot be deleted. Other {kind.title.lower()} can.")
    fate = act.given.get(_FATE.name) if kind.tree else None
    below = nodes.descendants(act.tx, kind.name, node.id) if kind.tree else []
    direct = nodes.children(act.tx, kind.name, node.id) if below else []
    if below and fate is None:
        raise _has_children(kind, node, len(direct), len(below))
    target = None if fate in {None, -1} else _target(kind, act, node, fate, below)
    if target is not None and direct:
        nodes.adopt(act.tx, kind.name, node.id, target.id, act.now)
    siblings = nodes.count_children(act.tx, kind.name, node.parent_id)
    nodes.delete_subtree(act.tx, kind.name, node.id)
    for shift in leaving(node.parent_id, node.position, siblings):
        nodes.shift(act.tx, kind.name, shift.parent, shift.first, shift.last, shift.by)
    gone, moved = ([], direct) if target is not None else (below, [])
    scrubbed = _scrub(act, node.id) if kind.audience else []
    return Outcome(
        None,
        resource_id=node.id,
        before=before,
        touched=tuple(
            [{"resource": kind.name, "id": i, "how": "deleted"} for i in gone]
            + [{"resource": kind.name, "id": i, "how": "moved"} for i in moved]
            + [{"resource": name, "id": i, "how": "changed"} for name, i in scrubbed]
        ),
        plan={
            "dryRun": True,
            "deleted": {"count": 1 + len(gone), "ids": [node.id, *gone][:_SHOWN]},
            "moved": {"count": len(moved), "ids": moved[:_SHOWN], "to": target.id if target is not None else None},
            "changed": {
                "count": len(scrubbed),
                "nodes": [{"resource": name, "id": i} for name, i in scrubbed[:_SHOWN]],
            },
        },
    )


def _has_children(kind: NodeKind, node: Node, direct: int, below: int) -> Refused:
    all_below = f", {below} below it in all" if below != direct else ""
    return Refused(
        "HAS_CHILDREN",
        f"'{node.name}' has {direct} {'child' if direct == 1 else 'children'}{all_below}. "
        f"Send deleteChildrenOrMove=-1 to delete them too, or deleteChildrenOrMove=ID to move them under another {kind.singular}.",
        facts={
            "children": direct,
            "descendants": below,
            "options": {"delete": -1, "move": f"the id of another {kind.singular}"},
        },
    )


def _target(kind: NodeKind, act: Act, node: Node, fate: int, below: list[int]) -> Node:
    target = nodes.find(act.tx, kind.name, fate)
    if target is None:
        problem = f"there is no {kind.singular} {fate}"
    elif target.id == node.id:
        problem = "that is the one being deleted"
    elif target.id in below:
        problem = f"{kind.singular} {fate} is below the one being deleted"
    elif kind.barren(target.fields):
        problem = f"{kind.singular} {fate} is a redirect and has no children"
    else:
        return target
    fault = Fault(
        _FATE.name,
        "INVALID_TARGET",
        f"The children cannot move to {fate}: {problem}. Give another id, or -1 to delete them.",
    )
    raise refuse_faults((fault,))


def _scrub(act: Act, group: int) -> list[tuple[str, int]]:
    """Take a group out of every node's permissions and group fields; give the nodes that named it."""
    kinds = {kind.name: kind for kind in act.world.kinds}
    scrubbed: list[tuple[str, int]] = []
    for name, node in nodes.mentioning(act.tx, group):
        own = {f.name for f in kinds[name].group_fields} if name in kinds else set()
        permissions = {option: _without(who, group) for option, who in node.permissions.items()}
        fields = {f: _without(value, group) if f in own else value for f, value in node.fields.items()}
        if permissions != node.permissions or fields != node.fields:
            nodes.update(act.tx, name, replace(node, permissions=permissions, fields=fields, updated_at=act.now))
            scrubbed.append((name, node.id))
    return scrubbed


def _without(who: Any, group: int) -> Any:
    return [one for one in who if one != group] if isinstance(who, list) else who
