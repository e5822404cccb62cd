"""The texts of the core's tables that the panel shows: of kinds, fields, operations, refusals, roles, presets and alarms."""

from collections.abc import Iterator

from trellis.admin.keys.grants import Grid
from trellis.admin.keys.sentence import start_small
from trellis.admin.nodes.form import describe_field, list_choices
from trellis.compose import catalogue_of
from trellis.core.alarms import ALARMS
from trellis.core.fields import Choice, Field, Nullable
from trellis.core.keys import PRESETS
from trellis.core.kind import NodeKind
from trellis.core.roles import ROLES
from trellis.core.verbs import CREATE, UPDATE
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS

Text = str | tuple[str, str]


def list_texts_of_tables() -> Iterator[Text]:
    """Return the texts of all tables."""
    operations = catalogue_of(KINDS)
    grantable = {box.name for box in Grid(operations).boxes}
    for kind in KINDS:
        yield from _list_of_kind(kind)
    for operation in operations.values():
        yield operation.summary
        if operation.name in grantable:
            yield start_small(operation.summary)
        if operation.writes and (operation.kind is None or operation.verb in (CREATE, UPDATE)):
            for field in operation.fields:
                yield from () if field.read_only else _list_of_field(field, operation.kind)
    yield from (refusal.title for refusal in REFUSALS.values())
    for role in ROLES.values():
        yield from (role.title, role.doc, role.word, role.one, role.several)
    for preset in PRESETS.values():
        yield from (preset.title, preset.pause, preset.summary)
    yield from (rule.sentence for rule in ALARMS)


def _list_of_kind(kind: NodeKind) -> Iterator[Text]:
    yield from (kind.title, kind.title.lower(), kind.singular, kind.singular.capitalize(), kind.doc)
    yield (f"%(num)s {kind.singular}", f"%(num)s {kind.title.lower()}")
    yield from list(kind.options)[:1]  # to see that it exists
    for option, doc in kind.options.items():
        title = kind.option_title(option)
        yield from (title, f"May {title.lower()}", doc, doc.rstrip("."))


def _list_of_field(field: Field, kind: NodeKind | None) -> Iterator[Text]:
    yield field.label
    if doc := field.doc if kind is None else describe_field(field):
        yield doc
    kept = field.type.type if isinstance(field.type, Nullable) else field.type
    if isinstance(kept, Choice):
        yield from (title for _, title in list_choices(kept))
        yield from (word.capitalize() for word in kept.words)
        yield from (doc.rstrip(".") for doc in kept.words.values())
