"""What callers send and get: Pydantic models in camelCase."""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

import nh3
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, HttpUrl, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

T = TypeVar("T")
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=255)]
Html = Annotated[str, AfterValidator(nh3.clean)]
Permissions = dict[str, Literal["*"] | list[int]]


class Out(BaseModel):
    """A record on its way out."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True)
    id: int
    name: str
    url: str
    created_at: datetime
    updated_at: datetime


class In(BaseModel):
    """What may be sent; what was not sent stays as it is."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")
    name: Name | None = None

    def sent(self) -> dict[str, Any]:
        """Return what was sent, under the names of columns."""
        return self.model_dump(exclude_unset=True)


class Page(BaseModel, Generic[T]):
    """A page of records."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
    page: int
    per_page: int
    total_results: int
    total_pages: int
    results: list[T]


class OrderedIn(In):
    """What has a place among others."""

    position: Annotated[int, Field(ge=0)] | None = None
    permissions: Permissions | None = None


class TreeIn(OrderedIn):
    """What stands in a tree."""

    parent_id: int | None = None
    description: Html | None = None


class ForumIn(TreeIn):
    """A forum."""

    type: Literal["discussions", "questions", "category", "redirect"] | None = None
    password: str | None = None
    theme: Annotated[int, Field(ge=1)] | None = None
    sitemap_priority: Annotated[int, Field(ge=1, le=9)] | None = None
    min_content: Annotated[int, Field(ge=0)] | None = None
    can_see_others: bool | None = None
    redirect_url: HttpUrl | None = None

    @model_validator(mode="after")
    def _redirects_lead_somewhere(self) -> Self:
        if self.type == "redirect" and self.redirect_url is None:
            raise ValueError("redirectUrl is needed when type is redirect")
        return self


class ForumOut(Out):
    """A forum."""

    parent_id: int | None
    position: int
    path: str
    description: str
    type: str
    theme: int | None
    sitemap_priority: int | None
    min_content: int
    can_see_others: bool
    redirect_url: str | None
    password_protected: bool
    permissions: Permissions


class CategoryIn(TreeIn):
    """A download category."""

    moderation: bool | None = None
    moderation_edits: bool | None = None
    allow_screenshots: bool | None = None
    require_screenshots: bool | None = None
    comments: bool | None = None
    comments_moderation: bool | None = None
    reviews: bool | None = None
    reviews_moderation: bool | None = None
    reviews_download: bool | None = None


class CategoryOut(Out):
    """A download category."""

    parent_id: int | None
    position: int
    path: str
    description: str
    moderation: bool
    moderation_edits: bool
    allow_screenshots: bool
    require_screenshots: bool
    comments: bool
    comments_moderation: bool
    reviews: bool
    reviews_moderation: bool
    reviews_download: bool
    permissions: Permissions


class CalendarIn(OrderedIn):
    """A calendar."""

    color: Annotated[str, StringConstraints(pattern=r"^#[0-9a-fA-F]{6}$")] | None = None
    approve_events: bool | None = None
    allow_comments: bool | None = None
    approve_comments: bool | None = None
    allow_reviews: bool | None = None
    approve_reviews: bool | None = None


class CalendarOut(Out):
    """A calendar."""

    position: int
    color: str
    approve_events: bool
    allow_comments: bool
    approve_comments: bool
    allow_reviews: bool
    approve_reviews: bool
    permissions: Permissions


class GroupOut(Out):
    """A member group."""

    formatted_name: str
    prefix: str
    suffix: str
    built_in: bool
