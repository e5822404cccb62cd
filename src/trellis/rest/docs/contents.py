"""The contents of the reference, taken from the catalogue: its sections, operations, fields, errors and samples."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import filterfalse
from typing import Any

from markupsafe import Markup, escape

from trellis.core.catalogue import Catalogue
from trellis.core.fields import Choice, Field, Permissions
from trellis.core.nodes import NodeKind
from trellis.core.operation import Basis, Operation
from trellis.core.verbs import Body, Response
from trellis.errors import Refused
from trellis.http.routes import Route, build_routes
from trellis.refusals import REFUSALS, Refusal
from trellis.rest.docs.examples import answer_of, given_of, plan_of, target_of
from trellis.rest.docs.openapi import own_tag, request_headers_of
from trellis.rest.docs.refusals import is_shared, refusals_of
from trellis.rest.docs.samples import LANGUAGES, coloured, pretty, samples_of
from trellis.rest.docs.schemas import body_fields, query_fields
from trellis.rest.docs.types import type_in_words


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field in a table, and the form control for it."""

    name: str
    also: tuple[str, ...]
    type: str
    doc: str
    default: str
    required: bool
    note: str
    members: Mapping[str, str]
    widget: str
    kinds: tuple[str, ...]
    choices: tuple[str, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Target:
    """The parameter in the path of an operation: the id of a record, or the field that names it."""

    name: str
    doc: str
    example: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class OperationView:
    """One operation on the page. `inner`: a key needs grants only for the operations that this one runs."""

    route: Route
    inner: bool
    target: Target | None
    query: tuple[FieldRow, ...]
    body: tuple[FieldRow, ...]
    response_fields: tuple[FieldRow, ...]
    headers: tuple[str, ...]
    errors: tuple[Refused, ...]
    shared_errors: tuple[Refused, ...]
    samples: tuple[tuple[str, str, Markup], ...]
    answer: Markup
    plan: Markup
    given: str


@dataclass(frozen=True, slots=True)
class ResourceView:
    """The operations of one kind, or of a resource that is not a kind."""

    name: str
    title: str
    application: str
    singular: str
    doc: str
    fields: tuple[FieldRow, ...]
    record: Markup
    entries: tuple[OperationView, ...]


def section_names(catalogue: Catalogue) -> tuple[str, ...]:
    """Return the names of the sections in their order."""
    return tuple(_group(catalogue))


def sections(catalogue: Catalogue, base_url: str) -> tuple[ResourceView, ...]:
    """Return every section in the order of the catalogue, Trellis's own last."""
    return tuple(_section(group, base_url) for group in _group(catalogue).values())


def _group(catalogue: Catalogue) -> dict[str, list[Route]]:
    groups: dict[str, list[Route]] = {}
    for route in sorted(build_routes(catalogue), key=lambda route: route.operation.kind is None):
        groups.setdefault(route.operation.resource, []).append(route)
    return groups


def _section(group: list[Route], base_url: str) -> ResourceView:
    kind = group[0].operation.kind
    entries = tuple(_entry(route, base_url) for route in group)
    if kind is None:
        title, doc = own_tag(group[0].operation)
        told = {field.name: field for route in group for field in route.operation.response_fields}
        fields, record = tuple(_row(field) for field in told.values()), _record(group)
        singular = group[0].operation.singular if record else "response"
        return ResourceView(
            group[0].operation.resource, title, "Trellis", singular, doc, fields, record or entries[0].answer, entries
        )
    answered = any(route.verb.response is not Response.NULL for route in group)
    fields = tuple(_row(field) for field in (*kind.response_fields, *kind.included)) if answered else ()
    return ResourceView(kind.name, kind.title, kind.application, kind.singular, kind.doc, fields, _record(group), entries)


def _record(group: Iterable[Route]) -> Markup:
    """Return the record of the first operation that returns one."""
    for route in group:
        if route.verb.response is Response.RECORD:
            return coloured(pretty(answer_of(route.operation)), "json")
    return Markup()


def _entry(route: Route, base_url: str) -> OperationView:
    operation = route.operation
    refusals = refusals_of(operation)
    return OperationView(
        route=route,
        inner=operation.access.basis is Basis.INNER,
        target=_target(operation),
        query=tuple(map(_row, query_fields(operation))),
        body=tuple(_row(field, new=route.verb.body is Body.NEW) for field in body_fields(operation)),
        response_fields=tuple(_row(field) for field in operation.response_fields) if operation.kind is not None else (),
        headers=request_headers_of(operation),
        errors=tuple(filterfalse(is_shared, refusals)),
        shared_errors=tuple(filter(is_shared, refusals)),
        samples=tuple((word, LANGUAGES[word], coloured(code, word)) for word, code in samples_of(route, base_url).items()),
        answer=coloured(pretty(answer_of(operation)), "json"),
        plan=coloured(pretty(plan_of(operation)), "json") if route.verb.response is Response.NULL else Markup(),
        given=json.dumps(given_of(operation)),
    )


def _target(operation: Operation) -> Target | None:
    if (named := operation.path_field) is not None:
        return Target(named.name, named.doc, str(named.example), numeric=False)
    return Target("id", "", str(target_of(operation)), numeric=True) if operation.has_target else None


def _row(field: Field, *, new: bool = True) -> FieldRow:
    notes = {"read-only": field.read_only, "write-only": field.write_only}
    schema = field.type.schema()
    kinds = schema.get("type", "string")
    members = (
        field.type.options if isinstance(field.type, Permissions) else field.type.words if isinstance(field.type, Choice) else {}
    )
    return FieldRow(
        name=field.name,
        also=() if field.read_only else field.also,
        type=type_in_words(field),
        doc=field.doc,
        default=json.dumps(field.default) if new and field.default not in (None, "") and not field.read_only else "",
        required=field.required and new,
        note=next((note for note, holds in notes.items() if holds), ""),
        members=members,
        widget=field.type.widget,
        kinds=(kinds,) if isinstance(kinds, str) else tuple(kinds),
        choices=tuple(schema.get("enum", ())),
        example=_shown(field.example),
    )


def _shown(example: Any) -> str:
    if example is None:
        return ""
    return example if isinstance(example, str) else json.dumps(example)


# --- for the chapters ---------------------------------------------------------------------------------------------


def all_errors(catalogue: Catalogue) -> list[tuple[Refusal, Mapping[str, str]]]:
    """Return every refusal by status, with the codes that particular operations use for it, by operation."""
    codes: dict[str, dict[str, str]] = {}
    for route in build_routes(catalogue):
        for refused in refusals_of(route.operation):
            if refused.code != refused.refusal.code:
                codes.setdefault(refused.message, {})[route.operation.name] = refused.code
    return [(refusal, codes.get(refusal.message, {})) for refusal in sorted(REFUSALS.values(), key=lambda row: row.status)]


def aliases(catalogue: Catalogue) -> tuple[tuple[NodeKind, tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]], ...]:
    """Return the aliases of each kind that has some: paths and parameters, each with the name used here."""
    kinds = {route.operation.kind.name: route.operation.kind for route in build_routes(catalogue) if route.operation.kind}
    found = []
    for kind in kinds.values():
        served = [operation for operation in catalogue.values() if operation.kind is kind and operation.path]
        fields = {field.name: field for operation in served for field in operation.fields if field.also and not field.read_only}
        names = tuple((other, field.name) for field in fields.values() for other in field.also)
        if names or kind.also:
            found.append((kind, tuple((path, kind.path) for path in kind.also), names))
    return tuple(found)


def showcase(catalogue: Catalogue) -> NodeKind | None:
    """Return the kind used in the examples of the chapters: the one with the most operations."""
    kinds = [route.operation.kind for route in build_routes(catalogue) if route.operation.kind]
    served = Counter(kind.name for kind in kinds)
    return max(kinds, key=lambda kind: (served[kind.name], kind.tree, bool(kind.options)), default=None)


def prose(text: str) -> Markup:
    """Format a sentence as HTML; text between backticks is code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  # it has just been escaped
