"""Forums: a tree of places for discussion."""

from collections.abc import Iterator
from typing import Final

from trellis.core.fields import Boolean, Choice, Field, Html, Integer, Password, Url
from trellis.core.nodes import Derived, Leaf, NodeKind, Values
from trellis.errors import Fault
from trellis.sentences import say


def _redirect_needs_url(fields: Values) -> Iterator[Fault]:
    if fields["type"] == "redirect" and not fields["redirectUrl"]:
        yield Fault(
            "redirectUrl",
            "NO_REDIRECT_URL",
            say("redirectUrl is required when type is redirect: send an http or https URL."),
        )


FORUMS: Final = NodeKind(
    name="forums",
    singular="forum",
    title="Forums",
    application="Forums",
    path="/forums/forums",
    example="Garden diaries",
    doc="Members start topics in forums and reply to them. Forums form a tree.",
    code="F363",
    codes={"delete": "1S359/1"},
    tree=True,
    fields=(
        Field(
            "description",
            Html(),
            "The description, as HTML; sanitised when it is saved.",
            default="",
            example="<p>Say hello.</p>",
            brief="HTML",
        ),
        Field(
            "type",
            Choice(
                {
                    "discussions": "Topics and replies.",
                    "questions": "Questions with answers that members vote on.",
                    "category": "Contains forums, but no topics.",
                    "redirect": "Redirects to another address and has no children.",
                },
                also={"normal": "discussions", "qa": "questions"},
                message="INVALID_TYPE",
            ),
            "What kind of forum it is: discussions (also normal), questions (also qa), category or redirect.",
            default="discussions",
            listed=True,
            brief="",
            title="Kind of forum",
        ),
        Field("password", Password(), "The password that readers must enter; null removes it.", write_only=True, brief=""),
        Field(
            "theme",
            Integer(1, nullable=True),
            "The id of the forum's theme; null means the community's default.",
            title="Theme id",
            seldom=True,
        ),
        Field(
            "sitemapPriority",
            Integer(1, 9, nullable=True),
            "The forum's priority in the sitemap, in tenths from 1 to 9; null means the community's default.",
            also=("sitemap_priority",),
            brief="",
            title="Priority in the sitemap",
            seldom=True,
        ),
        Field(
            "minContent",
            Integer(),
            "How many posts a member needs to see the forum.",
            default=0,
            also=("min_content",),
            brief="posts needed to see it",
            title="Posts needed to see it",
            seldom=True,
        ),
        Field(
            "canSeeOthers",
            Boolean(),
            "Whether members can see each other's topics.",
            default=True,
            also=("can_see_others",),
            applies=("type", ("discussions", "questions")),
            brief="others' topics",
            title="Members see each other's topics",
        ),
        Field(
            "redirectUrl",
            Url(),
            "The URL that a redirect leads to; required when type is redirect.",
            also=("redirect_url",),
            brief="needed for type redirect",
            applies=("type", ("redirect",)),
            title="Address it leads to",
        ),
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
    leaf=Leaf("type", "redirect", "a redirect", "redirects"),
)
