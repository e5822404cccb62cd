"""The tables, declared with SQLAlchemy Core. The migrations create them, and a test checks that both agree."""

from trellis.store.tables.metadata import METADATA
from trellis.store.tables.panel import (
    administrators,
    alarms,
    authenticators,
    failed_sign_ins,
    first_run_links,
    identities,
    invitations,
    mails,
    passkeys,
    recovery_codes,
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
    proposals,
    request_hours,
    request_shapes,
    requests,
    snapshots,
)
from trellis.store.tables.structure import counters, deleted_id_counts, node_changes, nodes, search_names, sibling_blocks
from trellis.store.tables.webhooks import attempts, deliveries, webhooks
