"""Calendars in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import DialectKind
from trellis.kinds.invision.members import CLUB, ID, NAME, URL, declare_class, declare_parent, declare_permissions, number_options

_OPTIONS: Final = number_options("view", "read", "add", "reply", "review", "askrsvp", "rsvp")
CALENDARS: Final = DialectKind(
    members=(
        ID,
        NAME,
        URL,
        declare_class("IPS\\calendar\\Calendar"),
        declare_parent(root=None),
        declare_permissions(2, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    codes={"1L364/6": "1S359/1"},
)
