"""Forums in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import Shape, constant, copied
from trellis.kinds.invision.members import CLUB, ID, NAME, PATH, URL, name_options, parent_member, permissions_member

_OPTIONS: Final = name_options("view", "read", "add", "reply", "attachments")
FORUMS: Final = Shape(
    members=(
        ID,
        NAME,
        PATH,
        copied("type", {"type": "string"}, "What kind of forum it is: discussions, questions, category or redirect."),
        constant("topics", 0, {"type": "integer"}, "Always 0: topics are not kept here."),
        URL,
        parent_member(root=-1),
        permissions_member(1, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    defaults={"type": "category"},
)
