"""A structure document of the tests, and pressing the buttons of its page."""

from typing import Any, Final

from tests.admin.conftest import Visitor
from tests.admin.html_forms import HtmlForm, read_forms

GARDEN: Final = """\
format: trellis/1
name: garden
forums:
  - externalId: beds
    name: Beds
    permissions: {view: "*"}
    children:
      - externalId: roses
        name: Roses
  - externalId: compost
    name: Compost
"""


def document_form(response: Any) -> HtmlForm:
    """Return the form that takes a document."""
    return next(form for form in read_forms(response) if any(name == "document" for name, _ in form.pairs))


def plan(admin: Visitor, document: str, **options: str) -> Any:
    """Type a document into the page, and press Plan."""
    form = document_form(admin.get("/structure"))
    return admin.post("/structure", form.filled(document=document, _action="plan", **options))


def apply(admin: Visitor, page: Any, **changes: str) -> Any:
    """Press 'Apply this plan' on the page of a plan."""
    return admin.post("/structure", document_form(page).filled(_action="apply", **changes))
