"""Calendars in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import Shape
from trellis.kinds.invision.members import CLUB, ID, NAME, URL, class_member, name_options, parent_member, permissions_member

_OPTIONS: Final = name_options("view", "read", "add", "reply", "review", "askrsvp", "rsvp")
CALENDARS: Final = Shape(
    members=(
        ID,
        NAME,
        URL,
        class_member("IPS\\calendar\\Calendar"),
        parent_member(root=None),
        permissions_member(2, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    codes={"1L364/6": "1S359/1"},
)
