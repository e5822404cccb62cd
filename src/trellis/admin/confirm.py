"""Confirmation pages for operations on one record."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import isolate
from trellis.core.gate import Result
from trellis.core.keys import tidy_reason
from trellis.errors import Refused
from trellis.sentences import say


@dataclass(frozen=True)
class Confirmation:
    """A confirmation page for an operation on one record, such as rotating, revoking or deleting it.

    The page is `/{section}/{id}/{action}`, and its template `{section}/{action}.html`, which extends `confirm.html`. `fetch` reads
    the record, which must have a `name`. Afterwards, the page of the record, or the list if it `deletes` the record, shows what
    `tell` returns, with a link that undoes it if `is_undone`; or `respond` returns another response. `raw` is sent in addition to
    the form. If it `confirms`, the panel asks for the password first. Sending the same form again has no effect, even if it
    `deletes` the record. `find_objection` returns why there is nothing to confirm, or ""; then neither page does anything.
    """

    section: str
    action: str
    operation: str
    title: str
    button: str
    fetch: Callable[[PageRequest], Awaitable[Mapping[str, Any]]]
    tell: Callable[[Mapping[str, Any], Result], str] = lambda _, __: ""
    respond: Callable[[PageRequest, Mapping[str, Any], Result], Response] | None = None
    tone: str = "primary"
    build_form: Callable[[Submitted | None], Form] = lambda typed: Form((), typed)
    raw: Mapping[str, Any] = field(default_factory=dict)
    confirms: bool = False
    deletes: bool = False
    is_undone: bool = False
    find_objection: Callable[[Mapping[str, Any]], str] = lambda _: ""

    @property
    def pages(self) -> tuple[Page, Page]:
        """The page that asks for confirmation, and the one that runs the operation."""
        path = f"/{self.section}/{{id:int}}/{self.action}"
        asking = Page("GET", path, self.show, self.section, needs=(self.operation,), confirms=self.confirms)
        return asking, replace(asking, method="POST", run=self.run)

    async def show(self, request: PageRequest) -> Response:
        """Ask for confirmation, or go back to the record if there is nothing to confirm."""
        record = await self.fetch(request)
        if objection := self.find_objection(record):
            return self._go_back(request, record, objection)
        return self._show(request, record, self.build_form(None))

    async def run(self, request: PageRequest) -> Response:
        """Run the operation, or go back to the record if there is nothing to confirm, unless this form has done it already."""
        try:
            record, form = await self.fetch(request), self.build_form(request.form)
        except Refused as refused:
            if refused.status != 404 or not self.deletes:
                raise
            return await self._respond_again(request)
        if (objection := self.find_objection(record)) and await request.find_done(self.operation) is None:
            request.require_fresh_form()
            return self._go_back(request, record, objection)
        try:
            raw = {**form.raw(), **self.raw}
            result = await request.perform_once(self.operation, raw, record["id"], reason=_find_reason(request, raw))
        except Refused as refused:
            return self._show(request, record, form.add_refusal(refused))
        if self.respond is not None:
            return self.respond(request, record, result)
        path = f"/{self.section}" if self.deletes else f"/{self.section}/{record['id']}"
        return request.redirect(path, self.tell(record, result), undo=result.event if self.is_undone else None)

    def _go_back(self, request: PageRequest, record: Mapping[str, Any], objection: str) -> Response:
        return request.redirect(f"/{self.section}/{record['id']}", objection, "note")

    async def _respond_again(self, request: PageRequest) -> Response:
        """Respond to a form that deleted the record and was sent again. Raises Refused for any other form."""
        raw = {**self.build_form(request.form).raw(), **self.raw}
        await request.perform_once(self.operation, raw, request.number("id"), reason=_find_reason(request, raw))
        return request.redirect(f"/{self.section}", say("It was deleted."))

    def _show(self, request: PageRequest, record: Mapping[str, Any], form: Form) -> Response:
        return request.page(
            f"{self.section}/{self.action}.html",
            title=say(self.title, name=isolate(record["name"])),
            record=record,
            form=form,
            button=self.button,
            tone=self.tone,
        )


def _find_reason(request: PageRequest, raw: Mapping[str, Any]) -> str:
    return tidy_reason(str(raw.get("reason") or "")) or request.reason
