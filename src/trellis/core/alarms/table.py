"""The table of alarms: which operations and conditions raise each alarm, and the sentence that describes it.

A sentence names whoever caused the event (`actor`) and what it was done to (`name`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from trellis.core.actor import describe_actor
from trellis.core.fields import isolate
from trellis.core.keys import is_for_trying, is_key_widened
from trellis.core.operation import Raised
from trellis.core.subscriptions import is_webhook_widened
from trellis.sentences import mark, say
from trellis.store.events import Event


def _always(_: Event) -> bool:
    return True


def _is_widened_by(widens: Callable[[Any, Any], bool]) -> Callable[[Event], bool]:
    return lambda event: event.before is not None and event.after is not None and widens(event.before, event.after)


def _has(member: str) -> Callable[[Event], bool]:
    return lambda event: bool((event.after or {}).get(member))


def _is_address_changed(event: Event) -> bool:
    before = (event.before or {}).get("email")
    return before is not None and before != (event.after or {}).get("email")


def _is_by_another(event: Event) -> bool:
    return (event.actor["type"], event.actor["id"]) != ("admin", event.resource_id)


def _is_lasting_key(event: Event) -> bool:
    return event.actor["type"] != "admin" or not is_for_trying(event.after or {})


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """An alarm. `label` is its name where people choose alarms.

    `operations` are patterns over the names of operations; `when` decides whether an event of these raises the alarm.
    Administrators are not told what they did themselves, unless somebody else may have done it in their name (`may_be_forged`).
    """

    name: str
    label: str
    operations: tuple[str, ...]
    sentence: str
    when: Callable[[Event], bool] = _always
    may_be_forged: bool = False

    def fits(self, event: Event) -> bool:
        """Return whether an event raises this alarm."""
        return any(fnmatchcase(event.operation, pattern) for pattern in self.operations) and self.when(event)


ALARMS: Final = (
    AlarmRule("new-key", "A key is created", ("keys.create",), "{actor} created the API key {name}.", _is_lasting_key),
    AlarmRule(
        "widened-key",
        "A key may do more",
        ("keys.*",),
        "{actor} allowed the API key {name} to do more.",
        _is_widened_by(is_key_widened),
    ),
    AlarmRule("rotated-key", "A key gets a new secret", ("keys.rotate",), "{actor} gave the API key {name} a new secret."),
    AlarmRule("new-webhook", "A webhook is created", ("webhooks.create",), "{actor} created a webhook that sends to {name}."),
    AlarmRule(
        "widened-webhook",
        "A webhook sends more, or to another address",
        ("webhooks.update",),
        "{actor} changed what a webhook sends, or where: {name}.",
        _is_widened_by(is_webhook_widened),
    ),
    AlarmRule(
        "rotated-webhook",
        "A webhook gets a new secret",
        ("webhooks.rotate",),
        "{actor} gave the webhook that sends to {name} a new secret.",
    ),
    AlarmRule(
        "new-administrator",
        "An administrator is added",
        ("admins.create", "admins.invite"),
        "{actor} made {name} an administrator.",
    ),
    AlarmRule(
        "joined-administrator",
        "Somebody joins through single sign-on",
        ("admins.join",),
        "{name} became an administrator by signing in at the provider.",
    ),
    AlarmRule(
        "linked-identity",
        "An account at the provider is linked",
        ("admins.link_identity",),
        "{actor} linked an account at the provider and can now sign in with it.",
        may_be_forged=True,
    ),
    AlarmRule(
        "changed-address",
        "Mail goes to another address",
        ("admins.update",),
        "{actor} changed the address that mail for {name} goes to.",
        _is_address_changed,
        may_be_forged=True,
    ),
    AlarmRule(
        "renewed-invitation",
        "An invitation is renewed",
        ("admins.renew_invitation",),
        "{actor} created a new link for {name} to choose a password.",
    ),
    AlarmRule(
        "enabled-administrator",
        "An administrator may sign in again",
        ("admins.enable",),
        "{actor} allowed {name} to sign in again.",
    ),
    AlarmRule(
        "widened-role",
        "Somebody gets a more powerful role",
        ("admins.set_role", "admins.follow_groups"),
        "{actor} gave {name} another role.",
        _has("mayDoMore"),
    ),
    AlarmRule(
        "new-browser",
        "Somebody signs in from a new browser",
        ("admins.sign_in", "admins.sign_on"),
        "{actor} signed in from a new browser.",
        _has("newBrowser"),
        may_be_forged=True,
    ),
    AlarmRule(
        "password-set",
        "A password is set by somebody else",
        ("admins.set_password",),
        "{actor} set a password for {name}.",
        _is_by_another,
    ),
    AlarmRule(
        "changed-password",
        "Somebody changes their own password",
        ("admins.set_password",),
        "{actor} changed their own password, or chose a first one.",
        may_be_forged=True,
    ),
    AlarmRule(
        "reset-second-factor",
        "A second factor is reset",
        ("admins.reset_second_factor",),
        "{actor} reset the second factor of {name}.",
    ),
    AlarmRule(
        "new-second-factor",
        "A second factor or new recovery codes are set up",
        ("admins.add_passkey", "admins.set_authenticator", "admins.renew_recovery_codes"),
        "{actor} set up a second factor or new recovery codes.",
        may_be_forged=True,
    ),
    AlarmRule(
        "removed-second-factor",
        "A second factor is removed",
        ("admins.remove_passkey", "admins.remove_authenticator"),
        "{actor} removed one of their own second factors.",
        may_be_forged=True,
    ),
)
_RULES: Final = {rule.name: rule for rule in ALARMS}


def find_alarm(event: Event) -> Raised | None:
    """Return the alarm that an event raises; None if it raises none."""
    rule = next((rule for rule in ALARMS if rule.fits(event)), None)
    if rule is None:
        return None
    is_own = event.actor["type"] == "admin" and not rule.may_be_forged
    return Raised(rule.name, event.actor["id"] if is_own else None)


def describe_alarm(name: str, event: Event) -> str:
    """Return a sentence that says what has happened."""
    record = event.after or event.before or {}
    return _tell(name, event, record.get("url") or record.get("name") or "?")


def tell_outside(name: str, event: Event) -> str:
    """Return a sentence for readers who may see less than the panel shows: of a URL, it contains only the host."""
    record = event.after or event.before or {}
    return _tell(name, event, (urlsplit(record["url"]).hostname if "url" in record else record.get("name")) or "?")


def _tell(name: str, event: Event, named: object) -> str:
    sentence = _RULES[name].sentence if name in _RULES else mark("{actor} did something that raises an alarm in a newer release.")
    return say(sentence, actor=isolate(describe_actor(event.actor)), name=isolate(str(named)))
