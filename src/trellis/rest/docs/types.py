"""Types in words: descriptions of JSON Schemas for readers of the reference."""

from typing import Any, Final

from trellis.core.fields import MAX_ID, MAX_INTEGER, Anything, Field

_LONG: Final = 10_000  # characters; longer limits are not mentioned
_FORMATS: Final = {"date-time": "timestamp, ISO 8601", "uri": "http or https URL", "password": "text"}


def type_in_words(field: Field) -> str:
    """Describe a field's value: `text, 1–255 characters`, `whole number, 1–9, or null`."""
    if isinstance(field.type, Anything):
        return "anything"
    if field.type.widget == "color":
        return "colour, #RRGGBB"
    return in_words(field.type.schema())


def in_words(schema: dict[str, Any]) -> str:
    """Describe what a schema allows."""
    if "const" in schema:
        return f"`{_quoted(schema['const'])}`"
    if "enum" in schema:
        return _either([f"`{word}`" for word in schema["enum"]])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _either([in_words(choice) for choice in choices])
    kinds = schema.get("type", "anything")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    said = [_one(kind, schema) for kind in kinds if kind != "null"]
    return ", or ".join([" or ".join(said)] * bool(said) + ["null"] * ("null" in kinds))


def _one(kind: str, schema: dict[str, Any]) -> str:
    match kind:
        case "string":
            return _text(schema)
        case "integer" | "number":
            return _number("whole number" if kind == "integer" else "number", schema)
        case "boolean":
            return "boolean"
        case "array":
            return f"list of {_plural(in_words(schema.get('items', {})))}"
        case _:
            return kind


def _text(schema: dict[str, Any]) -> str:
    if schema.get("contentMediaType") == "text/html":
        return "HTML"
    said = _FORMATS.get(schema.get("format", ""), "text")
    least, most = schema.get("minLength"), schema.get("maxLength")
    if said != "text" or most is None or most >= _LONG:
        return said
    return f"{said}, {least}–{most:,} characters" if least else f"{said}, up to {most:,} characters"


def _number(said: str, schema: dict[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if most == MAX_ID:
        return "id" if least == 1 else f"id, or {least}"
    if least is None or most is None or most >= MAX_INTEGER:
        return said if least is None else f"{said} from {least}"
    return f"{said}, {least}–{most:,}"


def _plural(said: str) -> str:
    return {"id": "ids", "text": "words", "text, up to 255 characters": "words"}.get(said, f"({said})")


def _either(said: list[str]) -> str:
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + f" or {said[-1]}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
