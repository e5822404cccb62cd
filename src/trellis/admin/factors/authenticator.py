"""An administrator's own authenticator app: setting it up with a QR code, and removing it."""

import asyncio
import re
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from trellis.admin.factors.index import BEFORE_FACTOR, conclude
from trellis.admin.forms import Form
from trellis.admin.page import FACTORS, Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.factors import CODE, set_up_app
from trellis.errors import Refused
from trellis.sentences import say

_SECTION: Final = "account"
_HERE: Final = f"{FACTORS}/app"
_SALT: Final = "salt"
_SET_UP_BEFORE: Final = say(
    "Your authenticator app is set up. The form was sent twice: if you have not seen your recovery codes, generate new ones."
)


async def new(request: PageRequest, form: Form | None = None) -> Response:
    """Show the QR code and the secret to enter into an app."""
    form, me = form or Form((CODE,)), request.signed_in
    setup = await request.runner.read(set_up_app, me.id, me.login, request.form.get(_SALT, ""))
    return request.page(
        "factors/app.html",
        title=say("Set up an authenticator app"),
        form=form,
        salt=setup.salt,
        secret=" ".join(re.findall(".{1,4}", setup.secret)),
        picture=await asyncio.to_thread(_draw, setup.address),
    )


def _draw(text: str) -> Markup:
    """Return a QR code as inline SVG: black on white in either theme, as cameras want it."""
    import segno  # noqa: PLC0415  # deferred to keep start-up fast

    return Markup(segno.make_qr(text).svg_inline(scale=4, dark="#000", light="#fff"))  # noqa: S704  # the library escapes


async def set_up(request: PageRequest) -> Response:
    """Check the code that the app shows, and require its codes from then on."""
    request.require_fresh_form()
    me = request.signed_in
    form = Form((CODE,), Submitted(pair for pair in request.form.pairs if pair[0] != _SALT))
    try:
        raw = {**form.raw(), _SALT: request.form.get(_SALT, ""), "session": me.session_id}
        done = await request.perform("admins.set_authenticator", raw, me.id)
    except Refused as refused:
        return await new(request, form.add_refusal(refused))
    if done.event is None:
        return request.redirect(FACTORS, _SET_UP_BEFORE, "note")
    ended = "" if me.has_passkey and not me.has_app else say(" You are signed out everywhere else.")
    return conclude(request, say("Your authenticator app is set up.{ended}", ended=ended), done.value["recoveryCodes"])


async def remove(request: PageRequest) -> Response:
    """Remove the app, so that its codes are no longer required."""
    me = request.signed_in
    await request.perform("admins.remove_authenticator", {"session": me.session_id}, me.id)
    return request.redirect(FACTORS, say("Your authenticator app was removed, and you are signed out everywhere else."))


PAGES: Final = (
    Page("GET", _HERE, new, _SECTION, before=BEFORE_FACTOR, confirms=True),
    Page("POST", _HERE, set_up, _SECTION, before=BEFORE_FACTOR, confirms=True),
    Page("POST", f"{_HERE}/remove", remove, _SECTION, confirms=True),
)
