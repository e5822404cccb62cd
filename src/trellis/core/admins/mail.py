"""The e-mail address of an administrator, and which alarms are mailed to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from trellis.core.admins.tokens import is_open, make_link
from trellis.core.alarms import ALARMS
from trellis.core.fields import Field, Invalid, TextList, Type, quote, shift_timestamp
from trellis.core.operation import Context, Outcome
from trellis.sentences import say
from trellis.store import mail
from trellis.store.admins import Administrator, invitations

ALL: Final = "*"
_MOST_NOTICES: Final = 5  # about the mail of one administrator, within a day
_DAY: Final = timedelta(days=1)
_LONGEST: Final = 254  # characters of an address (RFC 5321, 4.5.3.1)
# One address in ASCII, without quotes, comments or encoded words: nothing in it can be taken for a header, a list or a command.
_ADDRESS: Final = re.compile(r"(?!\.|.*=\?)[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}(?<!\.)@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class EmailAddress:
    """An e-mail address; None or an empty text means none."""

    widget: str = "email"

    def parse(self, raw: Any) -> str | None:
        if raw is None or raw == "":
            return None
        text = raw.strip() if isinstance(raw, str) else ""
        if len(text) > _LONGEST or not _ADDRESS.fullmatch(text) or ".." in text:
            raise Invalid(say("must be one address such as mira@example.com, not {raw}.", raw=quote(raw)))
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "format": "email", "maxLength": _LONGEST}


@dataclass(frozen=True, slots=True)
class AlarmNames(Type):
    """The names of alarms; `*` means all, including those of later releases."""

    def parse(self, raw: Any) -> tuple[str, ...]:
        names = TextList().parse(raw)
        known = [rule.name for rule in ALARMS]
        if unknown := [name for name in names if name not in {ALL, *known}]:
            raise Invalid(
                say(
                    "contains {unknown}, which is not an alarm. The alarms are {known}; * means all of them.",
                    unknown=quote(unknown[0]),
                    known=", ".join(known),
                )
            )
        return (ALL,) if ALL in names else tuple(name for name in known if name in names)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"enum": [ALL, *(rule.name for rule in ALARMS)]}}


EMAIL: Final = Field(
    "email", EmailAddress(), "The address that alarms and invitations are mailed to.", default=None, example="mira@example.com"
)
MAILED_ALARMS: Final = Field(
    "mailedAlarms", AlarmNames(), "Which alarms are mailed to this address; `*` for all.", default=(ALL,), example=[ALL]
)


def serialize_mail(admin: Administrator) -> dict[str, Any]:
    """Serialise an administrator's e-mail address, and which alarms are mailed to it."""
    return {"email": admin.email, "mailedAlarms": admin.mailed_alarms.split(",") if admin.mailed_alarms else []}


def read_mail(given: Mapping[str, Any], admin: Administrator) -> dict[str, Any]:
    """Return the e-mail address and the mailed alarms in the form in which they are stored. What was not sent stays as it is."""
    wanted = given.get(MAILED_ALARMS.name)
    return {
        "email": given.get(EMAIL.name, admin.email),
        "mailed_alarms": admin.mailed_alarms if wanted is None else ",".join(wanted),
    }


def follow_address(context: Context, old: Administrator, new: Administrator, outcome: Outcome) -> None:
    """Act on a changed e-mail address: a first one receives no past alarms, and a previous one is notified, if mail can be sent.

    Somebody who is invited gets another link, since whoever reads mail to the previous address may have the one before.
    """
    if not outcome.happened or old.email == new.email:
        return
    if old.email is None:
        mail.skip_alarms(context.tx, old.id)
    elif is_open(context.tx, old.id, context.now):
        _replace_link(context, new)
    else:
        invitations.withdraw(context.tx, old.id)  # one may seem to have expired only because the clock is ahead
        if context.environment.has_mail:
            _notify(context, "changed-address", old.id, old.email)


def follow_choice(context: Context, old: Administrator, new: Administrator) -> None:
    """Notify administrators who have chosen fewer alarms for their address: somebody may have passed for them."""
    if new.email == old.email is not None and context.environment.has_mail and _list_mailed(old) - _list_mailed(new):
        _notify(context, "fewer-alarms", old.id, old.email)


def _list_mailed(admin: Administrator) -> set[str]:
    names = set(admin.mailed_alarms.split(",")) if admin.mailed_alarms else set[str]()
    return names.union(rule.name for rule in ALARMS) if ALL in names else names


def _notify(context: Context, kind: mail.Notice, admin: int, address: str) -> None:
    """Mail a notice to an address, unless there were many within a day: it need not be the administrator's own."""
    if mail.count_notices(context.tx, admin, shift_timestamp(context.now, -_DAY), context.now) < _MOST_NOTICES:
        mail.insert(context.tx, kind, admin, context.now, recipient=address)


def _replace_link(context: Context, admin: Administrator) -> None:
    """Make the link of an invitation stop working, and mail another one, if that is possible."""
    mail.drop_invitation(context.tx, admin.id)
    invitations.withdraw(context.tx, admin.id)
    if admin.email is not None and context.environment.mails_links:
        make_link(context.tx, admin.id, context.now)  # which nobody learns: the mail will contain another one
        mail.insert(context.tx, "invitation", admin.id, context.now)


def describe_last(context: Context, admin: int) -> dict[str, Any] | None:
    """Describe the newest mail to an administrator (kind, whether it was sent, what went wrong); None if there is none."""
    last = mail.find_last(context.tx, admin)
    if last is None:
        return None
    error = last.error and mail.reasons.REASONS.read(last.error)
    return {"kind": last.kind, "state": last.state, "at": last.attempted_at or last.created_at, "error": error}
