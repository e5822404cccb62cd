"""The sample community: an association of amateur astronomers, its forums, calendars, downloads and blogs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Who = str | tuple[str, ...]  # "*", or the names of groups
May = dict[str, Who]


@dataclass(frozen=True, slots=True)
class Seed:
    """A node to create. `may` is who may do what, by the names of groups; None means the kind's defaults."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    may: May | None = None
    children: tuple["Seed", ...] = ()

    def count(self) -> int:
        """The number of nodes from here down, including this one."""
        return 1 + sum(child.count() for child in self.children)


MEMBERS: Final = ("Members", "Administrators", "Moderators", "Writers", "Supporters", "Observers")
STAFF: Final = ("Administrators", "Moderators")
TEAM: Final = (*STAFF, "Writers")
CIRCLE: Final = (*STAFF, "Supporters")

_FORUM_OPTIONS: Final = ("view", "read", "add", "reply", "attachments")

_OPEN: Final[May] = {"view": "*", "read": "*", "add": MEMBERS, "reply": MEMBERS, "attachments": MEMBERS}
_NEWS: Final[May] = {"view": "*", "read": "*", "add": TEAM, "reply": MEMBERS, "attachments": "*"}
_RULES: Final[May] = {"view": "*", "read": "*", "add": STAFF, "reply": STAFF, "attachments": "*"}
_INSIDE: Final[May] = dict.fromkeys(_FORUM_OPTIONS, MEMBERS)
_MARKET: Final[May] = {"view": "*", "read": MEMBERS, "add": MEMBERS, "reply": MEMBERS, "attachments": MEMBERS}
_CIRCLE: Final[May] = {"view": "*", "read": CIRCLE, "add": CIRCLE, "reply": CIRCLE, "attachments": CIRCLE}
_STAFF: Final[May] = dict.fromkeys(_FORUM_OPTIONS, STAFF)
_REPORTS: Final[May] = {"view": "*", "read": "*", "add": (*TEAM, "Observers"), "reply": MEMBERS, "attachments": "*"}


def _node(name: str, about: str, *children: Seed, may: May | None = None, **fields: Any) -> Seed:
    return Seed(name, {"description": f"<p>{about}</p>"} | fields, may, children)


def _section(name: str, about: str, *children: Seed, may: May) -> Seed:
    return _node(name, about, *children, may=may, type="category")


