"""Member groups in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import DialectKind, declare_copy
from trellis.kinds.invision.members import ID, NAME

GROUPS: Final = DialectKind(
    members=(ID, NAME, declare_copy("formattedName", {"type": "string"}, "Prefix, escaped name and suffix, as HTML.")),
)
