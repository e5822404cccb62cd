"""Calendars, in a flat, ordered list."""

from typing import Final

from trellis.core.fields import Boolean, Color, Field
from trellis.core.nodes import NodeKind

CALENDARS: Final = NodeKind(
    name="calendars",
    singular="calendar",
    title="Calendars",
    application="Calendar",
    path="/calendar/calendar",
    also=("/calendar/calendars",),
    example="Workshops",
    doc="Calendars announce events. They form an ordered list.",
    code="L364",
    fields=(
        Field(
            "color",
            Color(),
            "The colour of the calendar's events, as #RRGGBB. Either case is accepted; the value is stored in upper case.",
            default="#3B82F6",
            example="#3B82F6",
            title="Colour",
        ),
        Field(
            "approveEvents",
            Boolean(),
            "Whether new events wait for a moderator's approval.",
            default=False,
            also=("approve_events",),
            title="New events wait for approval",
        ),
        Field(
            "allowComments",
            Boolean(),
            "Whether events can be commented on.",
            default=True,
            also=("allow_comments",),
            title="Events can be commented on",
        ),
        Field(
            "approveComments",
            Boolean(),
            "Whether comments wait for a moderator's approval.",
            default=False,
            also=("approve_comments",),
            title="Comments wait for approval",
        ),
        Field(
            "allowReviews",
            Boolean(),
            "Whether events can be reviewed.",
            default=True,
            also=("allow_reviews",),
            title="Events can be reviewed",
        ),
        Field(
            "approveReviews",
            Boolean(),
            "Whether reviews wait for a moderator's approval.",
            default=False,
            also=("approve_reviews",),
            title="Reviews wait for approval",
        ),
    ),
    options={
        "view": "See that it exists.",
        "read": "Read its events.",
        "add": "Add events.",
        "reply": "Comment on events.",
        "review": "Review events.",
        "askrsvp": "Request replies to an invitation.",
        "rsvp": "Reply to an invitation.",
    },
    option_titles={"askrsvp": "Ask for replies", "rsvp": "Reply to invitations"},
)
