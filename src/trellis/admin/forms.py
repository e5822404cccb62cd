"""Forms built from the fields that operations declare: the controls, the typed values, and their faults.

    form = Form(fields)                              # empty: the declared defaults
    form = Form(fields, record)                      # filled in from a record
    form = Form(fields, request.form)                # with the typed values
    form.raw()                                       # what to pass to request.perform
    return request.page(…, form=form.add_refusal(refused))      # with the typed values, and faults at their fields

A template shows all of it with `{{ ui.form_fields(form) }}`, or one control at a time with `{{ ui.control(form["name"]) }}`; put
`{{ ui.faults(form) }}` above. `choices` turns a field into a list to choose from (`{"parentId": (("", "Top level"), …)}`),
`groups` are the groups that `groups` and `permissions` controls offer as pairs of id and name, `widgets` chooses another
control (`{"addresses": "lines"}`), `labels` and `help` replace the declared texts. `raw` refuses names that are not on the form:
call it where Refused is caught.

Widgets: text, textarea, lines (one value per line), number, checkbox, select, radio, color, url, password, new-password,
datetime-local (in the time zone of `clock`), groups, permissions, hidden.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, Self

from trellis.admin.submitted import CSRF, StaleForm, Submitted, find_status
from trellis.admin.times import EXACT, UTC_CLOCK, Clock
from trellis.core.fields import EVERYONE, MAX_ID, OR_NULL, Choice, Field, drop_separators, parse_whole_number, quote
from trellis.errors import Fault, Refused, raise_faults
from trellis.sentences import adapt, join, say

_SECRET: Final = frozenset({"password", "new-password"})
_MANY: Final = frozenset({"groups"})
_TIME: Final = "datetime-local"


@dataclass(frozen=True, slots=True)
class Control:
    """One field of a form. `value` is text (for a checkbox, a bool); `chosen` are the ticked values if there can be several.

    `when` names another field and the values of it with which this field counts, if it does not always count: a script shows the
    control only then. `applies` is whether it counts now, or has a fault; `is_plain` is whether it has its default value and no
    fault. `zone` is the time zone of a time, and `exact` its timestamp if the value of the control is ambiguous.
    """

    name: str
    widget: str
    label: str
    help: str
    required: bool
    value: Any = ""
    chosen: tuple[str, ...] = ()
    choices: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str, tuple[str, ...]], ...] = ()  # for permissions: name, description, ticked values
    fault: str = ""
    when: str = ""
    applies: bool = True
    is_plain: bool = True
    zone: str = ""
    exact: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The id of the control's element."""
        return "field-" + self.name.replace(".", "-")

    @property
    def described_by(self) -> str:
        """The ids of the elements that describe the control: its help text and its fault."""
        return " ".join(f"{self.id}-{part}" for part, there in (("help", self.help), ("fault", self.fault)) if there)


