"""Finds a key by what people call it. The terminal and the questions about access follow this one rule."""

from typing import Final

from trellis.core.fields import MAX_ID, Field, Text, invalid_id, isolate, parse_whole_number
from trellis.core.keys.crud import MISSING, serialize_key
from trellis.core.keys.secret import redact_keys
from trellis.core.operation import Context, Operation, Outcome
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store import keys
from trellis.store.keys import Key

_KEY: Final = Field("key", Text(100, 1), "The key: its id, its public part or its name.", required=True, example="Calendar sync")


def find_named_key(context: Context, field: str, missing: str) -> Key:
    """Find the key that a field names by its id, its public part or its name. `missing` is the code if there is none.

    A whole number is always an id, so that a key's name cannot take the place of another key, and a revoked key has no name.
    Raises Refused (INVALID_ID, or INVALID_VALUE with the ids if several keys have the name).
    """
    named = context.input.values[field]
    if (number := parse_whole_number(named)) is not None:
        if (key := keys.find(context.tx, number) if 0 < number <= MAX_ID else None) is None:
            raise invalid_id(say("key"), number, missing)
        return key
    if key := keys.find_by_public_part(context.tx, named.removeprefix("trl_").partition("_")[0]):
        return key
    found = keys.find_by_name(context.tx, named)
    if not found:
        detail = say(
            "There is no key '{named}'. `trellis keys list` lists all keys; a revoked one is found only by its id.",
            named=isolate(redact_keys(named)),
        )
        raise Refused("INVALID_ID", detail, code=missing)
    if len(found) > 1:
        detail = say(
            "{field}: {count} keys have this name. Send the id: {ids}.",
            field=field,
            count=len(found),
            ids=", ".join(str(key.id) for key in found),
        )
        raise refuse_fault(field, "INVALID_VALUE", detail)
    return found[0]


def operation() -> Operation:
    """Return the operation that finds a key by what people call it, for the terminal."""
    return Operation(
        "keys.find",
        "Find a key",
        "Returns the key that has this id, public part or name, without its secret. A whole number is always an id.",
        _find,
        (_KEY,),
    )


def _find(context: Context) -> Outcome:
    return Outcome(serialize_key(find_named_key(context, _KEY.name, MISSING), context.now))
