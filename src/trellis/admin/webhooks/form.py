"""The form of a webhook, and the events that one wants: as boxes by kind of node, and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.page import Submitted
from trellis.core.events import singular_of
from trellis.core.fields import EVERYONE
from trellis.core.operation import Environment
from trellis.core.webhooks import EVERYTHING, SETTINGS
from trellis.errors import Fault

_LABELS: Final = {"url": "Address", "events": "What it is told", "enabled": "Send messages"}
_HELP: Final = {
    "url": "An http or https address on the open internet. Messages hold whole records: use https.",
    "events": "",
    "description": "What it is for. Shown in lists.",
    "enabled": "What happens while it is off waits, and is sent when it is switched on.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The events of one kind: the pattern for all of them, and each with its word, such as `created`."""

    title: str
    every: str
    types: tuple[tuple[str, str], ...]


def rows_of(environment: Environment) -> tuple[Row, ...]:
    """Give the events that there are, by kind."""
    words: dict[str, list[tuple[str, str]]] = {}
    for name in environment.event_types:
        words.setdefault(name.partition(".")[0], []).append((name, name.partition(".")[2]))
    singulars = {kind.title: singular_of(kind.name) for kind in environment.kinds}
    return tuple(Row(title, f"{singular}.*", tuple(words[singular])) for title, singular in singulars.items())


class WebhookForm(Form):
    """The settings of a webhook: `WebhookForm(environment, typed=visit.form)`, `WebhookForm(environment, webhook=record)`."""

    def __init__(
        self, environment: Environment, *, webhook: Mapping[str, Any] | None = None, typed: Submitted | None = None
    ) -> None:
        self.rows = rows_of(environment)
        super().__init__(SETTINGS, webhook if typed is None else typed, widgets={"events": "groups"}, labels=_LABELS, help=_HELP)

    @property
    def known(self) -> frozenset[str]:
        """Everything that has a box."""
        return frozenset((EVERYTHING, *(row.every for row in self.rows), *(name for row in self.rows for name, _ in row.types)))

    @property
    def strange(self) -> tuple[str, ...]:
        """What is ticked and has no box: events of a kind that this community does not hold any more."""
        return tuple(name for name in self["events"].chosen if name and name not in self.known)

    def sentence(self, fault: Fault) -> str:
        """Write a fault for a person; without a single tick, what to do about it here."""
        if fault.field == "events" and self._typed is not None and not any(self._typed.all("events")):
            return f"{self._label('events')}: tick at least one box."
        return super().sentence(fault)

    def settings(self) -> dict[str, Any]:
        """Give what was typed as the operations on webhooks take it, without events that a wider box covers. Raises Refused."""
        raw = self.raw()
        if (events := raw.get("events")) not in (None, EVERYONE):
            raw["events"] = [name for name in events if name.endswith(".*") or f"{name.partition('.')[0]}.*" not in events]
        return raw


def words_of(patterns: Sequence[str], environment: Environment) -> str:
    """Say in words what a webhook wants."""
    if EVERYTHING in patterns:
        return "Every event, future ones included"
    left = list(patterns)
    said: list[str] = []
    for row in rows_of(environment):
        some = [word for name, word in row.types if name in left]
        if row.every in left:
            said.append(f"{row.title}: everything")
        elif some:
            said.append(f"{row.title}: {', '.join(some)}")
        left = [name for name in left if name != row.every and name not in dict(row.types)]
    return "; ".join(said + left)


def name_of(webhook: Mapping[str, Any]) -> str:
    """Name a webhook, which has no name: by its description, or by its address without the scheme."""
    return str(webhook["description"] or webhook["url"].partition("://")[2]).strip()[:80]