class Form:
    """Some fields with their values and faults."""

    def __init__(  # noqa: PLR0913  # a form is declared in one call
        self,
        fields: Iterable[Field],
        values: Mapping[str, Any] | None = None,
        *,
        choices: Mapping[str, Sequence[tuple[Any, str]]] | None = None,
        groups: Sequence[tuple[int, str]] = (),
        widgets: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        help: Mapping[str, str] | None = None,  # noqa: A002  # the word that the panel uses
        id: str = "form",
        clock: Clock = UTC_CLOCK,
    ) -> None:
        self.fields = {f.name: f for f in fields if not f.read_only}
        self.id = id
        self.clock = clock
        self.title = ""  # shown above the faults
        self.faults: tuple[Fault, ...] = ()
        self.more_faults = 0  # how many others are not listed
        self.status = 200  # of the page that shows it
        self._typed = values if isinstance(values, Submitted) else None
        self._values = values
        self._choices = {name: tuple((str(v), t) for v, t in pairs) for name, pairs in (choices or {}).items()}
        self._groups = tuple((str(number), name) for number, name in groups)
        self._widgets, self._labels, self._help = widgets or {}, labels or {}, help or {}

    # --- the typed values -----------------------------------------------------------------------------------------

    def raw(self) -> dict[str, Any]:
        """Return the typed values as an operation accepts them. Raises Refused for a name that is not on the form."""
        typed = self._typed or Submitted()
        raw: dict[str, Any] = {}
        unknown: list[Fault] = []
        for name in typed:
            head, _, option = name.partition(".")
            if name == CSRF or name.startswith("_"):
                continue
            if option and head in self.fields and self.widget(head) == "permissions":
                raw.setdefault(head, {})[option] = _read_groups(typed.all(name))
            elif name not in self.fields or self.widget(name) == "permissions":  # its options have names of their own
                unknown.append(Fault(name[:60], "UNKNOWN_PARAMETER", say("This form has no field {name}.", name=quote(name))))
            elif self.widget(name) in _MANY:
                raw[name] = _read_groups(typed.all(name))
            elif self.widget(name) == "lines":
                raw[name] = [line.strip() for line in typed[name].splitlines() if line.strip()]
            elif self.widget(name) in _SECRET and not typed[name] and not self.fields[name].required:
                continue  # an empty password means no change
            elif self.widget(name) == _TIME:
                raw[name] = self._moment(name)
            elif self.widget(name) == "number":
                raw[name] = drop_separators(typed[name])
            else:
                raw[name] = typed[name].replace("\r\n", "\n")
        raise_faults(unknown)
        return raw

    def _moment(self, name: str) -> str:
        """Return the timestamp that a typed time stands for. Text that is not a time is returned unchanged."""
        typed = self._typed or Submitted()
        return self.clock.reading(typed).read_typed(typed.get(name, "").strip(), typed.get(EXACT + name, ""))

    def add_refusal(self, refused: Refused) -> Self:
        """Add a refusal to the form: each fault at its field, or the detail above all fields."""
        order = list(self.fields)
        field_of = self.field_of
        told = [replace(fault, detail=self.clock.tell(fault.detail)) for fault in refused.faults]
        self.faults = tuple(sorted(told, key=lambda f: order.index(field_of(f)) if field_of(f) else len(order)))
        self.more_faults = refused.more_faults
        self.status = find_status(refused)
        self.title = "" if refused.faults else self.clock.tell(refused.detail)
        if isinstance(refused, StaleForm):
            self.faults = ()
            if self.fields and _SECRET.issuperset(map(self.widget, self.fields)):
                self.title = say("{why} Nothing has been changed yet. Passwords are not kept: enter them again.", why=refused.why)
        return self._rebuild_controls()

    def add_fault(self, name: str, detail: str) -> Self:
        """Add a fault found by the panel itself."""
        self.faults = (*self.faults, Fault(name, "INVALID_VALUE", detail))
        return self._rebuild_controls()

    def _rebuild_controls(self) -> Self:
        """Forget the controls that were built before a fault was added: they do not show it."""
        vars(self).pop("controls", None)
        return self

    # --- controls -------------------------------------------------------------------------------------------------

    @property
    def seldom(self) -> list[Control]:
        """The controls of fields that are seldom set. They are folded away unless one of them is not `is_plain`."""
        return [control for control in self if self.fields[control.name].seldom]

    def __iter__(self) -> Iterator[Control]:
        return iter(self.controls.values())

    def __getitem__(self, name: str) -> Control:
        return self.controls[name]

    def widget(self, name: str) -> str:
        """Return the name of the widget that shows a field."""
        if name in self._widgets:
            return self._widgets[name]
        return "select" if name in self._choices else self.fields[name].type.widget

    @cached_property
    def controls(self) -> dict[str, Control]:
        """All controls by name."""
        return {name: self._control(f) for name, f in self.fields.items()}

    def _control(self, f: Field) -> Control:
        widget = self.widget(f.name)
        choices = self._choices.get(f.name, ())
        if not choices and isinstance(f.type, Choice):
            choices = tuple((word, doc.rstrip(".")) for word, doc in f.type.words.items())
        ticked = self._chosen(f) if widget in _MANY else ()
        fault = join(self.text_of(fault) for fault in self.faults if self.field_of(fault) == f.name)
        return Control(
            name=f.name,
            widget=widget,
            label=self._label(f.name),
            help=self._help.get(f.name, f.doc),
            required=f.required,
            value=self._text(f, widget),
            chosen=ticked,
            choices=choices or (self._groups if widget in _MANY | {"permissions"} else ()),
            options=self._options(f) if widget == "permissions" else (),
            fault=fault,
            when=" ".join((f.applies[0], *f.applies[1])) if f.applies else "",
            applies=bool(fault) or self._applies(f),
            is_plain=not fault and self._is_plain(f, widget),
            schema=f.type.schema(),
            zone=self.clock.name if widget == _TIME else "",
            exact=self._exact(f) if widget == _TIME else "",
        )

    def _applies(self, f: Field) -> bool:
        """Return whether a field counts with the current values of the form."""
        if f.applies is None or f.applies[0] not in self.fields:
            return True
        return self._text(self.fields[f.applies[0]], "select") in f.applies[1]

    def _is_plain(self, f: Field, widget: str) -> bool:
        usual = f.default is True if widget == "checkbox" else "" if f.default is None else str(f.default)
        return bool(self._text(f, widget) == usual)

    def _label(self, name: str) -> str:
        return self._labels.get(name, self.fields[name].label)

    def _text(self, f: Field, widget: str) -> Any:
        """Return the value as the control shows it."""
        if widget in _SECRET:
            return ""  # never sent back
        if widget == "checkbox":
            held = self._typed.get(f.name, "0") if self._typed is not None else self._value(f)
            return held in (True, "1", "true")
        if widget == _TIME:
            held = self._held_moment(f)
            return self.clock.show_typed(held) if held else ""
        if self._typed is not None:
            return self._typed.get(f.name, "")
        held = self._value(f)
        if isinstance(held, list | tuple):
            return ("\n" if widget == "lines" else ", ").join(str(one) for one in held)
        return "" if held is None else str(held)

    def _held_moment(self, f: Field) -> str:
        return self._moment(f.name) if self._typed is not None else str(self._value(f) or "")

    def _exact(self, f: Field) -> str:
        held = self._held_moment(f)
        return held if self.clock.is_twice(held) else ""

    def _value(self, f: Field) -> Any:
        return f.default if self._values is None else self._values.get(f.name, f.default)

    def _chosen(self, f: Field) -> tuple[str, ...]:
        return self._typed.all(f.name) if self._typed is not None else _values_of(self._value(f))

    def _options(self, f: Field) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        docs: Mapping[str, str] = getattr(f.type, "options", {})
        held = {} if self._typed is not None else self._value(f) or {}
        return tuple(
            (
                option,
                doc,
                split_values(self._typed.all(f"{f.name}.{option}"))
                if self._typed is not None
                else _values_of(held.get(option, ())),
            )
            for option, doc in docs.items()
        )

    # --- faults ---------------------------------------------------------------------------------------------------

    def field_of(self, fault: Fault) -> str:
        """Return the field of the form that a fault belongs to; "" if it is not on the form."""
        head = fault.field.partition(".")[0]
        return next((name for name in (fault.field, head) if name in self.fields), "")

    def text_of(self, fault: Fault) -> str:
        """Return the text of a fault, with the field named by its label. What programs send for an empty field is left out."""
        return adapt(fault.detail, partial(self._name_by_label, fault.field, self.field_of(fault)))

    def _name_by_label(self, field: str, name: str, detail: str, find: Callable[[str], str]) -> str:
        detail = detail.replace(find(OR_NULL), "")
        if not name or not detail.startswith(name):
            return detail
        label, option = self._label(name), field.partition(".")[2]
        if option and self.widget(name) == "permissions" and detail.startswith(field):
            name, label = field, self._labels.get(field, say("May {option}", option=option))
        rest = detail[len(name) :].lstrip(":").strip()
        return f"{find(label)} {rest}" if detail[len(name) : len(name) + 1] == " " else f"{find(label)}: {rest}"


def _read_groups(values: Sequence[str]) -> str | list[str]:
    """Read the ticked groups of an option: all groups, or a list. An empty value only shows that the option was on the form."""
    chosen = split_values(values)
    return EVERYONE if EVERYONE in chosen else [value for value in chosen if value]


def split_values(values: Iterable[str]) -> tuple[str, ...]:
    """Split values at commas: one tick may stand for many groups, and the groups of an option may come as one text."""
    return tuple(dict.fromkeys(part for value in values for part in value.split(",")))


def read_id(value: str) -> int | None:
    """Return the id that a text stands for; None if it is not one."""
    number = parse_whole_number(value)
    return number if number is not None and 0 < number <= MAX_ID else None


def read_ids(values: Iterable[str]) -> list[int]:
    """Return the ids in comma-separated values, each once and in their order. Anything that is not an id is skipped."""
    return list(dict.fromkeys(number for number in map(read_id, split_values(values)) if number is not None))


def _values_of(held: Any) -> tuple[str, ...]:
    return (EVERYONE,) if held == EVERYONE else tuple(str(one) for one in held or ())
