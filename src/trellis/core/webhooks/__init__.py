"""Webhooks: the operations on them and on their deliveries, the addresses allowed, the messages and the secrets."""

from trellis.core.operation import Operation
from trellis.core.webhooks import crud, deliveries
from trellis.core.webhooks.address import Address, Network, NotAllowed, check_address, check_url
from trellis.core.webhooks.crud import MOST, OVERLAP, serialize_webhook, webhook_version
from trellis.core.webhooks.deliveries import FAILED_SINCE, FILTERS, delivery_message
from trellis.core.webhooks.fields import SETTINGS, SKIP
from trellis.core.webhooks.message import MESSAGE_HEADERS, TEST, alarm_message_id, build_headers, message_id, webhook_timestamp
from trellis.core.webhooks.secret import SecretUnavailable, derive_secret, redact_secrets


def operations() -> tuple[Operation, ...]:
    """Return the operations on webhooks and their deliveries."""
    return (*crud.operations(), *deliveries.operations())
