"""Examines the names of keys, administrators and webhooks for invisible characters.

Such characters are refused today, but older records may still contain them.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from trellis.core.check.soundness import Problem, ProblemGroup
from trellis.core.fields import quote
from trellis.core.operation import Context
from trellis.invisible import find_invisible, remove_invisible
from trellis.sentences import say
from trellis.store import keys
from trellis.store.admins import administrators
from trellis.store.engine import Transaction
from trellis.store.webhooks import endpoints

_PAGE: Final = 1000


class _Names(NamedTuple):
    """The names of one resource: how to read a page of its records, which fields are names, and how to write a record.

    The field `left` is not repaired, since its owner would have to learn of the change.
    """

    resource: str
    read_page: Callable[[Transaction, int, int], tuple[int, Sequence[Any]]]
    fields: tuple[str, ...]
    update: Callable[[Transaction, Any], None]
    left: str = ""


_NAMES: Final = (
    _Names("keys", keys.read_page, ("name",), keys.update),
    _Names("admins", administrators.read_page, ("name", "login"), administrators.update, left="login"),  # typed to sign in
    _Names("webhooks", endpoints.list_page, ("description",), endpoints.update),
)


def check_names(context: Context, without: Container[str]) -> Iterator[ProblemGroup]:
    """Find names with invisible characters, and what they would be without these characters, `without` those of some resources."""
    for names in (names for names in _NAMES if names.resource not in without):
        for record in walk_pages(context, names.read_page):
            yield from _check(context, names, record)


def walk_pages(context: Context, read_page: Callable[[Transaction, int, int], tuple[int, Sequence[Any]]]) -> Iterator[Any]:
    """Yield all records, read page by page. They may be changed meanwhile, but not in their order or number."""
    offset, total = 0, 1
    while offset < total:
        total, page = read_page(context.tx, _PAGE, offset)
        yield from page
        offset += _PAGE


def _check(context: Context, names: _Names, record: Any) -> Iterator[ProblemGroup]:
    problems: list[Problem] = []
    mended: dict[str, str] = {}
    for field in names.fields:
        text = getattr(record, field)
        if (at := find_invisible(text)) is None:
            continue
        visible = remove_invisible(text)
        hint = say("Change it: trellis run {resource}.update id={id} {field}=…", resource=names.resource, id=record.id, field=field)
        if repairable := bool(visible) and field != names.left:
            mended[field] = visible
            hint = say("Once repaired, it is {visible}.", visible=quote(visible))
        detail = say(
            "its {field} must not contain invisible characters; there is U+{code:04X} at offset {at}. {hint}",
            field=field,
            code=ord(text[at]),
            at=at,
            hint=hint,
        )
        problems.append(Problem(names.resource, record.id, "name", detail, repairable))
    if problems:
        new = replace(record, **mended, updated_at=context.at)
        yield ProblemGroup(tuple(problems), partial(names.update, context.tx, new) if mended else None)
