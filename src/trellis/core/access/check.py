"""The operations that report whether a key or a group may do something, and if not why, and which keys may run an operation."""

from typing import Final

from trellis.core.access.rights import MISSING, describe_right, find_group, list_rights
from trellis.core.access.verdict import Question, describe_permission, judge_key
from trellis.core.fields import (
    MAX_ID,
    Boolean,
    Field,
    IpAddress,
    NodeId,
    Nullable,
    Suggestions,
    Text,
    Timestamp,
    isolate,
    require_found,
)
from trellis.core.hello import HELLO
from trellis.core.keys import find_named_key
from trellis.core.kind import NodeKind
from trellis.core.operation import GRANTED, Context, Operation, Outcome
from trellis.core.paging import PAGING, parse_paging, serialize_page
from trellis.core.verbs import Response, Verb
from trellis.errors import refuse_fault
from trellis.refusals import with_codes
from trellis.sentences import say
from trellis.store import keys, nodes

_HOLDER: Final = Field(
    "holder",
    Text(100, 1),
    "Who to check: a key by its id, its public part, or its name, if that is unique and not a number; or a group, such as group:3.",
    required=True,
    example="1",
)
_OPERATION: Final = Field(
    "operation",
    Text(100, 1),
    "What to check: the operation that a key would run or, for a group, the right that it would have, such as forums.read.",
    required=True,
    example="forums.delete",
)
_NODE: Final = Field(
    "id",
    NodeId(),
    "The node to check; required for a group. Without it, the response says whether a key may run the operation at all.",
)
_ADDRESS: Final = Field("address", IpAddress(), "The address that the key is used from. The default is any of the key's addresses.")
_AT: Final = Field("at", Timestamp(nullable=True), "The time to check for; the default is now.")
_DRY: Final = Field("asDryRun", Boolean(), "Whether to check for a dry run.", default=False)
_QUESTION: Final = (_OPERATION, _NODE, _ADDRESS, _AT, _DRY)
_AT_ONCE: Final = 500  # keys that are read and judged at a time
_GROUP: Final = "group:"


def _check(context: Context) -> Outcome:
    given = context.input
    named = given.values["holder"]
    if named.startswith(_GROUP) and named.removeprefix(_GROUP).isdecimal():
        return _check_group(context, min(int(named.removeprefix(_GROUP)), MAX_ID))
    return _check_key(context)


def _check_key(context: Context) -> Outcome:
    key = find_named_key(context, _HOLDER.name, MISSING)
    asked = _read_question(context)
    verdict = judge_key(context.tx, key, asked)
    return Outcome(
        {
            "may": verdict.condition is None,
            "condition": verdict.condition,
            "reason": verdict.reason,
            "detail": verdict.detail or describe_permission(key, asked),
            "at": asked.at,
        }
    )


def _check_group(context: Context, holder: int) -> Outcome:
    given = context.input
    group = find_group(context, holder)
    resource, _, wanted = given.values["operation"].partition(".")
    kind = context.environment.kinds_by_name.get(resource)
    right = None if kind is None else next((one for one in list_rights(kind) if one.name == wanted), None)
    if kind is None or right is None:
        detail = say(
            "operation: '{operation}' is not a right of groups. Send one such as forums.read.",
            operation=isolate(given.values["operation"]),
        )
        raise refuse_fault("operation", "UNKNOWN_OPERATION", detail)
    if "id" not in given:
        raise refuse_fault("id", "MISSING_VALUE", say("id is needed: the node in which the group would have the right."))
    number = given.values["id"]
    node = require_found(nodes.find(context.tx, kind.name, number), kind.singular, number, MISSING)
    how = describe_right(right.holders(node), group.id)
    where = say("in {singular} {id}", singular=kind.singular, id=node.id)
    detail = (
        say("Yes: {how}.", how=how)
        if how
        else say(
            "No: '{name}' does not have the right {right_name} {where}.",
            name=isolate(group.name),
            right_name=right.name,
            where=where,
        )
    )
    return Outcome(
        {"may": bool(how), "condition": None if how else right.name, "reason": None, "detail": detail, "at": context.now}
    )


