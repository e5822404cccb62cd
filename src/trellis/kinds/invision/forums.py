"""Forums in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import DialectKind, declare_constant, declare_copy
from trellis.kinds.invision.members import CLUB, ID, NAME, PATH, URL, declare_parent, declare_permissions, number_options

_OPTIONS: Final = number_options("view", "read", "add", "reply", "attachments")
FORUMS: Final = DialectKind(
    members=(
        ID,
        NAME,
        PATH,
        declare_copy("type", {"type": "string"}, "What kind of forum it is: discussions, questions, category or redirect."),
        declare_constant("topics", 0, {"type": "integer"}, "Always 0: topics are not kept here."),
        URL,
        declare_parent(root=-1),
        declare_permissions(1, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    defaults={"type": "category"},
)
