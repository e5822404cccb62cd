"""The JSON Schema of structure documents, with which editors complete and check them."""

from collections.abc import Sequence
from typing import Any, Final

from trellis.core.fields import EVERYONE, ExternalId
from trellis.core.keys import SETTINGS
from trellis.core.kind import NodeKind
from trellis.core.structure.document import FORMAT, KEYS, NAME

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_GROUPS: Final = {
    "description": 'Who: "*" (every group), or the external ids of groups.',
    "anyOf": [{"const": EVERYONE}, {"type": "array", "items": ExternalId().schema(), "uniqueItems": True}],
}
_TIME: Final = {"type": ["string", "null"], "pattern": "^[0-9]{4}-", "examples": ["2026-12-31T00:00:00Z"]}


def build_schema(kinds: Sequence[NodeKind]) -> dict[str, Any]:
    """Return the JSON Schema of a document for these kinds."""
    sections = {kind.name: {"description": kind.doc, "type": "array", "items": {"$ref": f"#/$defs/{kind.name}"}} for kind in kinds}
    return {
        "$schema": _DRAFT,
        "title": "A Trellis structure document",
        "type": "object",
        "required": ["format", "name"],
        "additionalProperties": False,
        "properties": {
            "format": {"const": FORMAT},
            "name": NAME.schema() | {"description": "The name of the document, which its nodes have as managedBy."},
            "under": ExternalId().schema() | {"description": "The external id of the node below which the section's entries are."},
            **sections,
            KEYS: {"description": "API keys, at the terminal and in the panel only.", "type": "array", "items": _describe_key()},
        },
        "$defs": {kind.name: _describe_entry(kind) for kind in kinds},
    }


def _describe_key() -> dict[str, Any]:
    """Return the schema of a key. Its times are timestamps, since a duration would start again with each apply."""
    settings = {f.name: f.schema() for f in SETTINGS}
    settings["expires"] = _TIME | {"description": "When the key expires: a timestamp, or null for never."}
    bound = settings["bounds"]["additionalProperties"]["properties"]
    bound["until"] = _TIME | {"description": "When the grant ends: a timestamp, or null for never."}
    return {"type": "object", "required": ["name"], "additionalProperties": False, "properties": settings}


def _describe_entry(kind: NodeKind) -> dict[str, Any]:
    own = {f.name for f in kind.group_fields}
    properties: dict[str, Any] = {
        "externalId": ExternalId().schema() | {"description": kind.external_id_field.doc},
        "name": kind.name_field.schema(),
    }
    for f in kind.fields:
        if not f.read_only:
            properties[f.name] = _GROUPS | {"description": f.doc} if f.name in own else f.schema()
        if f.is_secret:
            variable = {
                "type": "object",
                "required": ["env"],
                "properties": {"env": {"type": "string"}},
                "additionalProperties": False,
            }
            properties[f.name] = {"description": f"{f.doc} From the environment.", "anyOf": [variable, {"type": "null"}]}
    if kind.options:
        options = {option: _GROUPS | {"description": doc} for option, doc in kind.options.items()}
        properties["permissions"] = {"type": "object", "properties": options, "additionalProperties": False}
    if kind.tree:
        properties["children"] = {"type": "array", "items": {"$ref": f"#/$defs/{kind.name}"}}
    return {"type": "object", "required": ["externalId", "name"], "properties": properties, "additionalProperties": False}
