"""Translates the requests, answers and refusals of the operations that a dialect covers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.dialect import Dialect, DialectKind, DialectMember, FindGroups, Record, serialize_record
from trellis.core.fields import Field
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.core.verbs import Response
from trellis.core.version import compute_tag, encode_json, encode_large
from trellis.errors import Refused
from trellis.http.json_body import encode_body, end_body
from trellis.kinds.invision import INVISION
from trellis.rest.dialect.groups import AllGroups
from trellis.rest.dialect.input import read_input
from trellis.store.engine import Shown


class Translator:
    """Translates requests and answers of keys with this dialect. Operations that the dialect does not cover are left unchanged."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.codes = {ours: theirs for dialect_kind in dialect.kinds.values() for ours, theirs in dialect_kind.codes.items()}

    def find_dialect_kind(self, operation: Operation) -> DialectKind | None:
        """Return the kind of an operation as the dialect declares it; None if it has none, or the dialect does not cover it."""
        if operation.kind is None or operation.verb is None or not operation.verb.in_dialects:
            return None
        return self.dialect.kinds.get(operation.kind.name)

    def covers(self, operation: Operation) -> bool:
        """Return whether the dialect covers an operation."""
        return self.find_dialect_kind(operation) is not None or operation.name in self.dialect.answers

    def find_known(self, operation: Operation) -> Callable[[str], Field | None] | None:
        """Return what finds the parameters that an operation takes, where others are ignored; None where they are refused."""
        return operation.form.find if self.covers(operation) else None

    def read(self, operation: Operation, raw: Mapping[str, Any], at: str) -> dict[str, Any]:
        """Translate raw input, received at the time `at`, into the input that the operation takes."""
        if not self.covers(operation):
            return dict(raw)
        return read_input(self.dialect, self.find_dialect_kind(operation), operation, raw, at)

    def serialize(self, operation: Operation, value: Any, gate: Gate, actor: Actor) -> Any:
        """Return an answer in the form of the dialect. The plan of a delete, which its clients do not know, stays as it is."""
        dialect_kind = self.find_dialect_kind(operation)
        members = dialect_kind.members if dialect_kind is not None else self.dialect.answers.get(operation.name)
        if members is None or operation.verb is None:
            return value
        return _SHOWN[operation.verb.response](members, value, AllGroups(gate, self.dialect, actor).find)

    def shows(self, gate: Gate) -> tuple[Shown, ...]:
        """Return what answers in the dialect show besides the records: the groups."""
        kind = gate.environment.group_kind
        return () if kind is None else (Shown(kind.name, whole=True),)

    def format_refusal(self, refused: Refused, *, pretty: bool = False) -> tuple[int, bytes]:
        """Return the status and the body of a refusal: the code and the name by which clients tell errors apart."""
        body = encode_body({"errorCode": self.find_code(refused.code), "errorMessage": refused.message}, pretty=pretty)
        return self.dialect.statuses.get(refused.message, refused.status), body

    def find_code(self, code: str) -> str:
        """Return the dialect's code for one of our error codes."""
        return self.codes.get(code, code)


def allows_key_in_url(dialect: str) -> bool:
    """Return whether keys with a dialect may be sent as `?key=` wherever they are used."""
    translator = TRANSLATORS.get(dialect)
    return translator is not None and translator.dialect.key_in_url


def encode_answer(value: Any, shown: Any, response: Response, *, pretty: bool = False) -> tuple[bytes, str]:
    """Encode an answer in the form in which it is shown; return the body with its tag."""
    compact = encode_json(shown) if response is Response.RECORD else encode_large(shown)
    version = compute_tag(value, compact, is_own=shown is value or response is not Response.RECORD)
    return encode_body(shown, pretty=True) if pretty else end_body(compact), version


def _serialize_page(members: tuple[DialectMember, ...], page: Record, find_groups: FindGroups) -> dict[str, Any]:
    return {**page, "results": [serialize_record(members, record, find_groups) for record in page["results"]]}


def _show_as_it_is(_: tuple[DialectMember, ...], value: Any, __: FindGroups) -> Any:
    return value


_SHOWN: Final[Mapping[Response, Callable[[tuple[DialectMember, ...], Any, FindGroups], Any]]] = {
    Response.RECORD: serialize_record,
    Response.PAGE: _serialize_page,
    Response.ANSWER: serialize_record,
    Response.FEED: _show_as_it_is,
    Response.NULL: _show_as_it_is,
}

TRANSLATORS: Final[Mapping[str, Translator]] = MappingProxyType({dialect.name: Translator(dialect) for dialect in (INVISION,)})
