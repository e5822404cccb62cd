"""Renders templates: the environment, the context of every template, and the formats of times and numbers.

Every template extends `layout.html` (blocks: `actions`, `main`) and gets, besides the page's own context: `request`, `me` (None if
nobody is signed in), `csrf`, `menu`, `section`, `section_title`, `flash`, `waiting` (the numbers of open proposals and unread
alarms, by section of the menu), `allows(operation, id)` (whether the administrator's role has it), `party` (the relying party that
passkeys are made for; None if none can be made), `sso` (the settings of single sign-on), `now`, `clock` (the time zone of the page:
times/zone.py), `language` (the language of its texts: languages/), `languages` (those that can be chosen, by code), `theme` and
`ui` (the macros of macros.html, which are made once for each page). Texts are marked with `{% trans %}`, `ngettext` and `_`:
languages/marks.py. There are no inline scripts or styles: the content security policy forbids them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from jinja2 import pass_context
from markupsafe import Markup

from trellis import __version__
from trellis.admin import PREFIX
from trellis.admin.allowed import Allowed
from trellis.admin.events import changed_labels
from trellis.admin.languages import (
    count_marked,
    count_nodes,
    format_text,
    list_languages,
    show,
    translate,
    translate_marked,
)
from trellis.admin.many import MOST, find_many_actions
from trellis.admin.nodes import describe_lock, find_actions, find_guests, node_badges, node_colour, path_above
from trellis.admin.page import PageRequest
from trellis.admin.static import Static
from trellis.admin.times import UTC_CLOCK, Clock
from trellis.admin.webhooks import webhook_name
from trellis.core.actor import describe_actor
from trellis.core.catalogue import Catalogue
from trellis.core.factors import find_party
from trellis.core.keys import redact_keys
from trellis.core.nodes import NodeKind
from trellis.http.design import TEMPLATES as SHARED
from trellis.http.routes import REFERENCE
from trellis.languages import Language
from trellis.sentences import say

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context as JinjaContext

_NEVER: Final = say("never")
_SHORT: Final = 100  # milliseconds below which tenths are shown
_LONG: Final = 10_000  # milliseconds from which seconds are shown
_HUES: Final = 6  # how many base.css has
_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One entry of the menu. `icon` is a name from templates/macros.html."""

    section: str
    title: str
    path: str
    icon: str


def build_menu(kinds: tuple[NodeKind, ...]) -> tuple[tuple[str, tuple[MenuEntry, ...]], ...]:
    """Return the menu: headings with their entries. The kinds of nodes come from the catalogue."""
    nodes = tuple(MenuEntry(kind.name, kind.title, f"{PREFIX}/{kind.name}", find_icon(kind.name)) for kind in sort_kinds(kinds))
    return (
        ("", (MenuEntry("overview", say("Overview"), PREFIX, "overview"),)),
        (say("Community"), (*nodes, MenuEntry("structure", say("Structure"), f"{PREFIX}/structure", "structure"))),
        (
            say("Programs"),
            (
                MenuEntry("keys", say("API keys"), f"{PREFIX}/keys", "key"),
                MenuEntry("proposals", say("Proposals"), f"{PREFIX}/proposals", "proposals"),
                MenuEntry("requests", say("Requests"), f"{PREFIX}/requests", "requests"),
                MenuEntry("webhooks", say("Webhooks"), f"{PREFIX}/webhooks", "webhooks"),
                MenuEntry("reference", say("API reference"), REFERENCE, "reference"),
            ),
        ),
        (
            say("System"),
            (
                MenuEntry("alarms", say("Alarms"), f"{PREFIX}/alarms", "alert"),
                MenuEntry("events", say("Events"), f"{PREFIX}/events", "events"),
                MenuEntry("administrators", say("Administrators"), f"{PREFIX}/administrators", "administrators"),
            ),
        ),
    )


def sort_kinds(kinds: tuple[NodeKind, ...]) -> list[NodeKind]:
    """Sort the kinds for the menu: ordered ones first, groups last."""
    return sorted(kinds, key=lambda kind: (kind.is_group, not kind.tree and not kind.ordered))


