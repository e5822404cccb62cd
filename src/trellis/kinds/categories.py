"""Download categories: a tree of categories for files."""

from typing import Final

from trellis.core.fields import Boolean, Field, Html
from trellis.core.nodes import NodeKind

CATEGORIES: Final = NodeKind(
    name="categories",
    singular="download category",
    title="Download categories",
    application="Downloads",
    path="/downloads/category",
    also=("/downloads/categories",),
    example="Planting plans",
    doc="Categories contain files to download. They form a tree.",
    code="D365",
    tree=True,
    fields=(
        Field(
            "description",
            Html(),
            "What belongs here, as HTML; sanitised when it is saved.",
            default="",
            example="<p>Skins.</p>",
            brief="HTML",
        ),
        Field(
            "moderation",
            Boolean(),
            "Whether new files wait for a moderator's approval.",
            default=False,
            brief="new files wait",
            title="New files wait for approval",
        ),
        Field(
            "moderationEdits",
            Boolean(),
            "Whether new versions of files wait for a moderator's approval.",
            default=False,
            also=("moderation_edits",),
            title="New versions wait for approval",
        ),
        Field(
            "allowScreenshots",
            Boolean(),
            "Whether files may have screenshots.",
            default=True,
            also=("allowss",),
            title="Files may have screenshots",
        ),
        Field(
            "requireScreenshots",
            Boolean(),
            "Whether files must have a screenshot.",
            default=False,
            also=("reqss",),
            title="Files must have a screenshot",
        ),
        Field(
            "comments",
            Boolean(),
            "Whether files can be commented on.",
            default=True,
            title="Files can be commented on",
        ),
        Field(
            "commentsModeration",
            Boolean(),
            "Whether comments wait for a moderator's approval.",
            default=False,
            also=("comments_moderation",),
            title="Comments wait for approval",
        ),
        Field(
            "reviews",
            Boolean(),
            "Whether files can be reviewed.",
            default=True,
            title="Files can be reviewed",
        ),
        Field(
            "reviewsModeration",
            Boolean(),
            "Whether reviews wait for a moderator's approval.",
            default=False,
            also=("reviews_mod",),
            title="Reviews wait for approval",
        ),
        Field(
            "reviewsDownload",
            Boolean(),
            "Whether only members who downloaded a file may review it.",
            default=False,
            also=("reviews_download",),
            brief="",
            title="Only members who downloaded a file may review it",
        ),
    ),
    options={
        "view": "See that it exists.",
        "read": "See details of its files.",
        "add": "Submit files.",
        "download": "Download files.",
        "reply": "Comment on files.",
        "review": "Review files.",
    },
)
