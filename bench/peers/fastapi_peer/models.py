"""The tables, as SQLAlchemy's ORM sees them."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column

COMMUNITY = "http://localhost:8000"


def now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def slug(name: str) -> str:
    """Write a name for an address."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80]


class Base(DeclarativeBase):
    """The root of the models."""

    type_annotation_map = {dict[str, Any]: JSON, list[str]: JSON, list[int]: JSON}  # noqa: RUF012  # SQLAlchemy's way


class Node:
    """What every kind has."""

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(255), index=True)
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, index=True)

    @property
    def url(self) -> str:
        """Its address in the community."""
        return f"{COMMUNITY}/{self.__tablename__}/{self.id}-{slug(self.name)}/"  # type: ignore[attr-defined]  # of the model

    @property
    def etag(self) -> str:
        """The version, as HTTP writes it."""
        return f'"{self.id}-{self.version}"'


class Ordered(Node):
    """What has a place among others, and permissions."""

    position: Mapped[int] = mapped_column(default=0)
    permissions: Mapped[dict[str, Any]] = mapped_column(default=dict)


class Tree(Ordered):
    """What stands in a tree. `path` is set by those who load it."""

    path = ""

    @declared_attr
    def parent_id(cls) -> Mapped[int | None]:  # noqa: N805
        return mapped_column(ForeignKey(f"{cls.__tablename__}.id"))  # type: ignore[attr-defined]

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Index, ...]:  # noqa: N805
        return (Index(f"{cls.__tablename__}_children", "parent_id", "position"),)  # type: ignore[attr-defined]


class Forum(Tree, Base):
    """A forum."""

    __tablename__ = "forums"
    description: Mapped[str] = mapped_column(default="")
    type: Mapped[str] = mapped_column(default="discussions")
    password: Mapped[str | None]
    theme: Mapped[int | None]
    sitemap_priority: Mapped[int | None]
    min_content: Mapped[int] = mapped_column(default=0)
    can_see_others: Mapped[bool] = mapped_column(default=True)
    redirect_url: Mapped[str | None]

    @property
    def password_protected(self) -> bool:
        """Whether a password is set."""
        return self.password is not None


class Category(Tree, Base):
    """A download category."""

    __tablename__ = "categories"
    description: Mapped[str] = mapped_column(default="")
    moderation: Mapped[bool] = mapped_column(default=False)
    moderation_edits: Mapped[bool] = mapped_column(default=False)
    allow_screenshots: Mapped[bool] = mapped_column(default=True)
    require_screenshots: Mapped[bool] = mapped_column(default=False)
    comments: Mapped[bool] = mapped_column(default=True)
    comments_moderation: Mapped[bool] = mapped_column(default=False)
    reviews: Mapped[bool] = mapped_column(default=True)
    reviews_moderation: Mapped[bool] = mapped_column(default=False)
    reviews_download: Mapped[bool] = mapped_column(default=False)


class Calendar(Ordered, Base):
    """A calendar."""

    __tablename__ = "calendars"
    color: Mapped[str] = mapped_column(default="#3d6594")
    approve_events: Mapped[bool] = mapped_column(default=False)
    allow_comments: Mapped[bool] = mapped_column(default=True)
    approve_comments: Mapped[bool] = mapped_column(default=False)
    allow_reviews: Mapped[bool] = mapped_column(default=False)
    approve_reviews: Mapped[bool] = mapped_column(default=False)


class Group(Node, Base):
    """A member group."""

    __tablename__ = "groups"
    prefix: Mapped[str] = mapped_column(default="")
    suffix: Mapped[str] = mapped_column(default="")
    built_in: Mapped[bool] = mapped_column(default=False)

    @property
    def formatted_name(self) -> str:
        """The name between its prefix and suffix."""
        return self.prefix + self.name + self.suffix


class Blog(Node, Base):
    """A blog."""

    __tablename__ = "blogs"
    description: Mapped[str] = mapped_column(default="")


class Key(Base):
    """An API key: a SHA-256 of what the caller sends."""

    __tablename__ = "api_keys"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    grants: Mapped[list[str]]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class Event(Base):
    """One change."""

    __tablename__ = "events"
    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(default=now)
    operation: Mapped[str]
    key_id: Mapped[int]
    resource: Mapped[str]
    resource_id: Mapped[int]
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
