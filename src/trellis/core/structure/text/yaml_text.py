"""Reads documents as YAML or JSON, with line numbers, and writes them as YAML."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from trellis.core.structure.text.json_text import NotJson, looks_like_json, read_json
from trellis.core.structure.text.lined import Builder, LinedMapping, Unreadable, read_fraction, read_integer
from trellis.sentences import say

LARGEST_DOCUMENT: Final = 8 * 2**20  # bytes of a document
_SAME: Final = "tag:yaml.org,2002:"
# The scalars that are not text, by YAML 1.2's core schema (10.3) without octal and hexadecimal numbers, infinity and not-a-number,
# and the characters that each may begin with.
_CORE_SCHEMA: Final = (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
)
_NOT_TEXT: Final = frozenset(_SAME + name for name, *_ in _CORE_SCHEMA)
# What looks like a number, a date or a boolean to any parser of YAML 1.1 or 1.2, beyond what PyYAML's own rules (1.1) find.
_LOOKALIKE: Final = (
    r"^(?:(?:[-+][._0-9]|[.0-9])[-+._:0-9eE]*|[-+]?0[bBoOxX][0-9a-fA-F_]*|[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)|[yYnN])$",
    list("-+.0123456789yYnN"),
)
# A directive that declares a tag. If every line has one, parsing takes time in the square of their number, and blocks the process.
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DIRECTIVE: Final = re.compile("(?:^\ufeff?|[\n\r\x85\u2028\u2029])%TAG")


class _Core(yaml.resolver.BaseResolver):
    """Distinguishes numbers, booleans and null from text by `_CORE_SCHEMA`, in which `yes` and `1:30` are text."""


def read_document(text: str) -> Any:
    """Read a document: mappings (as LinedMapping), lists, text, whole numbers, fractions, booleans and null.

    Raises Unreadable for anchors, aliases, tags, names that are not text or appear twice, more than one document, and whatever is
    nested too deeply or too large.
    """
    if len(text.encode("utf-8", "surrogatepass")) > LARGEST_DOCUMENT:
        raise Unreadable(1, say("The document is larger than {longest} MiB. Split it by section.", longest=LARGEST_DOCUMENT >> 20))
    if not looks_like_json(text):
        return _read_yaml(text)
    try:
        return read_json(text)
    except NotJson as no_json:
        try:
            return _read_yaml(text)  # YAML mappings and lists may begin like those of JSON
        except Unreadable as unreadable:
            if min(unreadable.line, text.count("\n") + 1) > no_json.line:  # YAML could be read further
                raise
            raise no_json from None


def _read_yaml(text: str) -> Any:
    if directive := _DIRECTIVE.search(text):
        line = len(_BREAK.findall(text, 0, directive.end())) + 1
        raise Unreadable(line, say("Tags such as {tag} are not supported. Remove it.", tag="%TAG"))
    try:
        return _build(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(mark.line + 1 if mark is not None else 1, _explain(error)) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Unreadable(_line_of_character(text, error), say("There is a character that YAML does not allow.")) from None


def _explain(error: yaml.MarkedYAMLError) -> str:
    if error.problem is None:
        return say("This is not YAML.")
    if "cannot start any token" in error.problem:
        return say("A value begins with a tab, or with a character that has a special meaning: indent with spaces, or use quotes.")
    return say("This is not YAML: {problem}.", problem=error.problem)


def _line_of_character(text: str, error: Exception) -> int:
    position = getattr(error, "position", 0)
    return text.count("\n", 0, position if isinstance(position, int) else 0) + 1


def _build(events: Iterator[Any]) -> Any:
    """Build the value that parser events describe."""
    resolver = _Core()
    builder = Builder()
    documents = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Unreadable(line, say("A second document begins here. Put each document in its own file."))
        elif isinstance(event, yaml.CollectionEndEvent):
            builder.end()
        elif isinstance(event, yaml.NodeEvent):
            value = _build_value(event, resolver, line)
            if isinstance(event, yaml.CollectionStartEvent):
                builder.begin(value, line)
            else:
                builder.add(value, line)
    return builder.value


def _build_value(event: Any, resolver: _Core, line: int) -> Any:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise Unreadable(line, say("Anchors (&) and aliases (*) are not supported: write the value out, or put it in quotes."))
    if event.tag is not None:
        raise Unreadable(line, say("Tags such as {tag} are not supported. Remove it.", tag=event.tag))
    if isinstance(event, yaml.MappingStartEvent):
        return LinedMapping(line)
    if isinstance(event, yaml.SequenceStartEvent):
        return []
    return _resolve(event.value, resolver, line) if event.implicit[0] else event.value


def _resolve(text: str, resolver: _Core, line: int) -> Any:
    tag: str = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]  # the stubs leave it out
    if tag not in _NOT_TEXT:
        return text
    if tag.endswith("null"):
        return None
    if tag.endswith("bool"):
        return text.lower() == "true"
    return read_integer(text, line) if tag.endswith("int") else read_fraction(text, line)


# --- writing ------------------------------------------------------------------------------------------------------


class _Writer(yaml.CSafeDumper):
    """Writes lists of plain values on one line, and everything else over several lines.

    Text that a parser of YAML 1.1 or 1.2 may not read as text, such as `yes`, `08` or `0o17`, is written in quotes.
    """

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_list(writer: yaml.CSafeDumper, values: list[Any]) -> yaml.Node:
    in_line = not any(isinstance(value, Mapping | list) for value in values)
    return writer.represent_sequence(_SAME + "seq", values, flow_style=in_line)


def _represent_text(writer: yaml.CSafeDumper, text: str) -> yaml.Node:
    return writer.represent_scalar(_SAME + "str", text, style="|" if "\n" in text else None)


for _tag, _pattern, _first in _CORE_SCHEMA:
    for _resolver in (_Core, _Writer):
        _resolver.add_implicit_resolver(_SAME + _tag, re.compile(_pattern, re.ASCII), _first)
_Writer.add_implicit_resolver("!lookalike", re.compile(_LOOKALIKE[0]), _LOOKALIKE[1])
_Writer.add_representer(list, _represent_list)
_Writer.add_representer(str, _represent_text)


def write_yaml(document: Mapping[str, Any], comments: list[str]) -> str:
    """Write a document as YAML, with comments above it."""
    text = yaml.dump(dict(document), Dumper=_Writer, sort_keys=False, allow_unicode=True, width=120)
    return "".join(f"# {comment}\n" for comment in comments) + text
