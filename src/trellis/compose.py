"""The composition root: settings → store → catalogue → gate. It alone knows every room."""

from collections.abc import Callable, Sequence
from datetime import datetime

from trellis import __version__
from trellis.core import admins, check, events, keys, nodes, overview, requests, undo, webhooks
from trellis.core.catalogue import Catalogue
from trellis.core.gate import Gate
from trellis.core.hello import HELLO
from trellis.core.nodes import NodeKind
from trellis.core.operation import Environment, Operation, WebhookPolicy
from trellis.core.webhooks import parse_networks
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store.engine import Store


def catalogue_of(kinds: Sequence[NodeKind]) -> Catalogue:
    """Give every operation there is, for these kinds."""
    return Catalogue(
        (
            HELLO,
            *(o for kind in kinds for o in _operations_of(kind)),
            *keys.operations(),
            *admins.operations(),
            *events.operations(),
            *requests.operations(),
            undo.fork(kinds),
            *webhooks.operations(),
            *check.operations(),
            *overview.operations(),
        )
    )


def _operations_of(kind: NodeKind) -> tuple[Operation, ...]:
    operations = nodes.operations(kind)
    return (*operations, undo.operation(kind, operations))


def compose(settings: Settings, kinds: Sequence[NodeKind] = KINDS, clock: Callable[[], datetime] | None = None) -> Gate:
    """Put the house together. The database is not touched yet."""
    catalogue = catalogue_of(kinds)
    environment = Environment(
        community_name=settings.community_name,
        community_url=settings.community_url,
        version=__version__,
        kinds=tuple(kinds),
        grantable=frozenset(operation.name for operation in catalogue.grantable),
        event_types=events.event_types(catalogue.values()),
        keep_events=settings.keep_events,
        keep_snapshots=settings.keep_snapshots,
        outgoing=WebhookPolicy(parse_networks(settings.webhook_allow), settings.webhook_key),
    )
    return Gate(Store(settings), catalogue, environment, clock)