FORUMS: Final = (
    _section(
        "The Association",
        "What happens in and around the association.",
        _node("Announcements", "News from the board. Members may answer.", may=_NEWS, sitemapPriority=9),
        _node("Ground rules", "How we treat each other here.", may=_RULES, sitemapPriority=2),
        _node("Introduce yourself", "Say hello: where you observe, and with what.", may=_OPEN),
        _node(
            "Feedback",
            "About this site: what is missing, what is broken.",
            _node("Ideas", "What you would like to see.", type="questions"),
            _node("Something is broken", "Please say what you did and what you saw."),
            may=_OPEN,
        ),
        _node(
            "Library catalogue",
            "Books and charts that members may borrow.",
            type="redirect",
            redirectUrl="https://library.example/",
            may=_NEWS,
        ),
        may=_NEWS,
    ),
    _section(
        "Observing",
        "Under the sky, with and without an instrument.",
        _node(
            "The Solar System",
            "Everything that goes round the Sun, and the Sun.",
            _node(
                "The Moon",
                "Craters, rilles, libration, occultations.",
                _node("Lunar 100 challenge", "Your progress through the list."),
                _node("Occultations", "Predictions, timings and results.", may=_REPORTS),
            ),
            _node("The Sun", "Spots, prominences, eclipses. <strong>Never without a filter.</strong>", may=_REPORTS),
            _node("Planets", "Opposition reports, drawings, strip charts."),
            _node("Comets and asteroids", "What is bright now, and where to look."),
        ),
        _node(
            "Deep sky",
            "Beyond the Solar System.",
            _node(
                "Galaxies",
                "From Andromeda to the faint fuzzies.",
                _node("Galaxy of the month", "One target a month, observed by everybody."),
                _node("Supernova patrol", "New candidates and confirmations.", may=_REPORTS, minContent=10),
            ),
            _node("Nebulae", "Emission, reflection, planetary, dark."),
            _node("Star clusters", "Open and globular."),
            _node("Double stars", "Splitting, measuring, colours."),
        ),
        _node("Variable stars", "Estimates, light curves, campaigns.", may=_REPORTS),
        _node("Meteors and fireballs", "Counts and sightings."),
        _node("Naked-eye sky", "Constellations, aurorae, noctilucent clouds."),
        _node("Light pollution", "Measuring it, and doing something about it."),
        may=_OPEN,
    ),
    _section(
        "Equipment",
        "What we look through and what it stands on.",
        _node(
            "Telescopes",
            "Choosing, using and repairing them.",
            _node(
                "Refractors",
                "Lenses in tubes.",
                _node("Apochromats", "Colour-free, and what it costs."),
                _node("Classic long tubes", "f/15 and proud of it."),
            ),
            _node("Reflectors", "Newtonians and Dobsonians; collimation."),
            _node("Catadioptrics", "Schmidt–Cassegrains, Maksutovs and the rest."),
        ),
        _node("Mounts and tripods", "Alignment, guiding, wobbling."),
        _node("Eyepieces and filters", "The other half of the telescope."),
        _node("Binoculars", "The best first instrument."),
        _node("Which one should I buy?", "Ask before you pay.", type="questions", may=_OPEN, sitemapPriority=8),
        _node("Building it yourself", "Mirrors, mounts, observatories."),
        may=_OPEN,
    ),
    _section(
        "Astrophotography",
        "From a phone at the eyepiece to a remote observatory.",
        _node("Gallery", "Your pictures, with the details.", sitemapPriority=7),
        _node("Technique", "Exposure, guiding, focus.", type="questions"),
        _node(
            "Processing",
            "Stacking, stretching, noise.",
            _node("Processing contest", "One data set, many results.", minContent=5),
        ),
        _node("Cameras", "Cooled, modified, borrowed."),
        may=_OPEN,
    ),
    _section(
        "Members",
        "For members of the association.",
        _node("Star parties", "Who drives, who brings soup.", may=_INSIDE),
        _node(
            "Dark sites",
            "Where they are, and the code of the gate.",
            may=_INSIDE,
            password="polaris-2026",  # noqa: S106  # the sample's own
        ),
        _node("For sale and wanted", "Between members only; no dealers.", may=_MARKET),
        _node("Youth group", "For members under 18 and those who look after them.", may=_INSIDE),
        _node("Supporters' lounge", "With thanks to those who keep the lights off.", may=_CIRCLE),
        _node("Ask the board", "Only you and the board see what you write.", may=_INSIDE, canSeeOthers=False),
        may=_INSIDE,
    ),
    _section(
        "Staff",
        "Moderators and administrators.",
        _node("Moderation", "Reports and decisions."),
        _node("Site work", "Plugins, updates, backups."),
        may=_STAFF,
    ),
)

GROUPS: Final = (
    Seed("Moderators", {"prefix": "<strong>", "suffix": "</strong>"}),
    Seed("Writers", {"prefix": "<em>", "suffix": "</em>"}),
    Seed("Supporters", {"suffix": "<sup>★</sup>"}),
    Seed("Observers"),
)

_CALENDAR: Final[May] = {
    "view": "*",
    "read": "*",
    "add": TEAM,
    "reply": MEMBERS,
    "review": MEMBERS,
    "askrsvp": TEAM,
    "rsvp": MEMBERS,
}
_ALL_ADD: Final[May] = _CALENDAR | {"add": MEMBERS, "askrsvp": MEMBERS}
_CLOSED: Final[May] = dict.fromkeys(_CALENDAR, STAFF)

