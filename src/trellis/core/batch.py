"""The operation that carries out many others in one transaction: all of them, or none."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from trellis.core.batch_references import MOST_BYTES, REFERENCE, ReferenceResolver, is_reference
from trellis.core.fields import (
    MAX_ID,
    Field,
    Input,
    Integer,
    Invalid,
    ListOf,
    NodeId,
    Nullable,
    ObjectOf,
    Suggestions,
    Text,
    quote,
    require,
    split_list,
)
from trellis.core.operation import DRY_RUN, Access, Basis, Call, Context, Operation, Outcome, Preparation, Progress, run_together
from trellis.core.verbs import Body, Response, Verb
from trellis.core.version import ANY_VERSION, find_own_version
from trellis.errors import Refused, refuse_fault
from trellis.refusals import with_codes
from trellis.sentences import say, say_many
from trellis.store import events, nodes
from trellis.store.engine import Transaction

MOST: Final = 1000  # operations in a batch
# All other writes wait for a batch, and references and copies multiply what its request contains: copying the result of a copy
# doubles it each time. So a batch is refused after the operation with which it has changed more than this many records or returned
# more than MOST_BYTES, and its references may stand for at most MOST_BYTES.
MOST_RECORDS: Final = 10_000
BATCH: Final = Verb(
    name="batch",
    method="POST",
    body=Body.NEW,
    response=Response.ANSWER,
    answer="What each operation returned, in order; for a dry run, what it would return.",
    idempotency_key=True,
    destructive=True,
    idempotent=False,
)
_NAME: Final = Text(100, 1)
_TAG: Final = Text(255, 1)


class BatchItem(NamedTuple):
    """One operation of a batch. `id` and the values in `body` may be references to what earlier operations returned.

    `name` is the name by which later operations refer to its result; `if_match` is the version that its record must have.
    """

    operation: str
    id: Any
    body: Mapping[str, Any]
    name: str
    if_match: str


@dataclass(frozen=True, slots=True)
class BatchItems:
    """The operations of a batch: a list of objects."""

    widget: str = "textarea"

    def parse(self, raw: Any) -> tuple[BatchItem, ...]:
        parts = split_list(raw)
        if parts is None or not 1 <= len(parts) <= MOST:
            raise Invalid(
                say(
                    'must be a list of 1 to {most:,} operations, such as [{{"operation": "forums.create", "body": {{…}}}}].',
                    most=MOST,
                )
            )
        items = tuple(_parse_item(part, index) for index, part in enumerate(parts))
        named: dict[str, int] = {}
        for index, item in enumerate(items):
            if item.name and named.setdefault(item.name, index) != index:
                raise Invalid(
                    say(
                        "[{index}]: as {name} is already the name of operation {named}.",
                        index=index,
                        name=quote(item.name),
                        named=named[item.name],
                    )
                )
        return items

    def schema(self) -> dict[str, Any]:
        reference = {"type": "object", "properties": {REFERENCE: {"type": "string"}}, "required": [REFERENCE]}
        properties = {
            "operation": _NAME.schema() | {"description": "The name of the operation, such as `forums.create`."},
            "id": {
                "anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_ID}, reference],
                "description": "The id of the record that the operation is about, if it has one in its path.",
            },
            "body": {"type": "object", "description": "The input of the operation."},
            "as": _NAME.schema() | {"description": "The name by which later operations refer to what it returns."},
            "ifMatch": _TAG.schema() | {"description": "The `ETag` that the record must have, if the operation changes one."},
        }
        item = {"type": "object", "properties": properties, "required": ["operation"], "additionalProperties": False}
        return {"type": "array", "minItems": 1, "maxItems": MOST, "items": item}


def _parse_item(raw: Any, index: int) -> BatchItem:
    members = {"operation", "id", "body", "as", "ifMatch"}
    if not isinstance(raw, Mapping) or (unknown := raw.keys() - members):
        named = say(", not with {min}", min=quote(min(unknown))) if isinstance(raw, Mapping) else ""
        raise Invalid(
            say(
                "[{index}] must be an object with operation, and id, body, as and ifMatch where they are needed{named}.",
                index=index,
                named=named,
            )
        )
    operation = _parse_member(raw.get("operation"), index, "operation", _NAME.parse)
    name = _parse_member(raw["as"], index, "as", _NAME.parse) if "as" in raw else ""
    if_match = _parse_member(raw["ifMatch"], index, "ifMatch", _parse_tag) if "ifMatch" in raw else ""
    target = raw.get("id")
    if target is not None and not is_reference(target):
        target = _parse_member(target, index, "id", NodeId().parse)
    if "." in name:
        raise Invalid(
            say(
                "[{index}]: as must not contain a dot, since {reference} adds one after it, not {name}.",
                index=index,
                reference=REFERENCE,
                name=quote(name),
            )
        )
    body = raw.get("body", {})
    if not isinstance(body, Mapping) or DRY_RUN.name in body:
        raise Invalid(
            say("[{index}]: body must be an object without dryRun; send dryRun with the batch to try all of it.", index=index)
        )
    return BatchItem(operation, target, body, name, if_match)


def _parse_member(value: Any, index: int, member: str, parse: Callable[[Any], Any]) -> Any:
    try:
        return parse(value)
    except Invalid as invalid:
        raise Invalid(say("[{index}]: {member} {detail}", index=index, member=member, detail=invalid.detail)) from None


def _parse_tag(raw: Any) -> str:
    """Parse an ETag, with or without quotation marks; refuse text that would be no condition, or one that is never met."""
    text = _TAG.parse(raw)
    tag = text.strip('"')
    if not tag or "," in tag or (tag == ANY_VERSION and text != tag) or text.startswith('W/"'):
        raise Invalid(say("must be the ETag that you read, without W/, or * for any, not {raw}.", raw=quote(raw)))
    return tag


# --- running ------------------------------------------------------------------------------------------------------


def _batch(context: Context) -> Outcome:
    given = require((OPERATIONS,), context.input)
    given.raise_faults()
    items: tuple[BatchItem, ...] = given.values[OPERATIONS.name]
    dry = bool(given.get(DRY_RUN.name))
    progress = Progress(context.call, len(items))
    references = ReferenceResolver(context.tx)
    returned: list[dict[str, Any]] = []
    public: list[dict[str, Any]] = []
    tried: list[dict[str, Any]] = []
    last = None
    newest = events.find_newest_number(context.tx)
    records = size = 0
    outcomes = _run_items(context, items, references)
    for index, item in enumerate(items):
        try:
            outcome = next(outcomes)
        except Refused as refused:
            hidden = references.size > 0 and _has_counted_reads(context, items[:index])
            raise _refuse_item(index, item, _hide_reason(refused) if hidden else refused) from None
        if outcome.uses:
            raise _refuse_item(index, item, _refuse_counted())
        if outcome.event is not None:
            records += _count_records(context.tx, outcome, newest)
            newest = last = outcome.event
        size += len(context.tx.encode(outcome.result))
        if records > MOST_RECORDS or size > MOST_BYTES:
            raise _refuse_size(index + 1)
        references.results[item.name] = outcome.kept  # or a reference would store a secret in a record
        event = None if dry else outcome.event
        returned.append({"operation": item.operation, "event": event, "result": outcome.result})
        public.append({"operation": item.operation, "event": event, "result": outcome.kept})
        tried.append({"operation": item.operation, "event": None, "result": outcome.tried})
        progress.done()
    plan = {"results": tried, "dryRun": True}
    return Outcome({"results": returned}, public={"results": public}, plan=plan, happened=False, event=last)


def _count_records(tx: Transaction, outcome: Outcome, before: int) -> int:
    """Count the records that an operation has changed, by its events: those after the event `before`. It may have run others."""
    last = outcome.event or before
    is_its_own = last == before + 1 and outcome.resource_id is not None
    return 1 + len(outcome.touched) if is_its_own else events.count_records(tx, before, last)


def _run_items(context: Context, items: Sequence[BatchItem], references: ReferenceResolver) -> Iterator[Outcome]:
    """Yield the outcomes of the items in order; consecutive similar items run together. Raises Refused for the next item."""
    done = 0
    while done < len(items):
        calls = [*_build_alike(context, items[done : done + nodes.AT_ONCE], references)]
        together = run_together(context, calls) if len(calls) > 1 else None
        yield from together or (context.run(call) for call in calls)
        done += len(calls)


def _build_alike(context: Context, items: Sequence[BatchItem], references: ReferenceResolver) -> Iterator[Call]:
    """Yield the calls of the first item and of those after it that can run together with it. Raises Refused for the first item."""
    first = items[0]
    yield (call := _build_call(context, first, references))
    if (together := context.environment.batchable[first.operation].together) is None:
        return
    alike, targets = together.alike, {call.target}
    for item in items[1:]:
        if item.operation != first.operation or alike(item.body) is None or alike(item.body) != alike(first.body):
            return
        size, following = references.size, None
        with suppress(Refused):  # it will be refused when its turn comes, or it refers to a result of these calls
            following = _build_call(context, item, references)
        if following is None or (following.target in targets and following.target is not None):
            references.size = size  # its references are counted when its turn comes
            return
        targets.add(following.target)
        yield following


def _list_calls(call: Call, given: Input) -> Iterator[Call]:
    """Yield the calls of a batch as far as they are known before it runs: references are not resolved yet."""
    for item in given.get(OPERATIONS.name, ()):
        yield call._replace(operation=item.operation, raw=item.body, target=item.id if isinstance(item.id, int) else None)


def _build_call(context: Context, item: BatchItem, references: ReferenceResolver) -> Call:
    operation = context.environment.batchable.get(item.operation)
    if operation is None:
        is_misspelt = item.operation not in context.environment.operations
        detail = say(
            "A batch cannot run {operation}: it runs only the operations of the API that write, or that get one record.{hint}",
            operation=quote(item.operation),
            hint=Suggestions(context.environment.batchable).suggest(item.operation) if is_misspelt else "",
        )
        raise Refused("UNKNOWN_OPERATION", detail)
    for secret in operation.secrets & item.body.keys():
        if isinstance(item.body[secret], Mapping):  # it would be hashed while all other writes wait
            detail = say("{secret} must be text: a password cannot be a {reference}.", secret=secret, reference=REFERENCE)
            raise refuse_fault(secret, "INVALID_VALUE", detail)
    body, target = references.resolve(item.body), references.resolve(item.id)
    if not isinstance(body, Mapping):
        raise refuse_fault("body", "INVALID_VALUE", say("body must be an object, not {body}.", body=quote(body)))
    if item.if_match and not operation.is_conditional:
        detail = say(
            "{name} does not change an existing record, so ifMatch does not apply: leave ifMatch out.",
            name=operation.name,
        )
        raise refuse_fault("ifMatch", "INVALID_VALUE", detail)
    expected = (find_own_version(item.if_match),) if item.if_match else ()
    return context.call.build_inner(item.operation, body, _check_target(operation, item, target), expected)


def _check_target(operation: Operation, item: BatchItem, target: Any) -> int | None:
    if not operation.has_target:
        if item.id is None:
            return None
        raise refuse_fault("id", "INVALID_VALUE", say("{name} has no id in its path: leave id out.", name=operation.name))
    if item.id is None:
        raise refuse_fault(
            "id", "MISSING_VALUE", say("id is needed, beside operation and body: {name} is about one record.", name=operation.name)
        )
    try:
        return NodeId().parse(target)
    except Invalid as invalid:
        raise refuse_fault("id", "INVALID_VALUE", say("id {detail}", detail=invalid.detail)) from None


def _refuse_item(index: int, item: BatchItem, refused: Refused) -> Refused:
    detail = say(
        "Operation {index} of the batch ({operation}) was refused, so nothing was done. {detail}",
        index=index,
        operation=quote(item.operation),
        detail=refused.detail,
    )
    return Refused("BATCH_REFUSED", detail, facts={"index": index, "operation": item.operation, "problem": refused})


def _has_counted_reads(context: Context, done: Sequence[BatchItem]) -> bool:
    """Return whether any of these operations of a batch only reads, and counts as a use of a grant."""
    operations = (context.environment.batchable[item.operation] for item in done)
    return any(context.call.actor.counts(name) for one in operations if not one.writes for name in one.judged_by)


def _hide_reason(refused: Refused) -> Refused:
    """Return a refusal without its reason, which may quote what was read. The reads of a batch that is refused do not count."""
    if refused.status == 429:  # it quotes nothing, and says when to try again
        return refused
    detail = say(
        "The reason is not shown: it may quote what the batch has read, and the reads of a batch that is refused are not counted. "
        "Read the record first, in a call of its own."
    )
    return Refused(refused.message, detail, refused.code)


def _refuse_counted() -> Refused:
    """Return the refusal of an approval in a batch: other operations could show what the approved call reads.

    That does not count if the batch is a dry run, or is refused after all.
    """
    detail = say(
        "This proposal reads what counts towards a daily limit, so no batch can approve it. Approve it in a call of its own."
    )
    return refuse_fault("operation", "INVALID_VALUE", detail)


def _refuse_size(done: int) -> Refused:
    return Refused(
        "BATCH_TOO_LARGE",
        say_many(
            done,
            "The first operation changes more than {most_records:,} records, or returns more than {most_bytes} MiB, which is the "
            "limit of a batch. Nothing was done. Send that operation alone, outside of a batch.",
            "The first {count:,} operations change more than {most_records:,} records, or return more than {most_bytes} MiB, "
            "which is the limit of a batch. Nothing was done. Send fewer operations at once.",
            most_records=MOST_RECORDS,
            most_bytes=MOST_BYTES >> 20,
        ),
    )


_RESULTS: Final = ListOf(
    (
        Field("operation", Text(), "The operation."),
        Field("event", Nullable(Integer()), "The event that it recorded; null if none."),
        Field("result", Nullable(ObjectOf()), "What it returned."),
    )
)
# Without a `$ref`, which programs that read the OpenAPI document would take for a reference within the document.
_EXAMPLE: Final = [
    {"operation": "forums.create", "as": "news", "body": {"name": "News"}},
    {"operation": "calendars.create", "body": {"name": "Meetings"}},
]
_RETURNED: Final = [{"operation": "forums.create", "event": 12, "result": {"id": 7, "name": "News"}}]
OPERATIONS: Final = Field(
    "operations",
    BatchItems(),
    "The operations to run, in order: objects with `operation`, and with `id`, `body`, `as` and `ifMatch` if needed.",
    required=True,
    example=_EXAMPLE,
    brief='{"$ref": "x.id"}: id of the result of "as": "x"',
)
OPERATION: Final = Operation(
    name="core.batch",
    summary="Run many operations at once",
    doc=f"Runs up to {MOST:,} operations in order in one transaction: all of them, or none if one is refused. Each operation needs "
    "the same grant as it does alone, and records its own event. An operation can refer to what an earlier one returned: "
    '`{"$ref": "news.id"}` is the member `id` of the result of the operation with `"as": "news"`. Operations that list records are '
    f"not allowed. A batch may change at most {MOST_RECORDS:,} records and return at most {MOST_BYTES >> 20} MiB.",
    brief="Run many operations: all or none",
    run=_batch,
    preparation=Preparation(calls=_list_calls),
    fields=(OPERATIONS,),
    judges_input=True,
    access=Access(Basis.INNER, runs=("*",)),
    verb=BATCH,
    is_change_set=True,
    results_in="results",
    path="/core/batch",
    refusals=with_codes("BATCH_REFUSED", "BATCH_TOO_LARGE", "SETS_TOO_MANY_PASSWORDS", "TOO_MANY_PASSWORDS"),
    response_fields=(Field("results", _RESULTS, "What each operation returned, in order.", example=_RETURNED),),
)
