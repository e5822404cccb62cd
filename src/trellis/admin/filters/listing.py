"""A list with filters: what its page shows of what was found, of the filters, and of those that are saved."""

from collections.abc import Callable
from typing import Any, Final

from trellis.admin.filters.saved import PLACES, fetch_saved
from trellis.admin.forms import Form
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted
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


async def fetch_filtered(
    request: PageRequest, name: str, form: Form, query: Submitted, operation: str, adjust: Callable[[dict[str, Any]], Any] = dict
) -> dict[str, Any]:
    """Read a list by the filters of a form; return the `status` and the context of its page.

    `name` is that of the list for saved filters, `query` what the address contains, and `adjust` turns what the form says into what
    the operation takes. If a filter is refused, nothing is found, and the form says why.
    """
    found, status = dict(_NOTHING), 200
    try:
        found = await request.fetch(operation, adjust(form.raw()), slow=True)
    except Refused as refused:
        form.add_refusal(refused)
        status = 400
    saved = await fetch_saved(request, name, form, query)
    return {
        "status": status,
        "form": form,
        "found": found,
        "query": dict(query) | saved.carried,
        "filtered": bool(set(query) - PLACES),
        "saved": saved,
    }
