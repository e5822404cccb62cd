"""The operations that plan and apply a structure document. A plan is the real run, rolled back."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from trellis.core.events import serialize_reference
from trellis.core.fields import (
    MAX_ID,
    Anything,
    Boolean,
    Field,
    Input,
    Integer,
    Invalid,
    ListOf,
    NodeId,
    Nullable,
    ObjectOf,
    Text,
    TextList,
    Type,
    quote,
    require,
)
from trellis.core.kind import NodeKind
from trellis.core.nodes import PUT_EXTERNAL
from trellis.core.operation import Access, Basis, Call, Context, Operation, Outcome, Preparation, select_readable
from trellis.core.structure import export
from trellis.core.structure.document import FORMAT, KEYS, MOST_DOCUMENTS, parse_documents
from trellis.core.structure.entries import Document
from trellis.core.structure.reach import hide_outside, limit_actor, list_missing, widen_actor
from trellis.core.structure.run import MAX_DELETES, Run
from trellis.core.structure.text import LARGEST_DOCUMENT
from trellis.core.verbs import CREATE, DELETE, LIST, UPDATE, Body, Response, Verb
from trellis.core.version import encode_large
from trellis.errors import Refused
from trellis.refusals import with_codes
from trellis.sentences import say, say_many
from trellis.store import events
from trellis.store.events import RecordEvent

_PLAN_NAME: Final = Text(100)
_SHOWN: Final = 100
_PAGE: Final = 1000  # changes that are read at a time
PLAN: Final = Verb(
    name="plan",
    method="POST",
    tail="/plan",
    body=Body.NEW,
    response=Response.ANSWER,
    answer="What would be done. Nothing has changed.",
)
APPLY: Final = Verb(
    name="apply",
    method="POST",
    tail="/apply",
    body=Body.NEW,
    response=Response.ANSWER,
    answer="What was done; for a dry run, what would be done.",
    idempotency_key=True,
    destructive=True,
)


@dataclass(frozen=True, slots=True)
class Documents:
    """A structure document, as text or as an object, or a list of documents or of {file, content}."""

    kinds: tuple[NodeKind, ...]
    widget: str = "textarea"

    def parse(self, raw: Any) -> Document:
        """Parse documents. A parsed Document, which only another part of this program can pass, is returned unchanged."""
        return raw if isinstance(raw, Document) else parse_documents(raw, self.kinds)

    def schema(self) -> dict[str, Any]:
        one = [{"type": "string", "maxLength": LARGEST_DOCUMENT}, {"type": "object"}]
        several = {"type": "array", "minItems": 1, "maxItems": MOST_DOCUMENTS, "items": {"anyOf": one}}
        return {"anyOf": [*one, several]}


class PlanName(Type):
    """The name of a plan: a text that structure.plan returned."""

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str):
            raise Invalid(say("must be only the text that structure.plan returned in its member plan, not {raw}.", raw=quote(raw)))
        return _PLAN_NAME.parse(raw)

    def schema(self) -> dict[str, Any]:
        return _PLAN_NAME.schema()


_OPTIONS: Final = (
    Field(
        "prune",
        Boolean(),
        "Whether to delete what is missing from the document's sections. What another document manages is kept.",
        default=False,
        brief="delete what the document lacks",
    ),
    MAX_DELETES,
    Field("allowEmpty", Boolean(), "Whether the document or a section of it may be empty.", default=False),
    Field(
        "adopt",
        Boolean(),
        "Whether to take over nodes without an external id whose path is that of an entry, and nodes of other documents.",
        default=False,
        brief="take over nodes by their path",
    ),
)
_PLAN: Final = Field("plan", PlanName(), "The `plan` that `structure.plan` returned: apply exactly that plan, and nothing else.")


def operations(kinds: Sequence[NodeKind]) -> tuple[Operation, ...]:
    """Return the operations that export, plan and apply the structure."""
    kinds = tuple(kinds)
    example = {"format": FORMAT, "name": "community", "forums": [{"externalId": "news", "name": "News"}]}
    document = Field(
        "document",
        Documents(kinds),
        "The structure document, as text (YAML, JSON) or as an object.",
        required=True,
        example=example,
    )
    uses = tuple(kind.operation(one.name) for kind in kinds for one in (LIST, CREATE, UPDATE, DELETE))
    shared = Operation(
        name="",
        summary="",
        doc="",
        run=partial(_run, document, planned=True),
        judges_input=True,
        access=Access(Basis.GRANTED, reads_nodes=True, uses=uses),
        path=export.PATH,
        fields=(document, *_OPTIONS),
        refusals=with_codes(
            "INVALID_DOCUMENT",
            "EMPTY_DOCUMENT",
            "TOO_MANY_DELETES",
            "TREE_TOO_LARGE",
            "MISSING_VALUE",
            "SETS_TOO_MANY_PASSWORDS",
            "TOO_MANY_PASSWORDS",
        ),
        response_fields=_ANSWERS,
        most_bytes=LARGEST_DOCUMENT,
        preparation=Preparation(calls=_list_calls),
    )
    plan = replace(
        shared,
        name="structure.plan",
        summary="Plan a structure document",
        brief="Say what structure.apply would do",
        doc="Returns what `structure.apply` would do to make the community match the document: the real run, rolled back. Needs "
        "the grants to list what the document is about.",
        verb=PLAN,
        is_plan=True,
    )
    apply = replace(
        shared,
        name="structure.apply",
        summary="Apply a structure document",
        brief="Make the community match a document that names nodes by externalId",
        doc="Makes the community match the document, in one transaction and one change set: entries are created or changed by "
        "external id, and put into the order of the document. Members that an entry leaves out keep their values. Needs the "
        "grant of each operation that it runs. If `plan` is sent, exactly that plan is carried out, or refused with what has "
        "changed since.",
        run=partial(_run, document, planned=False),
        verb=APPLY,
        fields=(*shared.fields, _PLAN),
        refusals=(*shared.refusals, *with_codes("PLAN_OUTDATED", "PLAN_DIFFERS")),
        is_change_set=True,
    )
    return (export.operation(kinds), plan, apply)


def _list_calls(call: Call, given: Input) -> Iterator[Call]:
    """Yield calls with the passwords of the document, so that the passwords become digests before the write begins."""
    document = given.get("document")
    if not isinstance(document, Document):
        return
    actor = widen_actor(call.actor)
    for entry in document.walk():
        secrets = {f.name: entry.values[f.name] for f in entry.kind.secrets if entry.values.get(f.name)}
        if secrets:
            raw = {"externalId": entry.external_id, **secrets}
            yield call._replace(operation=entry.kind.operation(PUT_EXTERNAL.name), actor=actor, raw=raw, target=None)


def _run(field: Field, context: Context, *, planned: bool) -> Outcome:
    given = context.input
    if field.name not in context.call.raw:  # the faults of one that was sent name its own members
        given = require((field,), given)
    given.raise_faults()
    document: Document = given.values[field.name]
    read = {section.kind.name: section.kind for section in document.sections}
    if (groups := context.environment.group_kind) is not None:
        read[groups.name] = groups
    names = {*read, KEYS} if document.keys else set(read)
    expected = given.get(_PLAN.name)
    if expected:
        seen = sorted(name for name in names if context.call.actor.sees(name))  # the others are refused when they are read
        _check_revision(context, expected, seen, read)
    actor = context.call.actor
    kinds = [section.kind for section in document.sections]
    run = Run(context, document, limit_actor(context, kinds, planned=planned))
    run.carry_out()
    applier = run.applier
    changes = [one.serialize() | {"touched": select_readable(context, one.touched)} for one in applier.changes]
    done = document.name, [*applier.passwords.items()], applier.requests
    digest = applier.sign(encode_large(done))[:32]
    if expected and expected.partition("-")[2] != digest:
        raise Refused(
            "PLAN_DIFFERS",
            say("This document, the passwords in it and these options would not do what was planned. Make a new plan."),
        )
    counts = Counter(change.action for change in applier.changes)
    result = {
        "plan": f"{applier.revision}-{digest}",
        "name": document.name,
        "revision": applier.revision,
        "counts": {action: counts[action] for action in ("create", "update", "move", "delete")},
        "deletes": sum(change.deleted for change in applier.changes),
        "changes": changes,
        "kept": [{"resource": kind.name, "id": node.id, "name": node.name} for kind, node in run.kept[:_SHOWN]],
        "keptCount": len(run.kept),
        "adoptable": run.adoptable,
        "missingOperations": list_missing(actor, applier.needed, context.now),
    }
    plan = result | {"dryRun": True}
    if planned:
        return Outcome(result, plan=plan, happened=False)
    shown = result | ({"secrets": run.secrets} if run.secrets else {})
    return Outcome(shown, public=result, plan=plan, happened=False, event=applier.last)


def _check_revision(context: Context, plan: str, resources: Sequence[str], kinds: Mapping[str, NodeKind]) -> None:
    """Refuse a plan if anything that it has read has changed since. Raises Refused (PLAN_OUTDATED, PLAN_DIFFERS)."""
    number = plan.partition("-")[0]
    if not number.isdecimal() or int(number) > MAX_ID:
        raise Refused("PLAN_DIFFERS", say("plan is not a value that structure.plan returned. Make a new plan."))
    oldest, newest = events.find_span(context.tx)
    if int(number) > newest:
        told = say(
            "The plan was made after event {number}, which does not exist here: it is a plan of another database, or an older copy "
            "of this one has been restored since. Nothing was done. Make a new plan.",
            number=int(number),
        )
        raise Refused("PLAN_OUTDATED", told, facts={"changes": []})
    if int(number) + 1 < oldest:
        told = say(
            "Events since the plan have been purged, so what has changed since is not known. Nothing was done. Make a new plan."
        )
        raise Refused("PLAN_OUTDATED", told, facts={"changes": []})
    since = _find_changes(context, int(number), resources, kinds)
    if not since:
        return
    first = since[0]
    detail = say_many(
        len(since),
        "1 change has been made since the plan: event {event}, {operation} of {id}. Nothing was done. Make a new plan.",
        "{count} changes have been made since the plan: event {event}, {operation} of {id}, …. Nothing was done. Make a new plan.",
        event=first.event,
        operation=first.operation,
        id=first.id,
    )
    raise Refused("PLAN_OUTDATED", detail, facts={"changes": [serialize_reference(one) for one in since]})


def _find_changes(context: Context, after: int, resources: Sequence[str], kinds: Mapping[str, NodeKind]) -> list[RecordEvent]:
    """Return the first changes after an event, at most `_SHOWN`, without those of records that are out of reach."""
    found: list[RecordEvent] = []
    while len(found) < _SHOWN and (page := events.find_since(context.tx, after, resources, _PAGE)):
        found += hide_outside(context, kinds, page) if context.call.actor.bounds else page
        after = page[-1].event
    return found[:_SHOWN]


_DIFFERENCES: Final = ListOf(
    (
        Field("member", Text(), "The member, such as name or permissions.read."),
        Field("before", Anything(), "Its value before; null for a password."),
        Field("after", Anything(), "Its value after; null for a password."),
    )
)
_CHANGES: Final = ListOf(
    (
        Field("action", Text(), "create, update, move or delete."),
        Field("resource", Text(), "The kind of the record, such as forums."),
        Field("id", NodeId(), "Its id."),
        Field("externalId", Nullable(Text()), "Its external id."),
        Field("path", Text(), "Its name, and those of the nodes above it."),
        Field("file", Nullable(Text()), "The file of its entry."),
        Field("line", Nullable(Integer()), "The line of its entry."),
        Field("differences", _DIFFERENCES, "The members that change."),
        Field("adopted", Boolean(), "Whether the node is taken over by its path."),
        Field(
            "drift",
            Nullable(ObjectOf()),
            "The event that has changed the record since the document was last applied, by hand or otherwise.",
        ),
        Field("deleted", Integer(), "How many nodes a delete removes."),
        Field("touched", ListOf(()), "What else changes because it names a group that is deleted."),
    )
)
_ANSWERS: Final = (
    Field("plan", Text(), "The plan, which `structure.apply` takes.", example="812-3f9ac2d41b7e5a60c8d2f1e4b3a79586"),
    Field("name", Text(), "The name of the document.", example="community"),
    Field("revision", Integer(), "The newest event at the time of the plan.", example=812),
    Field("counts", ObjectOf(), "How many creates, updates, moves and deletes there are.", example={"create": 1}),
    Field("deletes", Integer(), "How many nodes are deleted, including those below them.", example=0),
    Field("changes", _CHANGES, "What changes, in order.", example=[]),
    Field("kept", ListOf(()), "What is missing from the document and is kept; at most 100 are listed.", example=[]),
    Field("keptCount", Integer(), "How many these are.", example=0),
    Field(
        "adoptable",
        Integer(),
        "How many entries have the path of a node without an external id: `adopt` takes over these nodes.",
        example=0,
    ),
    Field("missingOperations", TextList(), "The operations that the key would need and has not been granted.", example=[]),
)
