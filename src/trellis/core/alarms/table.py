"""The table of alarms: from the operation of an event, and a condition on it, to the sentence that tells it.

A sentence names whoever did it (`actor`) and what it was done to (`name`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from trellis.core.fields import isolate
from trellis.core.keys import is_key_widened
from trellis.core.roles import OWNER
from trellis.core.webhooks import is_webhook_widened
from trellis.store.events import Event


def _always(_: Event) -> bool:
    return True


def _is_widened_by(widens: Callable[[Any, Any], bool]) -> Callable[[Event], bool]:
    return lambda event: event.before is not None and event.after is not None and widens(event.before, event.after)


def _is_role_widened(event: Event) -> bool:
    """Return whether a role lets somebody do more than the one before. Any other role than that of an owner may."""
    before, after = event.before or {}, event.after or {}
    if before["role"] != after["role"]:
        return bool(before["role"] != OWNER)
    return bool(before["kinds"]) and not (after["kinds"] and set(after["kinds"]) <= set(before["kinds"]))


def _is_new_browser(event: Event) -> bool:
    return bool((event.after or {}).get("newBrowser"))


def _is_by_another(event: Event) -> bool:
    return (event.actor["type"], event.actor["id"]) != ("admin", event.resource_id)


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """An alarm. `operations` are patterns over names of operations; `when` judges an event of these."""

    name: str
    operations: tuple[str, ...]
    sentence: str
    when: Callable[[Event], bool] = _always

    def fits(self, event: Event) -> bool:
        """Return whether an event raises it."""
        return any(fnmatchcase(event.operation, pattern) for pattern in self.operations) and self.when(event)


ALARMS: Final = (
    AlarmRule("new-key", ("keys.create",), "{actor} made the API key {name}."),
    AlarmRule("widened-key", ("keys.*",), "{actor} let the API key {name} do more.", _is_widened_by(is_key_widened)),
    AlarmRule("new-webhook", ("webhooks.create",), "{actor} made a webhook that sends to {name}."),
    AlarmRule(
        "widened-webhook",
        ("webhooks.update",),
        "{actor} changed where a webhook sends or what: {name}.",
        _is_widened_by(is_webhook_widened),
    ),
    AlarmRule("new-administrator", ("admins.create", "admins.invite"), "{actor} made {name} an administrator."),
    AlarmRule("joined-administrator", ("admins.join",), "{name} became an administrator by signing in at the provider."),
    AlarmRule(
        "linked-identity", ("admins.link_identity",), "{actor} linked the account {name} at the provider, which signs them in."
    ),
    AlarmRule("renewed-invitation", ("admins.renew_invitation",), "{actor} made another link by which {name} chooses a password."),
    AlarmRule("enabled-administrator", ("admins.enable",), "{actor} let {name} sign in again."),
    AlarmRule("widened-role", ("admins.set_role", "admins.follow_groups"), "{actor} gave {name} another role.", _is_role_widened),
    AlarmRule("new-browser", ("admins.sign_in", "admins.sign_on"), "{actor} signed in from a new browser.", _is_new_browser),
    AlarmRule("password-set", ("admins.set_password",), "{actor} set a password for {name}.", _is_by_another),
    AlarmRule("reset-second-factor", ("admins.reset_second_factor",), "{actor} took away the second factor of {name}."),
    AlarmRule(
        "removed-second-factor",
        ("admins.remove_passkey", "admins.remove_authenticator"),
        "{actor} removed a second factor of their own.",
    ),
)
_SENTENCES: Final = {rule.name: rule.sentence for rule in ALARMS}
_WHO: Final = {"terminal": "The terminal", "service": "The service"}


def find_alarm(event: Event) -> str | None:
    """Return the name of the alarm that an event raises; None for none."""
    return next((rule.name for rule in ALARMS if rule.fits(event)), None)


def tell(name: str, event: Event) -> str:
    """Return what has happened, in a sentence."""
    record = event.after or event.before or {}
    named = record.get("url") or record.get("name") or "?"
    who = _WHO.get(event.actor["type"]) or isolate(str(event.actor["name"]))
    return _SENTENCES.get(name, "{actor} did something that a newer release watches.").format(actor=who, name=isolate(str(named)))