CALENDARS: Final = (
    Seed("Evenings at the observatory", {"color": "#1D4ED8"}, _CALENDAR),
    Seed("Star parties and trips", {"color": "#059669", "approveEvents": True}, _ALL_ADD),
    Seed("Sky events", {"color": "#7C3AED", "allowReviews": False}, _CALENDAR),
    Seed("Talks and courses", {"color": "#D97706"}, _CALENDAR),
    Seed(
        "School visits",
        {"color": "#DB2777", "approveEvents": True, "allowComments": False},
        _CALENDAR | {"read": TEAM, "rsvp": TEAM},
    ),
    Seed("Youth group", {"color": "#0891B2", "approveComments": True}, _CALENDAR | {"view": MEMBERS, "read": MEMBERS}),
    Seed("Moderators' rota", {"color": "#6B7280", "allowComments": False, "allowReviews": False}, _CLOSED),
)

_FILES: Final[May] = {
    "view": "*",
    "read": "*",
    "add": MEMBERS,
    "download": MEMBERS,
    "reply": MEMBERS,
    "review": MEMBERS,
}
_FREE: Final[May] = _FILES | {"add": TEAM, "download": "*"}
_PAPERS: Final[May] = {**dict.fromkeys(_FILES, MEMBERS), "add": STAFF}


CATEGORIES: Final = (
    _node(
        "Charts and lists",
        "To print, or to take along on a tablet.",
        _node(
            "Star charts",
            "All scales.",
            _node("Finder charts", "For single objects."),
            _node("Atlases", "Whole-sky sets."),
        ),
        _node("Observing lists", "Messier, Caldwell, Herschel and our own."),
        _node("Moon maps", "With and without labels."),
        _node("Log sheets", "For drawings and estimates."),
        may=_FREE,
    ),
    _node(
        "Software",
        "Written by members, free to use.",
        _node("Planning", "What is up tonight."),
        _node(
            "Processing",
            "Scripts and presets.",
            _node("Scripts", "Tested by somebody else first.", moderation=True, moderationEdits=True),
            _node("Presets", "Small, but useful."),
        ),
        _node("Instrument control", "Drivers and configurations.", moderation=True),
        _node("Data reduction", "Photometry and astrometry."),
        may=_FILES,
    ),
    _node(
        "Images",
        "In full resolution.",
        _node("Solar System", "The Sun included."),
        _node("Deep sky", "With the details of the exposure.", requireScreenshots=True),
        _node("Raw data", "To practise with.", allowScreenshots=False, may=_FILES | {"download": CIRCLE}),
        _node("Wallpapers", "For screens of all sizes."),
        may=_FILES,
    ),
    _node(
        "Plans",
        "To build from.",
        _node("Telescopes", "Mirrors, tubes, rockers."),
        _node("Observatories", "Sheds with roofs that move."),
        _node("3D models", "Adapters, caps, brackets.", reviewsDownload=True),
        may=_FILES,
    ),
    _node(
        "Papers of the association",
        "Minutes, forms and the statutes.",
        _node("Minutes", "Of the yearly meeting.", comments=False, reviews=False),
        _node("Forms", "Membership, loans, keys.", comments=False, reviews=False),
        may=_PAPERS,
    ),
)


def _blog(name: str, owner: str, about: str, groups: Who = "*", **fields: Any) -> Seed:
    return Seed(name, {"owner": owner, "description": f"<p>{about}</p>", "groups": groups} | fields)


BLOGS: Final = (
    _blog("First light", "Mira Holm", "A beginner's second year.", pinned=True),
    _blog("Notes from the dome", "Tomás Ferreira", "What the observatory did this week."),
    _blog("Sketching the Moon", "Aiko Tanaka", "Pencil, paper, patience."),
    _blog("The variable sky", "Johannes Brandt", "Light curves and what is behind them."),
    _blog("Grinding glass", "Ewa Lis", "A 12-inch mirror, from blank to figure."),
    _blog("Narrowband diary", "Priya Raman", "Nebulae from a balcony in town."),
    _blog("Dark sky watch", "Liam O’Connor", "Lamps, laws and letters.", pinned=True),
    _blog("Board room", "The board", "What was decided, and why.", MEMBERS),
    _blog("Behind the curtain", "The moderators", "For those who keep order.", STAFF),
)
