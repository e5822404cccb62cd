"""The operation that says whether a key may run an operation, and why. Callers of the API do not get these reasons."""

from datetime import datetime
from typing import Any, Final

from trellis.core.fields import Field, IpAddress, Text, Timestamp, require
from trellis.core.hello import HELLO
from trellis.core.keys.crud import find_key
from trellis.core.keys.keyring import is_address_allowed
from trellis.core.operation import Context, Operation, Outcome
from trellis.errors import Fault, refuse_faults
from trellis.store.keys import Key

_FIELDS: Final = (
    Field("operation", Text(100, 1), "The operation to check.", required=True, example="forums.create"),
    Field("address", IpAddress(), "The address to check. Without it, the key's address list is not checked.", example="192.0.2.7"),
    Field("at", Timestamp(nullable=True), "The time to check; by default, now."),
)


def operations() -> tuple[Operation, ...]:
    """Return the operation."""
    return (
        Operation(
            "keys.may",
            "Check what a key may do",
            "Returns whether a key may run an operation from an address at a time, and why.",
            _may,
            _FIELDS,
            has_target=True,
        ),
    )


def _may(context: Context) -> Outcome:
    key = find_key(context)
    require(_FIELDS, context.input).raise_faults()
    operation, address, at = context.input.get("operation"), context.input.get("address"), context.input.get("at") or context.now
    if operation != HELLO.name and operation not in context.environment.grantable:
        detail = f"operation: no key can be granted '{operation}'."
        raise refuse_faults(Fault("operation", "UNKNOWN_OPERATION", detail))
    reason, detail = _check_key(key, operation, address, at)
    return Outcome({"may": not reason, "reason": reason or None, "detail": detail, "at": at})


def _check_key(key: Key, operation: str, address: str | None, at: str) -> tuple[str, str]:
    """Return the message of the refusal, or "", and a sentence. Checks run in the order in which the API runs them."""
    if key.revoked_at and key.revoked_at <= at:
        because = f": {key.revoked_because.rstrip('.')}." if key.revoked_because else "."
        return (
            "INVALID_API_KEY",
            f"No: the key was revoked on {_format_day(key.revoked_at)}{because} Revoking cannot be undone; create a new key.",
        )
    if key.expires_at and key.expires_at <= at:
        return "INVALID_API_KEY", f"No: the key expires on {_format_day(key.expires_at)}. Set a later expiry, or create a new key."
    if address and key.addresses and not is_address_allowed(address, key.addresses):
        listed = ", ".join(key.addresses)
        return "IP_ADDRESS_NOT_ALLOWED", f"No: {address} is not one of the key's addresses: {listed}."
    if operation == HELLO.name:
        return "", "Yes: every valid key may run it."
    if operation not in key.grants:
        return "NO_PERMISSION", f"No: {operation} has not been granted. Tick it to allow it."
    return "", "Yes: " + _describe_terms(key, address)


def _describe_terms(key: Key, address: str | None) -> str:
    ends = f"until {_format_day(key.expires_at)}" if key.expires_at else "without an expiry"
    where = ""
    if key.addresses:
        where = f", from {address}" if address else f", from {', '.join(key.addresses)} only"
    return f"it has been granted, {ends}{where}."


def _format_day(moment: str) -> str:
    at: Any = datetime.fromisoformat(moment)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"
