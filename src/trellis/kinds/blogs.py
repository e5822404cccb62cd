"""Blogs: created and changed in the panel, read and deleted over REST."""

from typing import Final

from trellis.core.fields import Boolean, Field, Groups, Html, Text
from trellis.core.nodes import NodeKind
from trellis.core.verbs import DELETE, GET, LIST

BLOGS: Final = NodeKind(
    name="blogs",
    singular="blog",
    title="Blogs",
    application="Blogs",
    path="/blog/blogs",
    example="Notes from the greenhouse",
    doc="The blog of a member or a team. Blogs are created and changed in the administration panel and at the terminal, not with a "
    "key.",
    code="B366",
    over_rest=(LIST, GET, DELETE),
    ordered=False,
    fields=(
        Field(
            "description",
            Html(),
            "The description, as HTML; sanitised when it is saved.",
            default="",
            example="<p>Notes.</p>",
        ),
        Field("owner", Text(255, visible=True), "Who owns the blog.", default="", example="Mira Holm"),
        Field(
            "groups",
            Groups(),
            'Who may read the blog: "*" (every group) or a list of group ids.',
            default="*",
            example=[3, 4],
            title="Who may read it",
        ),
        Field("pinned", Boolean(), "Whether the blog is listed before the others.", default=False),
    ),
)
