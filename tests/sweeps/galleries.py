"""A kind that this community does not hold: all that it takes to add one."""

from typing import Final

from trellis.core.fields import Boolean, Field, Integer
from trellis.core.kind import NodeKind

GALLERIES: Final = NodeKind(
    name="galleries",
    singular="gallery",
    title="Galleries",
    application="Gallery",
    path="/gallery/galleries",
    doc="Where pictures are shown.",
    code="G399",
    tree=True,
    fields=(
        Field("columns", Integer(1, 6), "How many pictures stand side by side.", default=3, also=("cols",), example=4),
        Field("comments", Boolean(), "Whether pictures can be commented on.", default=True),
    ),
    options={"view": "See that it exists.", "add": "Add pictures."},
)
