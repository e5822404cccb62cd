"""The operations that address a node by its external id: get it, create or change it, and delete it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from trellis.core.fields import Input, invalid_id, require
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation, creation_refusals, granted_with
from trellis.core.nodes.deletion import delete_doc, delete_fields, delete_refusals
from trellis.core.nodes.record import find_reachable, serialize_node, shown_by
from trellis.core.nodes.references import find_by_external_id
from trellis.core.operation import Context, Operation, Outcome, Preparation
from trellis.core.verbs import CREATE, DELETE, GET, UPDATE, Body, Verb
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import nodes

_TAIL = "/external/{externalId}"
GET_EXTERNAL = replace(GET, name="get_external", tail=_TAIL, code="", column="", in_dialects=False)
PUT_EXTERNAL = Verb(
    name="put_external",
    method="PUT",
    tail=_TAIL,
    body=Body.CHANGES,
    answer="The record as it is now, with 201 and its `Location` if it is new; for a dry run, as it would be.",
    may_create=True,
    if_match=True,
    destructive=True,
)
DELETE_EXTERNAL = replace(DELETE, name="delete_external", tail=_TAIL, code="", column="", in_dialects=False)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operations of a kind; none has a grant of its own."""
    one = kind.singular
    key = kind.external_key
    also = tuple(f for f in kind.accepted if f.name != key.name)
    doc = (
        f"Changes the {one} with this external id, or creates it if there is none. Fields that are not sent keep their values, or "
        "get their defaults. The request can be repeated safely."
    )
    get = build_operation(
        kind, GET_EXTERNAL, f"Get a {one} by its external id", f"Returns the {one} with this external id.", _get, (key,)
    )
    put = build_operation(
        kind, PUT_EXTERNAL, f"Create or change a {one} by its external id", doc, _put, (key, *also), creation_refusals(kind)
    )
    put = replace(put, judges_input=True, preparation=Preparation(judge=partial(_find_digests, kind)))
    delete = build_operation(
        kind,
        DELETE_EXTERNAL,
        f"Delete a {one} by its external id",
        delete_doc(kind),
        _delete,
        (key, *delete_fields(kind)),
        delete_refusals(kind),
    )
    missing = (("INVALID_ID", kind.missing_code(GET)),), (), (("INVALID_ID", kind.missing_code(DELETE)),)
    needs = (GET,), (CREATE, UPDATE), (DELETE,)
    return tuple(
        granted_with(kind, needed, replace(operation, refusals=(*more, *operation.refusals)))
        for operation, needed, more in zip((replace(get, snapshot=False), put, delete), needs, missing, strict=True)
    )


def _get(kind: NodeKind, context: Context) -> Outcome:
    external_id = context.input.get("externalId")
    if (read := find_reachable(kind, context, external_id)) is None:
        raise invalid_id(kind.singular, external_id, kind.missing_code(GET), is_external=True)
    record = serialize_node(kind, read.node, read.above, context.environment.community_url)
    return Outcome(record, shows=(shown_by(kind, read),))


def _find_digests(kind: NodeKind, context: Context) -> dict[str, str | None]:
    """Return the digests of the passwords of the node with this external id."""
    found = _find(kind, context.input, context)
    node = nodes.find(context.tx, kind.name, found) if found is not None else None
    return {} if node is None else {secret.name: node.fields.get(secret.name) for secret in kind.secrets}


def _put(kind: NodeKind, context: Context) -> Outcome:
    key = kind.external_key
    own = tuple(fault for fault in context.input.faults if fault.field == key.name)  # the operation that it runs finds the others
    require((key,), Input(context.input.values, own)).raise_faults()
    found = _find(kind, context.input, context)
    if found is None:
        if context.call.expected:
            raise Refused("PRECONDITION_FAILED", say("If-Match was sent, but there is no record with this external id."))
        return _run(context, kind.operation(CREATE.name), None, context.call.raw)
    return _run(context, kind.operation(UPDATE.name), found, context.call.raw)


def _delete(kind: NodeKind, context: Context) -> Outcome:
    found = _find(kind, context.input, context)
    if found is None:
        raise invalid_id(kind.singular, context.input.get("externalId"), kind.missing_code(DELETE), is_external=True)
    raw = {name: value for name, value in context.call.raw.items() if name != "externalId"}
    return _run(context, kind.operation(DELETE.name), found, raw)


def _find(kind: NodeKind, given: Input, context: Context) -> int | None:
    """Find the node with an external id among those that the call may change or delete.

    The last grant that the call needs decides this, which for a PUT is that of update; creating checks its own grant.
    """
    external_id = given.get("externalId")
    return find_by_external_id(kind, context, external_id) if external_id else None


def _run(context: Context, operation: str, target: int | None, raw: Mapping[str, Any]) -> Outcome:
    call = context.call._replace(operation=operation, target=target, raw=raw)
    return context.run(call)._replace(happened=False)