def _list_keys(context: Context) -> Outcome:
    asked = _read_question(context)
    name = asked.operation.name if asked.operation.is_grantable else None
    page, per_page = parse_paging(context.input)
    shown = range((page - 1) * per_page, page * per_page)
    found, total = [], 0
    for key in keys.read_granted(context.tx, name, _AT_ONCE):
        if judge_key(context.tx, key, asked).condition is not None:
            continue
        if total in shown:
            found.append({"id": key.id, "name": key.name, "public": key.public, "detail": describe_permission(key, asked)})
        total += 1
    return Outcome(serialize_page(found, total, page, per_page))


def _read_question(context: Context) -> Question:
    """Return the question that a call asks. Raises Refused."""
    given = context.input
    operation = _find_grantable(context, given.values["operation"])
    node = given.get("id")
    _check_node(context, operation.kind, node)
    at = given.get("at") or context.now
    return Question(operation, node, given.get("address"), at, dry=given.get(_DRY.name, _DRY.default))


def _find_grantable(context: Context, name: str) -> Operation:
    """Find an operation that a key can run. Raises Refused (UNKNOWN_OPERATION)."""
    if name == HELLO.name:
        return HELLO
    known = context.environment.operations
    if (found := known.get(name)) is None or not found.is_grantable:
        hint = "" if found else Suggestions(sorted(context.environment.grantable)).suggest(name)
        detail = say("operation: '{name}' cannot be granted to a key.{hint}", name=isolate(name), hint=hint)
        raise refuse_fault("operation", "UNKNOWN_OPERATION", detail)
    return found


def _check_node(context: Context, kind: NodeKind | None, node: int | None) -> None:
    """Refuse a node that does not exist, and any node if the operation is not about a single node. Raises Refused."""
    if node is None:
        return
    if kind is None:
        raise refuse_fault("id", "INVALID_VALUE", say("id: this operation is not about one node. Leave id out."))
    require_found(nodes.find(context.tx, kind.name, node), kind.singular, node, MISSING)


CHECK: Final = Verb(name="check", method="GET", tail="/check", response=Response.ANSWER, answer="Whether it is allowed, and why.")
KEYS: Final = Verb(name="keys", method="GET", tail="/keys", response=Response.PAGE, answer="One page.")
_ANSWERS: Final[tuple[Field, ...]] = (
    Field("may", Boolean(), "Whether it is allowed.", example=False),
    Field(
        "condition",
        Nullable(Text()),
        "The condition that is not met: revoked, paused, expires, addresses or grant of the key; until, dryRunOnly, level, under "
        "or perDay of the grant; for a group, the right. null if it is allowed.",
        example="grant",
    ),
    Field("reason", Nullable(Text()), "The errorMessage that the API would return to the key.", example="NO_PERMISSION"),
    Field("detail", Text(), "The result in a sentence.", example="No: forums.delete has not been granted. Grant it to allow it."),
    Field("at", Timestamp(), "The time that the result is for.", example="2026-01-31T09:30:00.000Z"),
)
OPERATIONS: Final = (
    Operation(
        "access.check",
        "Check who may do what",
        "Returns whether a key may run an operation, or a group has a right in a node, and if not, which condition is not met. "
        "Nothing is run.",
        _check,
        (_HOLDER, *_QUESTION),
        access=GRANTED,
        verb=CHECK,
        path="/core/access",
        refusals=(("INVALID_ID", MISSING), *with_codes("UNKNOWN_OPERATION")),
        response_fields=_ANSWERS,
        varies=True,  # the response also varies with the time
    ),
    Operation(
        "access.keys",
        "List the keys that may run an operation",
        "Returns the keys that may run an operation, on a particular node if its id is sent, and under which conditions.",
        _list_keys,
        (*PAGING, *_QUESTION),
        access=GRANTED,
        verb=KEYS,
        path="/core/access",
        refusals=(("INVALID_ID", MISSING), *with_codes("UNKNOWN_OPERATION")),
        response_fields=(
            Field("id", NodeId(), "The key's id.", example=2),
            Field("name", Text(), "Its name.", example="Calendar sync"),
            Field("public", Text(), "Its public part.", example="h3k9x2"),
            Field(
                "detail",
                Text(),
                "Under which conditions the key may run the operation.",
                example="Yes: it has been granted, without an expiry.",
            ),
        ),
        slow=True,
        varies=True,
    ),
)
