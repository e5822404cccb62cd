"""The operation that lists the keys that may run an operation."""

from typing import Final

from trellis.core.access.check import ADDRESS, AT, DRY, NODE, OPERATION_FIELD, check_node, find_grantable
from trellis.core.access.rights import MISSING
from trellis.core.access.verdict import Question, judge_key
from trellis.core.fields import Field, NodeId, Text
from trellis.core.operation import Access, Context, Operation, Outcome
from trellis.core.paging import PAGING, read_page, serialize_page
from trellis.core.verbs import Response, Verb
from trellis.refusals import with_codes
from trellis.store import keys

_FIELDS: Final = (*PAGING, OPERATION_FIELD, NODE, ADDRESS, AT, DRY)
_AT_ONCE: Final = 500  # keys that are read and judged at a time


def _list_keys(context: Context) -> Outcome:
    given = context.input
    operation = find_grantable(context, given.values["operation"])
    check_node(context, operation.kind, given.get("id"))
    at = given.get("at") or context.now
    asked = Question(operation, given.get("id"), given.get("address"), at, dry=given.get(DRY.name, DRY.default))
    found = []
    for key in keys.read_granted(context.tx, operation.name if operation.access is Access.GRANTED else None, _AT_ONCE):
        verdict = judge_key(context.tx, key, asked)
        if verdict.condition is None:
            found.append({"id": key.id, "name": key.name, "public": key.public, "detail": verdict.detail})
    page, per_page = read_page(given)
    return Outcome(serialize_page(found[(page - 1) * per_page : page * per_page], len(found), page, per_page))


KEYS: Final = Verb(name="keys", method="GET", tail="/keys", response=Response.PAGE, answer="One page.")
OPERATION: Final = Operation(
    "access.keys",
    "List the keys that may run an operation",
    "Returns the keys that may run an operation, on a particular node if its id is sent, and under which conditions.",
    _list_keys,
    _FIELDS,
    access=Access.GRANTED,
    verb=KEYS,
    path="/core/access",
    refusals=(("INVALID_ID", MISSING), *with_codes("UNKNOWN_OPERATION")),
    answers=(
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
)
