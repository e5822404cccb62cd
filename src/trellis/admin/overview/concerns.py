"""Finds what in the service needs attention, from the data that the overview has read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from trellis.admin.page import FACTORS, PageRequest
from trellis.admin.rendering import format_age
from trellis.core.fields import isolate
from trellis.core.overview import is_recent_backup
from trellis.core.requests import CLASSES
from trellis.sentences import say, say_many

_SOON: Final = timedelta(days=7)  # a key that expires within this time needs attention; the list below looks further ahead
_MANY_REFUSED: Final = 10  # and at least a quarter of all requests: some refusals are normal


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that needs attention: how urgent it is (bad, warn, note), a sentence, and a link with its path, without /admin."""

    tone: str
    text: str
    link: str
    path: str


def find_concerns(request: PageRequest, found: Mapping[str, Any]) -> list[Concern]:
    """Return what needs attention. Data that a role may not see is null in `found`, and left out."""
    now = datetime.fromisoformat(request.now)
    return [
        *_of_webhooks(found["failing"]),
        *_of_requests(found["hours"]),
        *_of_keys(found["expiring"], now, request),
        *_of_backups(found["backup"], now, request),
        *_of_factor(request),
        *_of_local_owner(request, lacks=bool(found.get("lacksLocalOwner"))),
    ]


def _of_webhooks(failing: Mapping[str, Any] | None) -> Iterator[Concern]:
    if failing is not None and (count := failing["count"]):
        text = say_many(count, "{count:,} webhook is failing.", "{count:,} webhooks are failing.")
        yield Concern("bad", text, say("See which"), "/webhooks")


def _of_requests(hours: list[Mapping[str, Any]] | None) -> Iterator[Concern]:
    if not hours:
        return
    totals = {name: sum(hour[name] for hour in hours) for name in CLASSES}
    since = urlencode({"from": hours[0]["at"]})
    if failed := totals["5xx"]:
        yield Concern(
            "bad",
            say_many(failed, "{count:,} request failed in the last 24 hours.", "{count:,} requests failed in the last 24 hours."),
            say("See them"),
            f"/requests?status=5xx&{since}",
        )
    refused = totals["4xx"]
    if refused >= _MANY_REFUSED and refused * 4 >= sum(totals.values()):
        text = say("{refused:,} of {sum:,} requests were refused in the last 24 hours.", refused=refused, sum=sum(totals.values()))
        yield Concern("warn", text, say("See why"), f"/requests?status=4xx&{since}")


def _of_keys(expiring: Mapping[str, Any] | None, now: datetime, request: PageRequest) -> Iterator[Concern]:
    first = (expiring or {}).get("keys", ())  # there may be more
    soon = [key for key in first if datetime.fromisoformat(key["expiresAt"]) <= now + _SOON]
    has_more = len(soon) == len(first) < (expiring or {}).get("count", 0)
    for key in soon[:1]:
        name, ends = isolate(key["name"]), _tell_age(request, key["expiresAt"])
        if has_more and len(soon) > 1:
            told = say("The key {name} expires {ends}, and others within a week.", name=name, ends=ends)
        elif len(soon) > 1:
            told = say_many(
                len(soon) - 1,
                "The key {name} expires {ends}, and {count:,} other within a week.",
                "The key {name} expires {ends}, and {count:,} others within a week.",
                name=name,
                ends=ends,
            )
        else:
            told = say("The key {name} expires {ends}.", name=name, ends=ends)
        yield Concern("warn", told, say("See it"), f"/keys/{key['id']}")


def _of_backups(backup: Mapping[str, Any] | None, now: datetime, request: PageRequest) -> Iterator[Concern]:
    """Report a backup that is not recent or, on SQLite, a missing one.

    PostgreSQL has backup tools of its own, which leave no trace here, so only on SQLite is a missing record a reason for concern.
    """
    if backup is None:
        return
    if backup["at"] is None:
        if request.runner.settings.database_url.startswith("sqlite"):
            yield Concern("note", say("trellis backup has not been run yet: see docs/backup-and-restore.md."), "", "")
    elif not is_recent_backup(made := datetime.fromisoformat(backup["at"]), now):
        if made < now:
            text = say("The last backup was made {when}.", when=_tell_age(request, backup["at"]))
        else:
            text = say("The last backup seems to be from the future: the clock was ahead when it was made. Make another one.")
        yield Concern("warn", text, "", "")


def _of_factor(request: PageRequest) -> Iterator[Concern]:
    if not request.signed_in.has_factor and request.signed_in.has_password:
        yield Concern(
            "note", say("You have no second factor: anyone who learns your password can sign in."), say("Set one up"), FACTORS
        )


def _of_local_owner(request: PageRequest, *, lacks: bool) -> Iterator[Concern]:
    if lacks:
        name = request.gate.environment.sign_on.name
        text = say("No owner has a password here: while {name} is down, nobody with full access can sign in.", name=name)
        yield Concern("warn", text, say("Choose one"), "/account")


def _tell_age(request: PageRequest, moment: str) -> str:
    return format_age(moment, request.now, clock=request.clock).striptags()
