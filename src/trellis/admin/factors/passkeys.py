"""An administrator's own passkeys: adding, renaming and removing one."""

import asyncio
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.factors.index import BEFORE_FACTOR, conclude
from trellis.admin.forms import Form
from trellis.admin.page import FACTORS, Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.factors import PASSKEY_NAME, Owner, load, options_of_new_passkey
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say

_SECTION: Final = "account"
_HERE: Final = f"{FACTORS}/passkeys"
_ANSWER: Final = "passkey"  # the field in which a script adds the new passkey to the form


async def new(request: PageRequest, form: Form | None = None) -> Response:
    """Ask for a name; a script asks the browser for the passkey."""
    form = form or Form((PASSKEY_NAME,))
    return request.page("factors/new_passkey.html", title=say("Add a passkey"), form=form)


async def options(request: PageRequest) -> Response:
    """Return the options with which the script asks the browser for a passkey."""
    me = request.signed_in
    await asyncio.to_thread(load)
    asked = await request.runner.read(options_of_new_passkey, Owner(me.id, me.name, me.login), request.csrf)
    return Response(asked, media_type="application/json")


async def add(request: PageRequest) -> Response:
    """Add the passkey that the browser has made."""
    request.require_fresh_form()
    me = request.signed_in
    form = Form((PASSKEY_NAME,), Submitted(pair for pair in request.form.pairs if pair[0] != _ANSWER))
    await asyncio.to_thread(load)  # here rather than in the writer
    try:
        answer = {_ANSWER: request.form.get(_ANSWER, ""), "binding": request.csrf, "session": me.session_id}
        added = await request.perform("admins.add_passkey", {**form.raw(), **answer}, me.id)
    except Refused as refused:
        return await new(request, form.add_refusal(refused))
    if added.event is None:
        added_before = say(
            "The passkey {name} was added. The form was sent twice: if you have not seen your recovery codes, generate new ones.",
            name=isolate(added.value["name"]),
        )
        return request.redirect(FACTORS, added_before, "note")
    ended = "" if me.has_factor else say(" You are signed out everywhere else.")
    return conclude(
        request,
        say("The passkey {name} was added.{ended}", name=isolate(added.value["name"]), ended=ended),
        added.value["recoveryCodes"],
    )


async def show(request: PageRequest, form: Form | None = None) -> Response:
    """Show a passkey, with a form for its name."""
    passkey = await _fetch(request)
    form = form or Form((PASSKEY_NAME,), passkey)
    return request.page("factors/passkey.html", title=passkey["name"], passkey=passkey, form=form)


async def _fetch(request: PageRequest) -> dict[str, Any]:
    factors = await request.fetch("admins.factors", target=request.signed_in.id)
    number = request.number("id")
    found: dict[str, Any] | None = next((one for one in factors["passkeys"] if one["id"] == number), None)
    if found is None:
        raise Refused("INVALID_ID", say("You have no passkey with the id {number}.", number=number))
    return found


async def rename(request: PageRequest) -> Response:
    """Rename a passkey."""
    form = Form((PASSKEY_NAME,), request.form)
    request.require_fresh_form()
    try:
        raw = {**form.raw(), "passkey": request.number("id")}
        await request.perform("admins.rename_passkey", raw, request.signed_in.id)
    except Refused as refused:
        if refused.status == 404:
            raise
        return await show(request, form.add_refusal(refused))
    return request.redirect(FACTORS, say("Saved."))


async def remove(request: PageRequest) -> Response:
    """Remove a passkey."""
    me = request.signed_in
    raw = {"passkey": request.number("id"), "session": me.session_id}
    try:
        removed = await request.perform("admins.remove_passkey", raw, me.id)
    except Refused as refused:
        if refused.status != 404:
            raise
        return request.redirect(FACTORS, say("That passkey was already removed."), "note")  # the form was sent twice
    message = say("The passkey {name} was removed, and you are signed out everywhere else.", name=isolate(removed.value["name"]))
    return request.redirect(FACTORS, message)


PAGES: Final = (
    Page("GET", f"{_HERE}/new", new, _SECTION, before=BEFORE_FACTOR, confirms=True),
    Page("POST", f"{_HERE}/new", add, _SECTION, before=BEFORE_FACTOR, confirms=True),
    Page("GET", f"{_HERE}/options", options, _SECTION, before=BEFORE_FACTOR, background=True, confirms=True),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}", rename, _SECTION, confirms=True),
    Page("POST", f"{_HERE}/{{id:int}}/remove", remove, _SECTION, confirms=True),
)
