"""Blogs in the dialect of Invision Community."""

from html import escape
from typing import Any, Final

from trellis.core.dialect import DialectKind, DialectMember, FindGroups, Record, declare_constant, declare_copy
from trellis.kinds.invision.members import GROUP, ID, NAME, URL

_COUNT: Final = {"type": "integer"}
_GUESTS: Final = 2  # the id of the built-in group, here and there
_NEVER: Final = "1970-01-01T00:00:00Z"
# What the suite says of people who are not members, without their names: its typed clients accept null only where it has null.
_GUEST: Final[Record] = {
    "title": None,
    "timeZone": "UTC",
    "formattedName": "",
    "primaryGroup": {"id": _GUESTS, "name": "Guests", "formattedName": "Guests"},  # unless it may be shown by its present name
    "secondaryGroups": [],
    "email": "",
    "joined": _NEVER,
    "registrationIpAddress": "",
    "warningPoints": 0,
    "reputationPoints": 0,
    "photoUrl": "",
    "photoUrlIsDefault": True,
    "coverPhotoUrl": "",
    "profileUrl": None,
    "validating": False,
    "posts": 0,
    "lastActivity": None,
    "lastVisit": None,
    "lastPost": None,
    "birthday": None,
    "profileViews": 0,
    "customFields": [],
    "rank": None,
    "achievements_points": 0,
    "allowAdminEmails": False,
    "completed": True,
}
_TYPES: Final = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object", type(None): "null"}
_OWNER: Final = {
    "type": "object",
    "required": ["id", "name", *_GUEST],
    "properties": {
        "id": _COUNT,
        "name": {"type": "string"},
        **{name: {"type": _TYPES[type(value)]} for name, value in _GUEST.items()},
        "primaryGroup": GROUP,
        "secondaryGroups": {"type": "array", "items": GROUP},
        "customFields": {"type": "array", "items": {}},
    },
}


def _describe_owner(record: Record, find_groups: FindGroups) -> dict[str, Any]:
    """Describe a person of whom only the name is known, as a guest."""
    owner = {"id": 0, "name": record["owner"], **_GUEST, "formattedName": escape(record["owner"])}
    guests = find_groups([_GUESTS])
    return owner | ({"primaryGroup": guests[0]} if guests else {})


BLOGS: Final = DialectKind(
    members=(
        ID,
        NAME,
        declare_copy("description", {"type": "string"}, "What it is about, as HTML."),
        DialectMember(
            "owner", _OWNER, "Who owns it: a person of whom only the name is known, described as a guest.", _describe_owner
        ),
        DialectMember(
            "groups",
            {"type": "array", "items": GROUP},
            "The groups that may read it; all groups if everybody may.",
            lambda record, find_groups: find_groups(record["groups"]),
        ),
        declare_copy("pinned", {"type": "boolean"}, "Whether the blog is listed before the others."),
        declare_constant("entries", 0, _COUNT, "Always 0: entries are not kept here."),
        declare_constant("comments", 0, _COUNT, "Always 0: comments are not kept here."),
        URL,
        declare_constant("category", None, {"type": "null"}, "Always null: blogs have no categories."),
    ),
    codes={"1B366/1": "2B302/1", "1B366/6": "2B302/2"},
)
