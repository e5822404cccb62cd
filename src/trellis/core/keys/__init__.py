"""API keys: the operations on them, their settings, and the authentication of a key sent with a request."""

from trellis.core.keys import crud, may
from trellis.core.keys.crud import find_key, is_key_widened, key_version, serialize_key
from trellis.core.keys.fields import FILTERS, KEEP_WEBHOOKS, OVERLAP, REASON, SETTINGS
from trellis.core.keys.keyring import Bearer, Keyring, authenticate
from trellis.core.keys.secret import has_key_form, redact_keys
from trellis.core.operation import Operation

__all__ = [
    "FILTERS",
    "KEEP_WEBHOOKS",
    "OVERLAP",
    "REASON",
    "SETTINGS",
    "Bearer",
    "Keyring",
    "authenticate",
    "find_key",
    "has_key_form",
    "is_key_widened",
    "key_version",
    "operations",
    "redact_keys",
    "serialize_key",
]


def operations() -> tuple[Operation, ...]:
    """Return the operations on keys."""
    return (*crud.operations(), *may.operations())
