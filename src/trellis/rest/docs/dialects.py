"""The dialects in the reference: what their records look like, what they do differently, and what they cannot do."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from trellis.core.catalogue import Catalogue
from trellis.core.dialect import Dialect, Shape, Who
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.core.verbs import Response
from trellis.http.routes import build_routes
from trellis.rest.dialect import TRANSLATORS
from trellis.rest.docs.examples import answer_of
from trellis.rest.docs.samples import coloured, pretty
from trellis.rest.docs.types import in_words


@dataclass(frozen=True, slots=True)
class ShownMember:
    """A member of a record in a table."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True, slots=True)
class ShownKind:
    """A kind in a dialect: the members of its records, the numbers of its permissions, and an example."""

    name: str
    title: str
    singular: str
    members: tuple[ShownMember, ...]
    options: tuple[tuple[str, str], ...]
    example: Markup


@dataclass(frozen=True, slots=True)
class ShownDialect:
    """A dialect in the reference."""

    name: str
    title: str
    doc: str
    kinds: tuple[ShownKind, ...]
    rules: tuple[str, ...]
    cannot: tuple[str, ...]


def show_dialects(catalogue: Catalogue) -> tuple[ShownDialect, ...]:
    """Return every dialect, with the kinds whose records REST returns."""
    return tuple(_show(translator.dialect, catalogue) for translator in TRANSLATORS.values())


def _show(dialect: Dialect, catalogue: Catalogue) -> ShownDialect:
    answered: dict[str, Operation] = {}
    for route in build_routes(catalogue):
        if route.operation.kind is not None and route.verb.in_dialects and route.verb.response is Response.RECORD:
            answered.setdefault(route.operation.kind.name, route.operation)
    kinds = tuple(
        _show_kind(operation.kind, dialect.kinds[name], operation)
        for name, operation in answered.items()
        if operation.kind is not None and name in dialect.kinds
    )
    return ShownDialect(dialect.name, dialect.title, dialect.doc, kinds, dialect.rules, dialect.cannot)


def _show_kind(kind: NodeKind, shape: Shape, operation: Operation) -> ShownKind:
    record = answer_of(operation)
    example = {member.name: member.compute(record, _example_groups) for member in shape.members}
    members = tuple(ShownMember(member.name, in_words(dict(member.schema)), member.doc) for member in shape.members)
    numbered = tuple((name, option) for name, option in shape.options.items() if name != option)
    return ShownKind(kind.name, kind.title, kind.singular, members, numbered, coloured(pretty(example), "json"))


def _example_groups(who: Who) -> list[dict[str, Any]]:
    return [{"id": one, "name": f"Group {one}", "formattedName": f"Group {one}"} for one in who if isinstance(one, int)]