_NODES: Final = ("forums", "calendars", "categories", "groups", "blogs")
_ICONS: Final = {"keys": "key", **{name: name for name in (*_NODES, "webhooks", "requests", "events")}}


def find_icon(resource: str) -> str:
    """Return the icon of a resource; kinds that have none of their own share one."""
    return _ICONS.get(resource, "node")


_WAITS_AS: Final = {"proposals": "open", "alarms": "unread"}  # what is counted beside an entry of the menu


class View:
    """The templates of the panel."""

    def __init__(self, catalogue: Catalogue, kinds: tuple[NodeKind, ...], community: str, static: Static, allowed: Allowed) -> None:
        self._menu = build_menu(kinds)
        self._titles = {entry.section: entry.title for _, entries in self._menu for entry in entries}
        self._catalogue = catalogue
        self._kinds = kinds
        self._community = community
        self._static = static
        self._allowed = allowed

    @cached_property
    def environment(self) -> "Environment":
        """The configuration of Jinja2."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  # deferred to keep start-up fast

        environment = Environment(
            loader=FileSystemLoader((_TEMPLATES, SHARED)),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=show,
            extensions=["jinja2.ext.i18n"],
        )
        environment.policies["ext.i18n.trimmed"] = True
        environment.newstyle_gettext = True  # type: ignore[attr-defined]  # the extension adds it
        environment.globals.update(
            _=translate,
            gettext=translate_marked,
            ngettext=count_marked,
            counted=count_nodes,
            static=self._static.address,
            community=self._community,
            version=__version__,
            prefix=PREFIX,
            reference=REFERENCE,
            changed_labels=lambda event: changed_labels(event, self._kinds),
            describe_actor=describe_actor,
            actions=lambda kind: find_actions(self._catalogue, kind),
            node_badges=node_badges,
            node_lock=partial(describe_lock, find_guests(self._kinds)),
            node_colour=node_colour,
            path_above=path_above,
            find_icon=find_icon,
            hue=self._find_hue,
            waits_as=_WAITS_AS,
            webhook_name=webhook_name,
            most_at_once=MOST,
            catalogue=self._catalogue,
            kinds={kind.name: kind for kind in sort_kinds(self._kinds)},
        )
        environment.filters.update(
            format=format_text,
            exact=Markup.escape,
            time=_show_time,
            ago=_show_age,
            second=_show_second,
            minute=_show_minute,
            number=_show_number,
            took=_show_duration,
            query=format_query,
        )
        return environment

    def render(self, template: str, request: PageRequest, context: Mapping[str, Any]) -> str:
        """Return the HTML of a template."""
        shared = {
            "title": "",
            "request": request,
            "me": request.me,
            "csrf": request.csrf,
            "menu": self.menu_of(request),
            "allows": partial(self._allowed.may, request),
            "many_actions": partial(self._find_many_actions, request, {}),
            "section": request.section,
            "section_title": self._titles.get(request.section, ""),
            "flash": request.take_flash(),
            "now": request.now,
            "here": _find_here(request),
            "returns": self._find_return(request),
            "clock": request.clock,
            "language": request.language,
            "languages": list_languages(),
            "theme": request.me.theme if request.me else "",
            "waiting": request.waiting,
            "party": find_party(request.gate.environment.public_url),
            "sso": request.gate.environment.sign_on,
        }
        whole = shared | dict(context)
        whole["ui"] = self.environment.get_template("macros.html").make_module(whole)
        return self._allowed.leave_out(self.environment.get_template(template).render(whole), request)

    def _find_hue(self, section: str) -> str:
        """Return the CSS class of a kind's colour; "" for other sections. Colours only help: an icon and a name accompany each."""
        names = [kind.name for kind in self._kinds]
        return f"hue{names.index(section) % _HUES + 1}" if section in names else ""

    def _find_many_actions(self, request: PageRequest, known: dict[str, list[Any]], kind: NodeKind) -> list[Any]:
        """Return the actions on several nodes of a kind that the administrator may run."""
        if kind.name not in known:  # each row of a page calls this
            found = find_many_actions(self._catalogue, kind)
            known[kind.name] = [
                action for action in found if self._allowed.may_open(request, f"/{kind.name}/many/{action.name}", "POST")
            ]
        return known[kind.name]

    def may_open(self, request: PageRequest, path: str) -> bool:
        """Return whether the administrator may open the page at an address, given without /admin."""
        return self._allowed.may_open(request, path)

    def _find_return(self, request: PageRequest) -> str:
        """Return the address to which *Back* leads when somebody continues from the answer to a form; "" if there is none."""
        is_answer = request.http.method == "POST" and redact_keys(request.path) == request.path
        return request.path if is_answer and self._allowed.is_page(request.path.removeprefix(PREFIX)) else ""

    def menu_of(self, request: PageRequest) -> list[tuple[str, list[MenuEntry]]]:
        """Return the menu with only the entries whose pages the administrator may open."""
        entries = (
            (heading, [one for one in those if self._allowed.may_open(request, one.path.removeprefix(PREFIX))])
            for heading, those in self._menu
        )
        return [(heading, those) for heading, those in entries if those]


