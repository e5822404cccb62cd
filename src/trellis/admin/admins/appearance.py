"""How an administrator sees the panel: the time zone of its times, or UTC instead, its theme and its language."""

from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.resuming import find_panel_path
from trellis.admin.forms import Form
from trellis.admin.languages import choose_language, find_language, list_languages
from trellis.admin.page import LANGUAGE, Page, PageRequest
from trellis.core.admins import THEMES, set_view
from trellis.core.fields import PLAIN_ZONE, Field, Text, find_zone, list_zones
from trellis.sentences import say

_HERE: Final = "/account"
_ZONE: Final = Field("zone", Text(60), say("Used on all pages, for the times that you see and enter."))
_THEME: Final = Field("theme", Text(10), "")
_LANGUAGE: Final = Field("language", Text(10), "")
_REMEMBERED: Final = 365 * 86_400  # seconds
_THEMES: Final = (("", say("Same as system")), ("light", say("Light")), ("dark", say("Dark")))


def build_view_form(request: PageRequest) -> Form:
    """Build the form for one's time zone and theme, and for one's language if there are several."""
    me, browser = request.signed_in, request.read_cookie("zone")
    zone = browser if find_zone(browser) is not None else PLAIN_ZONE
    zones: list[tuple[str, str]] = [("", say("Same as browser: {zone}", zone=zone)), *((name, name) for name in list_zones())]
    values: dict[str, Any] = {"zone": me.zone, "theme": me.theme, "language": me.language}
    labels = {"zone": say("Time zone"), "theme": say("Theme"), "language": say("Language")}
    choices: dict[str, Any] = {"zone": zones, "theme": _THEMES, "language": _list_languages(request)}
    fields = (_ZONE, _THEME) if len(list_languages()) == 1 else (_LANGUAGE, _ZONE, _THEME)
    return Form(fields, values, choices=choices, labels=labels, id="view")


def _list_languages(request: PageRequest) -> list[tuple[str, str]]:
    offered = list_languages()
    return [("", say("Same as browser: {language}", language=offered[_find_browser_language(request)])), *offered.items()]


def _find_browser_language(request: PageRequest) -> str:
    """Return the language that was chosen in this browser before signing in, or else the one that it asks for."""
    return choose_language(request.read_cookie(LANGUAGE), accepted=request.http.headers.get("accept-language", ""))


async def use_language(request: PageRequest) -> None:
    """Show the page in the language that its reader has chosen, or else in that of the browser."""
    chosen = request.me.language if request.me else ""
    request.language = await find_language(choose_language(chosen, _find_browser_language(request)))


async def save(request: PageRequest) -> Response:
    """Save one's time zone, theme and language; the message is already in the new language."""
    zone, theme = request.form.get("zone", ""), request.form.get("theme", "")
    language = request.form.get("language", request.signed_in.language)
    if (zone and find_zone(zone) is None) or theme not in THEMES:
        request.require_fresh_form()
        told = say("There is no such time zone or theme. Nothing was saved: choose one from the list.")
        return request.redirect(_HERE, told, "bad")
    if language and language not in list_languages():
        request.require_fresh_form()
        return request.redirect(_HERE, say("There is no such language. Nothing was saved: choose one from the list."), "bad")
    await request.write(set_view, request.signed_in.id, zone=zone, shows_utc=False, theme=theme, language=language)
    request.me = replace(request.signed_in, language=language)
    await use_language(request)
    if len(list_languages()) == 1:
        return request.redirect(_HERE, say("Your time zone and theme are saved."))
    return request.redirect(_HERE, say("Your language, time zone and theme are saved."))


async def choose_before_signing_in(request: PageRequest) -> Response:
    """Remember in this browser the language that somebody chose before signing in, and go back to the page."""
    request.require_fresh_form()
    if (code := request.form.get("language", "")) in list_languages():
        request.cookies.append((LANGUAGE, code, _REMEMBERED))
    return request.redirect(find_panel_path(request.form.get("next", "")))


async def switch_zone(request: PageRequest) -> Response:
    """Switch the times on pages between UTC and one's time zone, and go back to the page."""
    await request.write(set_view, request.signed_in.id, shows_utc=request.form.get("utc") == "1")
    return request.redirect(find_panel_path(request.form.get("next", "")))


PAGES: Final = (
    Page("POST", f"{_HERE}/view", save, "account"),
    Page("POST", f"{_HERE}/zone", switch_zone, "account"),
    Page("POST", "/language", choose_before_signing_in, open=True),
)
