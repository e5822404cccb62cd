"""A list with filters: what its page shows of what was found, of the filters, and of those that are saved."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from trellis.admin.filters.saved import fetch_saved
from trellis.admin.forms import Form
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import Field
from trellis.core.filters import PLACES
from trellis.errors import Refused

_NOTHING: Final[dict[str, Any]] = {  # in each kind of list
    "results": [],
    "next": None,
    "complete": True,
    "searchedTo": None,
    "about": 0,
    "page": 1,
    "totalPages": 1,
    "totalResults": 0,
}


async def fetch_filtered(  # noqa: PLR0913  # a list is declared in one call
    request: PageRequest,
    operation: str,
    fields: Sequence[Field],
    *,
    choices: Mapping[str, Sequence[tuple[Any, str]]],
    labels: Mapping[str, str],
    query: Submitted | None = None,
    usual: Mapping[str, str] = MappingProxyType({}),
    adjust: Callable[[dict[str, Any]], Any] = dict,
) -> dict[str, Any]:
    """Read a list by the filters in the address; return the `status` and the context of its page.

    The filters are `fields`, which the form shows without help. `query` is what the address says, if it is not read like other
    addresses; `usual` are the values of filters that it leaves out. `adjust` turns what the form says into what the operation
    takes. If a filter is refused, nothing is found, and the form says why.
    """
    query = Submitted.filters(request.query, request.clock) if query is None else query
    typed = Submitted((*usual.items(), *query.pairs))
    help_texts = dict.fromkeys((field.name for field in fields), "")
    form = Form(fields, typed, choices=choices, labels=labels, help=help_texts, clock=request.clock)
    found = dict(_NOTHING)
    try:
        found = await request.fetch(operation, adjust(form.raw()), slow=True)
    except Refused as refused:
        form.add_refusal(refused)
    saved = await fetch_saved(request, request.catalogue.find(operation).resource, form, query)
    return {
        "status": form.status,
        "form": form,
        "found": found,
        "query": dict(query) | saved.carried,
        "filtered": any(typed[name] != usual.get(name) for name in typed if name not in PLACES),
        "saved": saved,
    }
