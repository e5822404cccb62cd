"""Member groups, to which permissions are given. Guests, Members and Administrators are built in."""

from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser
from typing import Final

from trellis.core.fields import Boolean, Field, Text, sanitize_inline_html
from trellis.core.nodes import Derived, NodeKind, Values
from trellis.core.verbs import DELETE, GET, LIST
from trellis.errors import Fault
from trellis.sentences import say

_LONGEST: Final = 1000  # characters of an affix
_LONGEST_FORMATTED: Final = 2 * _LONGEST + 255 * len(escape('"'))  # with a name of quotation marks
_NAME = "\N{OBJECT REPLACEMENT CHARACTER}"  # replaces the name while the affixes are sanitised as one piece


def _format_name(name: str, fields: Values) -> str:
    return f"{fields['prefix']}{escape(name)}{fields['suffix']}"


def _sanitize_affixes(fields: Values) -> Values:
    """Sanitise both affixes as one piece of HTML around the name, so that `<b>` and `</b>` stay a pair.

    Affixes between which the name would not be plain text (inside a tag or an attribute) are dropped.
    """
    before, after = (fields[affix].replace(_NAME, "") for affix in ("prefix", "suffix"))
    cleaned = sanitize_inline_html(before + _NAME + after)
    prefix, _, suffix = cleaned.partition(_NAME)
    if not _in_text(cleaned):
        return {**fields, "prefix": "", "suffix": ""}
    return {**fields, "prefix": prefix.strip(), "suffix": suffix.strip()}


def _check_affixes(fields: Values) -> Iterator[Fault]:
    for affix in ("prefix", "suffix"):
        if (length := len(fields[affix])) > _LONGEST:
            detail = say(
                "{affix} is {length:,} characters of HTML once it is sanitised; at most {longest:,} are allowed.",
                affix=affix,
                length=length,
                longest=_LONGEST,
            )
            yield Fault(affix, "INVALID_VALUE", detail)


def _in_text(html: str) -> bool:
    texts: list[str] = []
    parser = HTMLParser()
    parser.handle_data = texts.append  # type: ignore[method-assign, assignment]  # the parser's documented hook, without a class for it
    parser.feed(html)
    parser.close()
    return html.count(_NAME) == 1 and "".join(texts).count(_NAME) == 1


GROUPS: Final = NodeKind(
    name="groups",
    singular="group",
    title="Groups",
    application="Core",
    path="/core/groups",
    example="Master gardeners",
    doc="Members belong to groups, and permissions are given to groups. Groups are created and changed in the "
    "administration panel and at the terminal, not with a key.",
    code="C358",
    codes={"delete": "1C358/2", "NO_TITLE": "1C358/4"},
    over_rest=(LIST, GET, DELETE),
    ordered=False,
    fields=(
        Field(
            "prefix",
            Text(_LONGEST),
            "HTML shown before the name; sanitised.",
            default="",
            example="<b>",
            title="Before the name",
        ),
        Field(
            "suffix",
            Text(_LONGEST),
            "HTML shown after the name; sanitised.",
            default="",
            example="</b>",
            title="After the name",
        ),
        Field("builtIn", Boolean(), "Whether the group is built in and cannot be deleted.", default=False, read_only=True),
    ),
    prepare=_sanitize_affixes,
    rules=(_check_affixes,),
    derived=(Derived("formattedName", Text(_LONGEST_FORMATTED), "Prefix, escaped name and suffix, as HTML.", _format_name),),
    built_in={2: "guests", 3: "members", 4: "administrators"},
    is_group=True,
)
