"""How one sees the panel: the time zone of its times, which UTC may stand for, and its theme."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.resuming import find_panel_path
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.core.admins import THEMES, set_view
from trellis.core.fields import PLAIN_ZONE, Field, Text, find_zone, list_zones

_HERE: Final = "/account"
_ZONE: Final = Field("zone", Text(60), "All pages show times in it, and take them in it where you type one.")
_THEME: Final = Field("theme", Text(10), "")
_THEMES: Final = (("", "As the system"), ("light", "Light"), ("dark", "Dark"))


def build_view_form(request: PageRequest) -> Form:
    """Build the form with one's time zone and theme."""
    me, browser = request.signed_in, request.read_cookie("zone")
    told = browser if find_zone(browser) is not None else PLAIN_ZONE
    zones: list[tuple[str, str]] = [("", f"As the browser: {told}"), *((name, name) for name in list_zones())]
    values: dict[str, Any] = {"zone": me.zone, "theme": me.theme}
    labels = {"zone": "Time zone", "theme": "Theme"}
    return Form((_ZONE, _THEME), values, choices={"zone": zones, "theme": _THEMES}, labels=labels, id="view")


async def save(request: PageRequest) -> Response:
    """Take one's time zone and theme."""
    zone, theme = request.form.get("zone", ""), request.form.get("theme", "")
    if (zone and find_zone(zone) is None) or theme not in THEMES:
        request.require_fresh_form()
        return request.redirect(_HERE, "There is no such time zone or theme. Nothing was saved: choose one of the list.", "bad")
    await request.write(set_view, request.signed_in.id, zone=zone, shows_utc=False, theme=theme)
    return request.redirect(_HERE, "Your time zone and theme are saved.")


async def switch_zone(request: PageRequest) -> Response:
    """Show times in UTC instead of one's time zone, or in that again, and go back to the page."""
    await request.write(set_view, request.signed_in.id, shows_utc=request.form.get("utc") == "1")
    return request.redirect(find_panel_path(request.form.get("next", "")))


PAGES: Final = (
    Page("POST", f"{_HERE}/view", save, "account"),
    Page("POST", f"{_HERE}/zone", switch_zone, "account"),
)
