"""The tables, declared with SQLAlchemy Core. The migrations create them, and a test checks that both agree."""

from trellis.store.tables.factors import authenticators, passkeys, recovery_codes
from trellis.store.tables.mail import mails
from trellis.store.tables.metadata import METADATA
from trellis.store.tables.panel import (
    administrators,
    alarms,
    failed_sign_ins,
    first_run_links,
    identities,
    invitations,
    saved_filters,
    sessions,
    sign_in_attempts,
    signing_keys,
)
from trellis.store.tables.programs import (
    change_sets,
    events,
    grant_uses,
    idempotent_responses,
    key_quarters,
    key_uses,
    keyless_requests,
    keys,
    request_hours,
    request_shapes,
    requests,
    snapshots,
)
from trellis.store.tables.proposals import proposals
from trellis.store.tables.structure import counters, deleted_id_counts, node_changes, nodes, search_names, sibling_blocks
from trellis.store.tables.webhooks import attempts, deliveries, webhooks

__all__ = [
    "METADATA",
    "administrators",
    "alarms",
    "attempts",
    "authenticators",
    "change_sets",
    "counters",
    "deleted_id_counts",
    "deliveries",
    "events",
    "failed_sign_ins",
    "first_run_links",
    "grant_uses",
    "idempotent_responses",
    "identities",
    "invitations",
    "key_quarters",
    "key_uses",
    "keyless_requests",
    "keys",
    "mails",
    "node_changes",
    "nodes",
    "passkeys",
    "proposals",
    "recovery_codes",
    "request_hours",
    "request_shapes",
    "requests",
    "saved_filters",
    "search_names",
    "sessions",
    "sibling_blocks",
    "sign_in_attempts",
    "signing_keys",
    "snapshots",
    "webhooks",
]
