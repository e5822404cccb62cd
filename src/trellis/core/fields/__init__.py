"""Field types and forms: what a value may be, how it is described, and how a request is validated."""

from trellis.core.fields.choices import Boolean, Choice
from trellis.core.fields.field import Field
from trellis.core.fields.form import Form, Input, invalid_id, require
from trellis.core.fields.lists import TextList, split_list
from trellis.core.fields.numbers import MAX_INTEGER, Integer, parse_whole_number
from trellis.core.fields.references import (
    EVERYONE,
    MAX_ID,
    ChildrenFate,
    Groups,
    Ids,
    NodeId,
    ParentId,
    Permissions,
)
from trellis.core.fields.response import ListOf, Nullable, ObjectOf, Record
from trellis.core.fields.text import (
    Color,
    Html,
    IpAddress,
    Password,
    Text,
    Url,
    sanitize_inline_html,
)
from trellis.core.fields.timestamp import Timestamp, format_timestamp
from trellis.core.fields.type import Anything, Invalid, Type, quote

__all__ = [
    "EVERYONE",
    "MAX_ID",
    "MAX_INTEGER",
    "Anything",
    "Boolean",
    "ChildrenFate",
    "Choice",
    "Color",
    "Field",
    "Form",
    "Groups",
    "Html",
    "Ids",
    "Input",
    "Integer",
    "Invalid",
    "IpAddress",
    "ListOf",
    "NodeId",
    "Nullable",
    "ObjectOf",
    "ParentId",
    "Password",
    "Permissions",
    "Record",
    "Text",
    "TextList",
    "Timestamp",
    "Type",
    "Url",
    "format_timestamp",
    "invalid_id",
    "parse_whole_number",
    "quote",
    "require",
    "sanitize_inline_html",
    "split_list",
]
