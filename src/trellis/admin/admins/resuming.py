"""Continuing where somebody was before they were asked who they are: at a page, or with a form that was kept meanwhile."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.page import PageRequest
from trellis.admin.submitted import Submitted, show_typed
from trellis.sentences import format_seconds, join, mark, say

Carried = tuple[tuple[str, str], ...]  # the fields of a form, by name

_WAITS: Final = mark("There were too many attempts. Wait {wait}.")


def way_back(form: Submitted) -> dict[str, Any]:
    """Return the template context that keeps where to go back to, and the form to send again there."""
    return {"next": form.get("next", ""), "carried": _unpack(form), "replay": form.get("replay") == "1"}


def turn_away(
    request: PageRequest, template: str, context: Mapping[str, Any], wrong: str, wait: int = 0, waits: str = _WAITS
) -> Response:
    """Show a form again to somebody whose attempt was `wrong`, or who has to wait for some seconds, as the text `waits` says."""
    if not wait:
        return request.page(template, status=403, **context, fault=wrong)
    response = request.page(template, status=429, **context, fault=say(waits, wait=format_seconds(wait)))
    response.headers["retry-after"] = str(wait)
    return response


def go_on(request: PageRequest, title: str, note: str, *, with_token: bool) -> Response:
    """Redirect to the page that was requested first, or show the form that was sent to it, to be sent again."""
    to = find_panel_path(request.form.get("next", ""))
    if request.form.get("replay") != "1":
        return request.redirect(to)
    carried = _unpack(request.form)
    kept = [say("What you typed is still here.")] if show_typed(carried) else []
    return show_kept_form(request, title, PREFIX + to, carried, join([note, *kept]), with_token=with_token)


def show_kept_form(
    request: PageRequest,
    title: str,
    to: str,
    carried: Carried,
    note: str,
    *,
    with_token: bool,
    status: int = 200,
) -> Response:
    """Show the values of a kept form, to be sent again to the path `to`.

    If it is shown `with_token`, the form takes effect when it is sent; otherwise, its own page first shows it again.
    """
    context = {"title": title, "to": to, "carried": carried, "shown": show_typed(carried), "note": note, "with_token": with_token}
    return request.page("resend.html", status=status, **context)


def find_panel_path(path: str) -> str:
    """Return a path to go back to, without /admin, if it is a path of the panel; otherwise the path of the overview."""
    inside = path == PREFIX or path.startswith((PREFIX + "/", PREFIX + "?"))
    plain = path.isascii() and path.isprintable() and "\\" not in path and "//" not in path.partition("?")[0]
    return path.removeprefix(PREFIX) if inside and plain else ""


def _unpack(form: Submitted) -> Carried:
    """Return the fields of an earlier form from the pairs that this form carries."""
    return Submitted(tuple(zip(form.all("carried-name"), form.all("carried-value"), strict=False))).carried()
