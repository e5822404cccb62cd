"""Blogs in the dialect of Invision Community."""

from html import escape
from typing import Any, Final

from trellis.core.dialect import FindGroups, Member, Record, Shape, declare_constant, declare_copy
from trellis.kinds.invision.members import GROUP, ID, NAME, URL

_COUNT: Final = {"type": "integer"}
_UNKNOWN: Final = {"type": ["string", "null"]}
_OWNER: Final = {
    "type": "object",
    "required": ["id", "name", "formattedName"],
    "properties": {
        "id": _COUNT,
        "name": {"type": "string"},
        "title": _UNKNOWN,
        "timeZone": _UNKNOWN,
        "formattedName": {"type": "string"},
        "primaryGroup": {"type": ["object", "null"]},
        "secondaryGroups": {"type": "array", "items": GROUP},
        "email": _UNKNOWN,
        "joined": _UNKNOWN,
        "profileUrl": _UNKNOWN,
        "photoUrl": _UNKNOWN,
    },
}


def _describe_owner(record: Record, _: FindGroups) -> dict[str, Any]:
    """Describe a member of whom only the name is known."""
    return {
        "id": 0,  # as the suite has it for people who are not members; its typed clients do not accept null
        "name": record["owner"],
        "title": None,
        "timeZone": None,
        "formattedName": escape(record["owner"]),
        "primaryGroup": None,
        "secondaryGroups": [],
        "email": None,
        "joined": None,
        "profileUrl": None,
        "photoUrl": None,
    }


BLOGS: Final = Shape(
    members=(
        ID,
        NAME,
        declare_copy("description", {"type": "string"}, "What it is about, as HTML."),
        Member("owner", _OWNER, "Who owns it: a member of whom only the name is known.", _describe_owner),
        Member(
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
