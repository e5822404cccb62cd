"""The texts of the core's tables that the panel shows: of kinds, fields, operations, refusals, roles, presets and alarms."""

from calendar import month_name
from collections.abc import Iterator

from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.sentence import name_columns, start_small
from trellis.admin.nodes.form import describe_field, list_choices
from trellis.admin.webhooks.form import event_rows
from trellis.compose import catalogue_of, list_alarm_types
from trellis.core.alarms import ALARMS
from trellis.core.events import event_types
from trellis.core.fields import Choice, Field, Nullable
from trellis.core.keys import PRESETS
from trellis.core.kind import NodeKind
from trellis.core.operation import Operation
from trellis.core.roles import ROLES
from trellis.core.verbs import CREATE, UPDATE
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS

Text = str | tuple[str, str]


def list_texts_of_tables() -> Iterator[Text]:
    """Return the texts of all tables."""
    operations = catalogue_of(KINDS)
    grid = GrantGrid(operations)
    grantable = {box.name for box in grid.boxes}
    yield from name_columns(grid).values()
    for kind in KINDS:
        yield from _list_of_kind(kind)
    for operation in operations.values():
        yield from _list_of_operation(operation)
        yield from (start_small(operation.summary),) if operation.name in grantable else ()
    for row in event_rows(KINDS, (*event_types(operations.values()), *list_alarm_types())):
        yield row.title
        yield from (word.replace("_", " ") for _, word in row.types)
    yield from (refusal.title for refusal in REFUSALS.values())
    for role in ROLES.values():
        yield from (role.title, role.doc, role.word, role.one, role.several)
    for preset in PRESETS.values():
        yield from (preset.title, preset.pause, preset.summary)
    yield from (text for rule in ALARMS for text in (rule.label, rule.sentence))
    yield from month_name[1:]


def _list_of_operation(operation: Operation) -> Iterator[Text]:
    verb = operation.verb
    yield operation.summary
    if operation.writes:
        yield from (field.label for field in operation.fields)
        if operation.kind is None or verb in (CREATE, UPDATE) or (verb is not None and verb.button):
            for field in operation.fields:
                yield from () if field.read_only else _list_of_field(field, operation.kind)
    if verb is not None:
        yield from filter(None, (verb.column, verb.button, verb.button.lower(), verb.event if verb.button else ""))


def _list_of_kind(kind: NodeKind) -> Iterator[Text]:
    yield from (kind.application, kind.title, kind.title.lower(), kind.singular, kind.singular.capitalize(), kind.doc)
    yield (f"%(num)s {kind.singular}", f"%(num)s {kind.title.lower()}")
    yield from filter(None, (kind.leaf.one, kind.leaf.several))
    yield f"{kind.singular} %(name)s"  # in what events say, where other languages put an article before it
    yield from list(kind.options)[:1]  # to see that it exists
    for option, doc in kind.options.items():
        title = kind.option_title(option)
        yield from (option.capitalize(), title, f"May {title.lower()}", doc, doc.rstrip("."))


def _list_of_field(field: Field, kind: NodeKind | None) -> Iterator[Text]:
    yield field.label
    if doc := field.doc if kind is None else describe_field(field):
        yield doc
    kept = field.type.type if isinstance(field.type, Nullable) else field.type
    if isinstance(kept, Choice):
        yield from (title for _, title in list_choices(kept))
        yield from (word.capitalize() for word in kept.words)
        yield from (doc.rstrip(".") for doc in kept.words.values())
