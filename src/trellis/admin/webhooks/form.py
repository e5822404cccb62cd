"""The form of a webhook, and its events: as boxes by kind of node, and in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.submitted import Submitted
from trellis.admin.webhooks.names import webhook_name
from trellis.core.alarms import ALARMS, alarm_type
from trellis.core.fields import EVERYONE
from trellis.core.nodes import NodeKind
from trellis.core.operation import Environment
from trellis.core.subscriptions import EVERYTHING, is_alarm
from trellis.core.verbs import singular_of
from trellis.core.webhooks import SETTINGS
from trellis.errors import Fault
from trellis.sentences import join, say

_LABELS: Final = {"url": say("Address"), "events": say("Events"), "enabled": say("Send messages")}
_ALARM_LABELS: Final = {alarm_type(rule.name): rule.label for rule in ALARMS}
_HELP: Final = {
    "url": say("An http or https address on the public internet. Use https, because messages contain whole records."),
    "events": "",
    "description": say("What it is for. Shown in lists."),
    "enabled": say("While the webhook is off, events wait and are sent once it is switched on."),
}


@dataclass(frozen=True, slots=True)
class ResourceEvents:
    """The events of one resource: the pattern for all of them, and each type with a word such as `created`, or a label."""

    title: str
    every: str
    types: tuple[tuple[str, str], ...]


def event_rows(kinds: Sequence[NodeKind], types: Sequence[str]) -> tuple[ResourceEvents, ...]:
    """Return all event types: first those of each kind of node, then all others."""
    words: dict[str, list[tuple[str, str]]] = {}
    for name in types:
        resource, _, word = name.partition(".")
        words.setdefault(resource, []).append((name, _ALARM_LABELS.get(name) or word.replace("_", " ")))
    titles = {singular_of(kind.name): kind.title for kind in kinds}
    titles |= {singular: f"{singular.capitalize()}s" for singular in words if singular not in titles}
    return tuple(ResourceEvents(title, f"{singular}.*", tuple(words[singular])) for singular, title in titles.items())


class WebhookForm(Form):
    """The settings of a webhook: `WebhookForm(environment, typed=request.form)`, `WebhookForm(environment, webhook=record)`."""

    def __init__(
        self, environment: Environment, *, webhook: Mapping[str, Any] | None = None, typed: Submitted | None = None
    ) -> None:
        self.rows = event_rows(environment.kinds, environment.event_types)
        super().__init__(SETTINGS, webhook if typed is None else typed, widgets={"events": "groups"}, labels=_LABELS, help=_HELP)

    @property
    def known(self) -> frozenset[str]:
        """All patterns that have a box."""
        return frozenset((EVERYTHING, *(row.every for row in self.rows), *(name for row in self.rows for name, _ in row.types)))

    @property
    def alarms(self) -> ResourceEvents | None:
        """The row of alarms, which is shown separately: no other box covers them."""
        return next((row for row in self.rows if is_alarm(row.every)), None)

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Ticked patterns without a box: events of kinds that this community no longer has."""
        return tuple(name for name in self["events"].chosen if name and name not in self.known)

    def text_of(self, fault: Fault) -> str:
        """Return the text of a fault. If no box is ticked, it says what to do."""
        if fault.field == "events" and self._typed is not None and not any(self._typed.all("events")):
            return say("{label}: tick at least one box.", label=self._label("events"))
        return super().text_of(fault)

    def settings(self) -> dict[str, Any]:
        """Return the typed values as operations on webhooks expect them, without events that a wider box covers. Raises Refused."""
        raw = self.raw()
        if raw.get("events") == EVERYONE:  # EVERYTHING covers no alarms
            raw["events"] = [EVERYTHING, *(name for name in self["events"].chosen if is_alarm(name))]
        if (events := raw.get("events")) is not None:
            raw["events"] = [name for name in events if name.endswith(".*") or f"{name.partition('.')[0]}.*" not in events]
        return raw


def describe_events(patterns: Sequence[str], environment: Environment) -> str:
    """Describe the events of a webhook in words."""
    everything = EVERYTHING in patterns
    left = [name for name in patterns if not everything or is_alarm(name)]
    parts = [say("All events, including future types")] if everything else []
    for row in event_rows(environment.kinds, environment.event_types):
        some = [word for name, word in row.types if name in left]
        if row.every in left:
            parts.append(say("{title}: everything", title=say(row.title)))
        elif some:
            parts.append(say("{title}: {events}", title=say(row.title), events=join(map(say, some), ", ")))
        left = [name for name in left if name != row.every and name not in dict(row.types)]
    return join((*parts, *left), "; ")


def describe_webhook(webhook: Mapping[str, Any], environment: Environment) -> dict[str, Any]:
    """Return a webhook with a `name`, and its events in `words`."""
    return {**webhook, "name": webhook_name(webhook), "words": describe_events(webhook["events"], environment)}
