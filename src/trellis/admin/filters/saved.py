"""The saved filters of one list, as its page shows them, and what is no longer valid in the one that is open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin.forms import Form
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import parse_whole_number, quote
from trellis.core.filters import PLACES, QUERY
from trellis.core.version import fields_version
from trellis.sentences import say

OPENED: Final = "_filter"  # in the address of a list: the id of the saved filter that it was opened with


@dataclass(frozen=True, slots=True)
class Saved:
    """The saved filters of a list; `query` is the filter that the list shows, `opened` the saved one that it was opened with.

    `differs` is whether the list shows another filter by now. `problems` are the parts of the open filter that are not understood.
    """

    list: str
    query: str
    filters: Sequence[Mapping[str, Any]]
    opened: Mapping[str, Any] | None
    differs: bool
    problems: Sequence[str]

    @property
    def version(self) -> str:
        """The version of the filter that is open, for the form that replaces it."""
        return "" if self.opened is None else fields_version(self.opened, (QUERY.name,))

    @property
    def carried(self) -> dict[str, str]:
        """The parameter that links to other pages of the list have to carry."""
        return {} if self.opened is None else {OPENED: str(self.opened["id"])}


async def fetch_saved(request: PageRequest, name: str, form: Form, query: Submitted) -> Saved:
    """Return the saved filters of a list. `form` is the list's form, to which any refusal has already been added."""
    found = [one for one in await request.fetch("filters.list") if one["list"] == name]
    number = parse_whole_number(request.query.get(OPENED, ""))
    opened = next((one for one in found if one["id"] == number), None)
    shown = urlencode([pair for pair in query.pairs if pair[0] not in PLACES])
    differs = opened is not None and shown != opened["query"]
    return Saved(name, shown, found, opened, differs, _find_problems(form) if opened is not None and not differs else ())


def _find_problems(form: Form) -> list[str]:
    """Return the faults of a form that was read, and the chosen values that are no longer among its choices."""
    faults = [form.text_of(fault) for fault in form.faults]
    lost = (
        say("{label}: {value} no longer exists.", label=control.label, value=quote(control.value))
        for control in form
        if control.widget == "select" and control.value and not _is_record(control.value)
        if control.value not in {value for value, _ in control.choices}
    )
    return faults + ([form.title] if form.title else []) + list(lost)


def _is_record(value: str) -> bool:
    """Return whether a choice stands for a record: only the newest are listed, but the others can still be searched for."""
    return value.rpartition(":")[2].isdecimal()
