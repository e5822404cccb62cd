"""Field types and forms: what a value may be, how it is described, and how a request is validated."""

from trellis.core.fields.choices import Boolean, Choice, Choices
from trellis.core.fields.field import Field
from trellis.core.fields.form import Input, InputForm, invalid_id, require, require_found
from trellis.core.fields.json_text import MAX_NAMES, parse_json
from trellis.core.fields.lists import FormMapping, TextList, parse_json_text, split_list
from trellis.core.fields.numbers import MAX_INTEGER, OR_NULL, Integer, drop_separators, parse_whole_number
from trellis.core.fields.references import (
    EVERYONE,
    MAX_ID,
    ByExternalId,
    ChildrenFate,
    ExternalId,
    ExternalIds,
    Groups,
    Ids,
    NodeId,
    OrderedIds,
    ParentId,
    Permissions,
)
from trellis.core.fields.response import ListOf, Nullable, ObjectOf
from trellis.core.fields.suggestions import Suggestions
from trellis.core.fields.text import (
    Color,
    Html,
    IpAddress,
    Password,
    Text,
    Url,
    check_visible,
    sanitize_inline_html,
)
from trellis.core.fields.timestamp import Timestamp
from trellis.core.fields.type import Anything, Invalid, Type, quote
from trellis.core.fields.zone import PLAIN_ZONE, ZoneName, find_midnights, find_zone, list_zones
from trellis.invisible import escape_unsafe, isolate
from trellis.timestamps import format_timestamp, shift_timestamp
