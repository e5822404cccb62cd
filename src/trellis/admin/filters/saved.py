"""The saved filters of one list, as its page shows them, and what of the one that is open is not understood any more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin.forms import Form
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import parse_whole_number, quote
from trellis.sentences import say

OPENED: Final = "_filter"  # in the address of a list: the saved filter that it was opened by
_PLACES: Final = frozenset(("before", "page"))


@dataclass(frozen=True, slots=True)
class Saved:
    """The saved filters of a list; `query` is the filter that it shows, `opened` the one that it was opened by.

    `differs`: another is shown by now. `problems` says what of the one that is open is not understood.
    """

    list: str
    query: str
    filters: Sequence[Mapping[str, Any]]
    opened: Mapping[str, Any] | None
    differs: bool
    problems: Sequence[str]

    @property
    def carried(self) -> dict[str, str]:
        """What of it the addresses of the list's other pages have."""
        return {} if self.opened is None else {OPENED: str(self.opened["id"])}


async def fetch_saved(request: PageRequest, name: str, form: Form, query: Submitted) -> Saved:
    """Return the saved filters of a list, whose form has been sent already."""
    found = [one for one in await request.fetch("filters.list") if one["list"] == name]
    number = parse_whole_number(request.query.get(OPENED, ""))
    opened = next((one for one in found if one["id"] == number), None)
    shown = urlencode([pair for pair in query.pairs if pair[0] not in _PLACES])
    differs = opened is not None and shown != opened["query"]
    return Saved(name, shown, found, opened, differs, _find_problems(form) if opened is not None and not differs else ())


def _find_problems(form: Form) -> list[str]:
    """Return what is wrong with a form that was read, and what was chosen that is not among its choices any more."""
    faults = [form.text_of(fault) for fault in form.faults]
    lost = (
        say("{label}: {value} no longer exists.", label=control.label, value=quote(control.value))
        for control in form
        if control.widget == "select" and control.value and not _is_record(control.value)
        if control.value not in {value for value, _ in control.choices}
    )
    return faults + ([form.title] if form.title else []) + list(lost)


def _is_record(value: str) -> bool:
    """Return whether a choice stands for a record: only the newest of them are listed, and the others can still be looked for."""
    return value.rpartition(":")[2].isdecimal()
