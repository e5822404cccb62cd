"""The cast of the tests: who and what there is when a scene begins, and the words for what fixtures give."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from trellis.compose import catalogue_of
from trellis.core.fields.values import format_timestamp
from trellis.http.routes import build_routes
from trellis.kinds import KINDS

GUESTS, MEMBERS, ADMINISTRATORS = 2, 3, 4
CONTRACT = (  # the operations of the 4.2 document
    *("groups.list", "groups.get", "groups.delete"),
    *("forums.list", "forums.get", "forums.create", "forums.update", "forums.delete"),
    "blogs.delete",
    *("calendars.list", "calendars.get", "calendars.create", "calendars.update", "calendars.delete"),
    *("categories.list", "categories.get", "categories.create", "categories.update", "categories.delete"),
)
CATALOGUE = catalogue_of(KINDS)
GRANTABLE = len(CATALOGUE.grantable)  # how many operations a key can be granted
ENDPOINTS = len(build_routes(CATALOGUE))  # how many are served over REST
COMMUNITY_URL = "https://community.example"


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    at: datetime = field(default_factory=lambda: datetime(2026, 1, 31, 9, 30, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.at

    def move(self, **span: float) -> None:
        """Move the clock: `move(hours=1)`; backwards with negative numbers."""
        self.at += timedelta(**span)

    @property
    def text(self) -> str:
        """The moment as records and events tell it."""
        return format_timestamp(self.at)


class Run(Protocol):
    """Runs an operation as the terminal and gives its value: `run("forums.update", 3, name="News")`."""

    def __call__(self, operation: str, target: int | None = None, /, **raw: Any) -> Any: ...


class MakeKey(Protocol):
    """Makes an API key and gives its text: `key(["forums.list"], expires="1d")`; a single grant may be a word."""

    def __call__(self, grants: str | Iterable[str] = (), /, **settings: Any) -> str: ...


Events = Callable[[], list[dict[str, Any]]]


@dataclass(frozen=True)
class Cast:
    """The ids of a small community, by name. What is not said is as the kinds' defaults have it.

    Groups: the built-in ones, Moderators, and Patrons, who pay.
    Forums, a tree in this order:
      News      everybody views and reads; Moderators and Administrators add; Members reply
        Releases   as News
          Betas       read by Patrons only
        Interviews as News
      Help      questions; everybody may do everything
      Wiki      a redirect to https://wiki.example/
      Staff     viewed, read and written by Moderators only
    Calendars, in this order: Meetups, Holidays. Download categories: Skins > Dark skins, then Tools.
    Blogs: Notebook, Mira's, for Members and Patrons.
    """

    moderators: int
    patrons: int
    news: int
    releases: int
    betas: int
    interviews: int
    help: int
    wiki: int
    staff: int
    meetups: int
    holidays: int
    skins: int
    dark_skins: int
    tools: int
    notebook: int


def gather(run: Run) -> Cast:
    """Make the cast in an empty community."""

    def make(kind: str, name: str, **fields: Any) -> int:
        return int(run(f"{kind}.create", name=name, **fields)["id"])

    moderators, patrons = make("groups", "Moderators"), make("groups", "Patrons")
    options = ("view", "read", "add", "reply", "attachments")
    staff, everybody = {option: [moderators] for option in options}, dict.fromkeys(options, "*")
    written_by = {"view": "*", "read": "*", "add": [ADMINISTRATORS, moderators], "reply": [MEMBERS]}
    news = make("forums", "News", permissions=written_by)
    releases = make("forums", "Releases", parentId=news)
    betas = make("forums", "Betas", parentId=releases, permissions={"read": [patrons]})
    skins = make("categories", "Skins", permissions={"view": "*", "download": [MEMBERS, patrons]})
    return Cast(
        moderators=moderators,
        patrons=patrons,
        news=news,
        releases=releases,
        betas=betas,
        interviews=make("forums", "Interviews", parentId=news),
        help=make("forums", "Help", type="questions", permissions=everybody),
        wiki=make("forums", "Wiki", type="redirect", redirectUrl="https://wiki.example/"),
        staff=make("forums", "Staff", permissions=staff),
        meetups=make("calendars", "Meetups", permissions={"view": "*", "rsvp": [MEMBERS]}),
        holidays=make("calendars", "Holidays", color="#10B981"),
        skins=skins,
        dark_skins=make("categories", "Dark skins", parentId=skins),
        tools=make("categories", "Tools"),
        notebook=make("blogs", "Notebook", owner="Mira Holm", groups=[MEMBERS, patrons]),
    )
