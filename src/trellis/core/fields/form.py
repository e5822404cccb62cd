"""Forms: parsing a request by the fields that it may contain."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from trellis.core.fields.field import Field
from trellis.core.fields.json_text import MAX_NAMES
from trellis.core.fields.suggestions import Suggestions
from trellis.core.fields.type import Invalid, quote
from trellis.errors import Fault, Refused, raise_faults
from trellis.sentences import mark, say


@dataclass(frozen=True, slots=True)
class Input:
    """What a request sent: the parsed values by canonical name, and every fault found so far."""

    values: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value sent under a name, or the default."""
        return self.values.get(name, default)

    def raise_faults(self) -> None:
        """Raise Refused with all faults at once, if there are any."""
        raise_faults(self.faults)

    def excuse(self, raw: Mapping[str, Any], record: Mapping[str, Any]) -> "Input":
        """Drop the faults of values that a record has already: one from before a rule was made can be sent back as it was read."""

        def is_kept(fault: Fault) -> bool:
            name = fault.field
            if name not in raw or name not in record or name in self.values:
                return False
            return type(raw[name]) is type(record[name]) and raw[name] == record[name]  # in Python, true is equal to 1

        return Input(self.values, tuple(fault for fault in self.faults if not is_kept(fault)))


_NOTHING: Final = Input({})
T = TypeVar("T")


class InputForm:
    """The fields that a request may contain, by every name under which they are accepted.

    `recode` returns a kind's own code for the message of a refusal, or "" for the code in the table of refusals.
    """

    def __init__(self, fields: Iterable[Field], recode: Callable[[str], str] = lambda _: "") -> None:
        self._known = {name: f for f in fields for name in (f.name, *f.also)}
        self._recode = recode

    def find(self, name: str) -> Field | None:
        """Return the field that is accepted under a name; None if there is none."""
        return self._known.get(name)

    def read(self, raw: Mapping[str, Any]) -> Input:
        """Resolve aliases, parse values, and find what is wrong: values that are not allowed, unknown names, names sent twice.

        Raises Refused for more than MAX_NAMES names.
        """
        if not raw:
            return _NOTHING
        if len(raw) > MAX_NAMES:
            raise Refused(
                "MALFORMED_REQUEST",
                say(
                    "The request has {count:,} parameters; at most {max_names:,} are allowed.", count=len(raw), max_names=MAX_NAMES
                ),
            )
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        unknown: list[str] = []
        sent: dict[str, str] = {}
        for name, value in raw.items():
            if (f := self._known.get(name)) is None:
                unknown.append(name)
            elif f.name in sent and not f.read_only:
                detail = say(
                    "{name} was sent twice, as {sent} and as {name2}: send it once.", name=f.name, sent=sent[f.name], name2=name
                )
                faults.append(Fault(f.name, "INVALID_VALUE", detail))
            elif not f.read_only:
                sent[f.name] = name
                try:
                    values[f.name] = f.type.parse(value)
                except Invalid as invalid:
                    parts = invalid.parts or ((f.name, say("{name} {detail}", name=f.name, detail=invalid.detail)),)
                    code = self._recode(invalid.message)
                    faults.extend(Fault(path, invalid.message, detail, code) for path, detail in parts)
        return Input(values, (*faults, *(self._refuse_unknown(unknown) if unknown else ())))

    def _refuse_unknown(self, names: Iterable[str]) -> Iterator[Fault]:
        """Yield a fault for each unknown name; the first few suggest which name may have been meant."""
        writable = {name: f for name, f in self._known.items() if not f.read_only}
        suggestions = Suggestions(writable)
        known = ", ".join(sorted({f.name for f in writable.values()}))
        advice = say(" The parameters are: {names}.", names=known) if known else say(" This operation takes none.")
        for name in names:
            hint = "" if suggestions.are_used_up else suggestions.suggest(name) or advice
            yield Fault(
                quote(name).strip("'"), "UNKNOWN_PARAMETER", say("There is no parameter {name}.{hint}", name=quote(name), hint=hint)
            )


def require(fields: Iterable[Field], given: Input, *, recode: Callable[[str], str] = lambda _: "") -> Input:
    """Add a fault for each required field that was not sent, before the faults found so far."""
    at_fault = {fault.field for fault in given.faults}
    missing = tuple(
        Fault(f.name, f.missing, say("{name} is needed: {doc}", name=f.name, doc=f.doc), recode(f.missing))
        for f in fields
        if f.required and f.name not in given.values and f.name not in at_fault
    )
    return Input(given.values, missing + given.faults)


def require_found(found: T | None, resource: str, raw: object, code: str) -> T:
    """Return the record that was found by an id. Raises Refused (INVALID_ID) if there is none."""
    if found is None:
        raise invalid_id(resource, raw, code)
    return found


def invalid_id(resource: str, raw: object, code: str, *, is_external: bool = False) -> Refused:
    """Return the refusal of an id that names no record. `is_external`: it is an id in another system."""
    text = mark("There is no {resource} with the id {raw}.")
    if is_external:
        text = mark("There is no {resource} with the external id {raw}.")
    return Refused("INVALID_ID", say(text, resource=resource, raw=quote(raw).strip(chr(39))), code=code)
