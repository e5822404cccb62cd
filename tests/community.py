"""The sample community of the tests: its groups, forums, calendars, categories and blog, by name."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tests.fixture_types import Run
from trellis.compose import catalogue_of
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


def grantable(*patterns: str) -> list[str]:
    """Return the names of the operations that a key can be granted and that match a pattern such as `forums.*`, in order."""
    names = (operation.name for operation in CATALOGUE.grantable)
    return sorted(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


@dataclass(frozen=True)
class Community:
    """The ids of the sample community's records, by name. What is not said here has the kind's defaults.

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


def create_community(run: Run) -> Community:
    """Create the sample community in an empty database."""

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
    return Community(
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
