"""The search page, which works without scripts, the part of it that scripts load, and the page of keyboard shortcuts."""

from typing import Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.search.hits import HitGroup, find_hits
from trellis.admin.submitted import Submitted
from trellis.core.keys import find_public_part, redact_keys
from trellis.core.search import TEXT
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/search"
_LABELS: Final = {TEXT.name: say("Search")}
_HELP: Final = {
    TEXT.name: say(
        "Part of a name, a number, the public part of a key, or the id of a request. Or what you want "
        "to do, such as: new forum under News."
    )
}


async def show(request: PageRequest) -> Response:
    """Show the search form with the results below it."""
    text = request.query.get(TEXT.name, "").strip()
    if redact_keys(text) == text:
        form, public = Form((TEXT,), Submitted(((TEXT.name, text),)), labels=_LABELS, help=_HELP), ""
    else:  # a key is not shown again: others may see the address, also in a proxy's log
        form, public = Form((TEXT,), labels=_LABELS, help=_HELP), find_public_part(redact_keys(text))
    sections: tuple[HitGroup, ...] = ()
    try:
        sections = await find_hits(request, request.query.get(TEXT.name, "").strip())
    except Refused as refused:
        form.add_refusal(refused)
    return request.page("search/index.html", title=say("Search"), form=form, text=text, sections=sections, public=public)


async def find(request: PageRequest) -> Response:
    """Return the results, for a script."""
    text = request.query.get(TEXT.name, "").strip()
    return request.page("search/hits.html", text=text, sections=await find_hits(request, text))


async def keyboard(request: PageRequest) -> Response:
    """Show the keyboard shortcuts."""
    return request.page("search/keyboard.html", title=say("Keyboard"))


PAGES: Final = (
    Page("GET", _HERE, show, needs=("search.find",)),
    Page("GET", f"{_HERE}/hits", find, needs=("search.find",)),
    Page("GET", "/keyboard", keyboard),
)
