"""Download categories in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import DialectKind
from trellis.kinds.invision.members import CLUB, ID, NAME, URL, declare_class, declare_parent, declare_permissions, number_options

_OPTIONS: Final = number_options("view", "read", "add", "download", "reply", "review")
CATEGORIES: Final = DialectKind(
    members=(
        ID,
        NAME,
        URL,
        declare_class("IPS\\downloads\\Category"),
        declare_parent(root=None),
        declare_permissions(3, _OPTIONS),
        CLUB,
    ),
    options=_OPTIONS,
    defaults={"name": "Untitled category, {at}"},  # its clients have no parameter for the name
    codes={"1D365/6": "1S359/1"},
)