def _find_here(request: PageRequest) -> str:
    """Return the address to return to after a switch: the page's own, or the overview if it received a form or contains a key."""
    is_plain = request.http.method == "GET" and redact_keys(request.path) == request.path
    return request.path if is_plain else PREFIX


@pass_context
def _show_time(context: "JinjaContext", moment: str | None, otherwise: str = _NEVER) -> Markup:
    """Show a time to the minute; `otherwise` is shown if there is none."""
    if not moment:
        return Markup('<span class="quiet">{}</span>').format(translate(context, otherwise))
    return Markup('<time datetime="{}" data-time>{}</time>').format(moment, context["clock"].full(moment))


@pass_context
def _show_second(context: "JinjaContext", moment: str) -> Markup:
    """Show a time to the second, as in logs."""
    return Markup('<time datetime="{}" data-time="seconds">{}</time>').format(moment, context["clock"].exact(moment))


@pass_context
def _show_minute(context: "JinjaContext", moment: str) -> Markup:
    """Show a time to the minute, as in logs."""
    return Markup('<time datetime="{}">{}</time>').format(moment, context["clock"].short(moment))


@pass_context
def _show_age(context: "JinjaContext", moment: str | None, now: str, otherwise: str = _NEVER) -> Markup:
    return format_age(moment, now, translate(context, otherwise), context["clock"])


def format_age(moment: str | None, now: str, otherwise: str = _NEVER, clock: Clock = UTC_CLOCK) -> Markup:
    """Format how long ago a time is, or how far ahead, with the time itself as a tooltip."""
    if not moment:
        return Markup('<span class="quiet">{}</span>').format(otherwise)
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(moment)).total_seconds()
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(
        moment, clock.full(moment), clock.language.age(seconds)
    )


@pass_context
def _show_number(context: "JinjaContext", value: int) -> str:
    """Show a number with thousands separators."""
    language: Language = context["language"]
    return language.number(value)


@pass_context
def _show_duration(context: "JinjaContext", milliseconds: float) -> str:
    """Show how long something took: `0.42 ms`, `3.7 ms`, `1,234 ms`, `12.5 s`."""
    if milliseconds < 1:
        duration = say("{took:,.2f} ms", took=milliseconds)
    elif milliseconds < _LONG:
        duration = say("{took:,.1f} ms", took=milliseconds) if milliseconds < _SHORT else say("{took:,.0f} ms", took=milliseconds)
    else:
        duration = say("{took:,.1f} s", took=milliseconds / 1000)
    return translate(context, duration)


def format_query(values: Mapping[str, Any], **changes: Any) -> str:
    """Format parameters as a query, such as `?page=2&q=x`, with some of them changed; None or "" removes one."""
    merged = {name: value for name, value in {**values, **changes}.items() if value not in (None, "")}
    return "?" + urlencode(merged) if merged else "?"
