"""The dialects in the reference: what their records look like, what they do differently, and what they cannot do."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup

from trellis.core.catalogue import Catalogue
from trellis.core.dialect import Dialect, DialectMember, Who, serialize_record
from trellis.core.nodes import NodeKind
from trellis.core.verbs import Response
from trellis.http.routes import build_routes
from trellis.rest.dialect import TRANSLATORS, Translator
from trellis.rest.docs.examples import answer_of
from trellis.rest.docs.samples import coloured, pretty


class ShownKind(NamedTuple):
    """A kind in a dialect: the members of its records, and an example."""

    kind: NodeKind
    members: tuple[DialectMember, ...]
    example: Markup


def show_dialects(catalogue: Catalogue) -> tuple[tuple[Dialect, tuple[ShownKind, ...]], ...]:
    """Return every dialect, with the kinds whose records REST returns."""
    return tuple((translator.dialect, tuple(_show_kinds(translator, catalogue))) for translator in TRANSLATORS.values())


def _show_kinds(translator: Translator, catalogue: Catalogue) -> Iterator[ShownKind]:
    shown: set[str] = set()
    for route in build_routes(catalogue):
        kind, dialect_kind = route.operation.kind, translator.find_dialect_kind(route.operation)
        if kind is not None and dialect_kind is not None and route.verb.response is Response.RECORD and kind.name not in shown:
            shown.add(kind.name)
            example = serialize_record(dialect_kind.members, answer_of(route.operation), _example_groups)
            yield ShownKind(kind, dialect_kind.members, coloured(pretty(example), "json"))


def _example_groups(who: Who) -> list[dict[str, Any]]:
    return [{"id": one, "name": f"Group {one}", "formattedName": f"Group {one}"} for one in who if isinstance(one, int)]
