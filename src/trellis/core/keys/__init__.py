"""API keys: the operations on them, their settings, and the authentication of a key sent with a request."""

from trellis.core.keys import crud, many, naming, pause, restore
from trellis.core.keys.bounds import MEMBERS as BOUND_MEMBERS
from trellis.core.keys.bounds import describe_bound, describe_bounds, list_bounds
from trellis.core.keys.crud import find_key, is_for_trying, is_key_widened, key_version, serialize_key
from trellis.core.keys.expiry import settle_spans
from trellis.core.keys.fields import (
    FILTERS,
    FOR_TRYING,
    KEEP_WEBHOOKS,
    MOST_OVERLAP,
    OVERLAP,
    REASON,
    RECORDED,
    SETTINGS,
    WHY_PAUSED,
)
from trellis.core.keys.keyring import Bearer, KeyNotUsable, Keyring, authenticate, find_holder
from trellis.core.keys.many import MOST
from trellis.core.keys.naming import find_named_key
from trellis.core.keys.presets import PRESET, PRESETS, describe_preset
from trellis.core.keys.restore import RESTORE
from trellis.core.keys.secret import (
    find_public_part,
    has_key_form,
    redact_beginning,
    redact_keys,
    redact_path,
    tidy_reason,
    to_one_line,
)
from trellis.core.keys.state import key_state
from trellis.core.operation import Operation


def operations() -> tuple[Operation, ...]:
    """Return the operations on keys."""
    return (*crud.operations(), *many.operations(), *pause.operations(), naming.operation(), restore.operation())
