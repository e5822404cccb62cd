"""Download categories in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import Shape
from trellis.kinds.invision.members import CLUB, ID, NAME, URL, class_member, name_options, parent_member, permissions_member

_OPTIONS: Final = name_options("view", "read", "add", "download", "reply", "review")
CATEGORIES: Final = Shape(
    members=(
        ID,
        NAME,
        URL,
        class_member("IPS\\downloads\\Category"),
        parent_member(root=None),
        permissions_member(3, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    defaults={"name": "Untitled category, {at}"},  # its clients have no parameter for the name
    codes={"1D365/6": "1S359/1"},
)
