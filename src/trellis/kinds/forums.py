"""Forums: a tree in which people discuss."""

from collections.abc import Iterator
from typing import Final

from trellis.core.fields import Boolean, Choice, Field, Html, Integer, Password, Url
from trellis.core.nodes import Derived, NodeKind, Values
from trellis.errors import Fault


def _redirect_needs_url(fields: Values) -> Iterator[Fault]:
    if fields["type"] == "redirect" and not fields["redirectUrl"]:
        yield Fault(
            "redirectUrl",
            "NO_REDIRECT_URL",
            "redirectUrl is needed when type is redirect: give an http or https address.",
        )


FORUMS: Final = NodeKind(
    name="forums",
    singular="forum",
    title="Forums",
    application="Forums",
    path="/forums/forums",
    example="Garden diaries",
    doc="Where people start topics and answer them. Forums stand in a tree.",
    code="F363",
    codes={"delete": "1S359/1"},
    tree=True,
    fields=(
        Field(
            "description",
            Html(),
            "What it is about, as HTML; sanitised on the way in.",
            default="",
            example="<p>Say hello.</p>",
        ),
        Field(
            "type",
            Choice(
                {
                    "discussions": "Topics and replies.",
                    "questions": "Questions whose answers are voted on.",
                    "category": "Holds forums, but no topics.",
                    "redirect": "Leads elsewhere; it has no children.",
                },
                also={"normal": "discussions", "qa": "questions"},
                message="INVALID_TYPE",
            ),
            "What kind of forum it is: discussions (also normal), questions (also qa), category or redirect.",
            default="discussions",
            listed=True,
        ),
        Field("password", Password(), "A password that readers must know; null takes it away.", write_only=True),
        Field("theme", Integer(1, nullable=True), "The id of the theme it is shown in; null is the community's."),
        Field(
            "sitemapPriority",
            Integer(1, 9, nullable=True),
            "Its priority in the sitemap in tenths, 1 to 9; null leaves it to the community.",
            also=("sitemap_priority",),
        ),
        Field("minContent", Integer(), "How many posts a member needs before seeing it.", default=0, also=("min_content",)),
        Field(
            "canSeeOthers",
            Boolean(),
            "Whether members see each other's topics.",
            default=True,
            also=("can_see_others",),
        ),
        Field("redirectUrl", Url(), "Where a redirect leads; needed when type is redirect.", also=("redirect_url",)),
    ),
    derived=(
        Derived("passwordProtected", Boolean(), "Whether a password is set.", lambda _, fields: bool(fields.get("password"))),
    ),
    options={
        "view": "See that it exists.",
        "read": "Read its topics.",
        "add": "Start topics.",
        "reply": "Reply to topics.",
        "attachments": "Download attachments.",
    },
    rules=(_redirect_needs_url,),
    refuses=("NO_REDIRECT_URL", "INVALID_TYPE"),
    leaf_only=lambda fields: fields["type"] == "redirect",
)
