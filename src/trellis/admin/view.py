"""Fills in templates: the environment, what every template is given, and how moments and numbers are written.

Every template extends `layout.html` (blocks: `actions`, `main`) and gets, beside what its page gives:
`visit`, `me` (None when nobody is signed in), `csrf`, `menu`, `section`, `flash` and `now`. Macros come by
`{% import "macros.html" as ui with context %}`. There is no inline script and no inline style anywhere: the content security
policy would not run them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from trellis import __version__
from trellis.admin.events import told
from trellis.admin.nodes import actions_of, colour, marks
from trellis.admin.page import PREFIX, Visit
from trellis.admin.static import Static
from trellis.core.catalogue import Catalogue
from trellis.core.nodes import NodeKind

_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the menu. `icon` is a name from templates/macros.html."""

    section: str
    title: str
    path: str
    icon: str


def menu(kinds: tuple[NodeKind, ...]) -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """Give the menu: headings with their entries. The kinds of nodes come from the catalogue."""
    nodes = tuple(
        Entry(kind.name, kind.title, f"{PREFIX}/{kind.name}", kind.name if kind.name in _DRAWN else "node")
        for kind in in_order(kinds)
    )
    return (
        ("", (Entry("overview", "Overview", PREFIX, "overview"),)),
        ("Community", nodes),
        (
            "Programs",
            (
                Entry("keys", "API keys", f"{PREFIX}/keys", "key"),
                Entry("requests", "Requests", f"{PREFIX}/requests", "requests"),
                Entry("webhooks", "Webhooks", f"{PREFIX}/webhooks", "webhooks"),
                Entry("reference", "API reference", "/api/docs", "reference"),
            ),
        ),
        (
            "System",
            (
                Entry("events", "Events", f"{PREFIX}/events", "events"),
                Entry("administrators", "Administrators", f"{PREFIX}/administrators", "administrators"),
            ),
        ),
    )


def in_order(kinds: tuple[NodeKind, ...]) -> list[NodeKind]:
    """Put the kinds as the menu has them: the ordered ones first, the groups last."""
    return sorted(kinds, key=lambda kind: (kind.is_group, not kind.tree and not kind.ordered))


_DRAWN: Final = frozenset({"forums", "calendars", "categories", "groups", "blogs"})


class View:
    """The templates of the panel."""

    def __init__(self, catalogue: Catalogue, kinds: tuple[NodeKind, ...], community: str, static: Static) -> None:
        self._menu = menu(kinds)
        self.environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.environment.globals.update(
            static=static.address,
            community=community,
            version=__version__,
            prefix=PREFIX,
            told=told,
            marks=marks,
            actions=lambda kind: actions_of(catalogue, kind),
            colour=colour,
            kinds={kind.name: kind for kind in in_order(kinds)},
        )
        self.environment.filters.update(time=time, ago=ago, number=number, plural=plural, query=query)

    def render(self, template: str, visit: Visit, context: Mapping[str, Any]) -> str:
        """Give the HTML of a template."""
        given = {
            "title": "",
            "visit": visit,
            "me": visit.me,
            "csrf": visit.csrf,
            "menu": self._menu,
            "section": visit.section,
            "flash": visit.take_flash(),
            "now": visit.now,
        }
        return self.environment.get_template(template).render(given | dict(context))


def time(moment: str | None, otherwise: str = "never") -> Markup:
    """Write a moment in UTC to the minute; a script shows it in the reader's own zone. `otherwise` stands for none."""
    if not moment:
        return Markup('<span class="quiet">{}</span>').format(otherwise)
    at = datetime.fromisoformat(moment).astimezone(UTC)
    return Markup('<time datetime="{}" data-time>{}</time>').format(moment, f"{at.day} {at:%b %Y, %H:%M} UTC")


def ago(moment: str | None, now: str, otherwise: str = "never") -> Markup:
    """Write how long ago a moment is, or how far ahead, with the moment itself for whoever points at it."""
    if not moment:
        return Markup('<span class="quiet">{}</span>').format(otherwise)
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(moment)).total_seconds()
    at = datetime.fromisoformat(moment).astimezone(UTC)
    full = f"{at.day} {at:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(moment, full, _span(seconds))


_SPANS: Final = ((86_400 * 365, "year"), (86_400 * 30, "month"), (86_400, "day"), (3600, "hour"), (60, "minute"))


def _span(seconds: float) -> str:
    away = abs(seconds)
    if away < 60:
        return "just now" if seconds >= 0 else "in a moment"
    length, unit = next((length, unit) for length, unit in _SPANS if away >= length)
    count = plural(int(away // length), unit)
    return f"{count} ago" if seconds >= 0 else f"in {count}"


def number(value: int) -> str:
    """Write a number with its thousands apart."""
    return f"{value:,}"


def plural(count: int, one: str, many: str = "") -> str:
    """Write a number with its noun: `1 key`, `3 keys`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def query(values: Mapping[str, Any], **changes: Any) -> str:
    """Write parameters as the end of an address, some of them changed; None takes one away: `?page=2&q=x`."""
    merged = {name: value for name, value in {**values, **changes}.items() if value not in (None, "")}
    return "?" + urlencode(merged) if merged else "?"
