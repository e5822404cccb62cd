"""Webhooks: the operations on them and their deliveries, where they may go, their messages and secrets."""

from trellis.core.operation import Operation
from trellis.core.webhooks import crud, deliveries
from trellis.core.webhooks.address import Address, Network, NotAllowed, judge_address, judge_url, networks
from trellis.core.webhooks.crud import EVERYTHING, MOST, OVERLAP, version, wants, widened, written
from trellis.core.webhooks.deliveries import FAILED_SINCE, FILTERS, content
from trellis.core.webhooks.fields import SETTINGS, SKIP
from trellis.core.webhooks.message import TEST, body_of, headers_of, message_id, timestamp_of
from trellis.core.webhooks.secret import SecretLost, redacted, secret_bytes

__all__ = [
    "EVERYTHING",
    "FAILED_SINCE",
    "FILTERS",
    "MOST",
    "OVERLAP",
    "SETTINGS",
    "SKIP",
    "TEST",
    "Address",
    "Network",
    "NotAllowed",
    "SecretLost",
    "body_of",
    "content",
    "headers_of",
    "judge_address",
    "judge_url",
    "message_id",
    "networks",
    "operations",
    "redacted",
    "secret_bytes",
    "timestamp_of",
    "version",
    "wants",
    "widened",
    "written",
]


def operations() -> tuple[Operation, ...]:
    """Give the operations on webhooks and their deliveries."""
    return (*crud.operations(), *deliveries.operations())
