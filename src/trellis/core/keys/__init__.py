"""API keys: the operations on them, what may be settled about one, and the judgement of a key that comes with a request."""

from trellis.core.keys import crud, may
from trellis.core.keys.crud import found, version, widened, written
from trellis.core.keys.fields import FILTERS, OVERLAP, REASON, SETTINGS
from trellis.core.keys.keyring import Bearer, Keyring, prove
from trellis.core.keys.secret import redacted
from trellis.core.operation import Operation

__all__ = [
    "FILTERS",
    "OVERLAP",
    "REASON",
    "SETTINGS",
    "Bearer",
    "Keyring",
    "found",
    "operations",
    "prove",
    "redacted",
    "version",
    "widened",
    "written",
]


def operations() -> tuple[Operation, ...]:
    """Give the operations on keys."""
    return (*crud.operations(), *may.operations())
