"""Member groups in the dialect of Invision Community."""

from typing import Final

from trellis.core.dialect import Shape, copied
from trellis.kinds.invision.members import ID, NAME

GROUPS: Final = Shape(
    members=(ID, NAME, copied("formattedName", {"type": "string"}, "Prefix, escaped name and suffix, as HTML.")),
)
