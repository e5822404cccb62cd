"""The composition root: settings → store → catalogue → gate. It alone knows every part of the core.

What it puts together is imported when it is needed, for start-up time: a command runs one or two operations of all there are.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.events import event_types
from trellis.core.gate import Gate
from trellis.core.operation import Environment, Operation, WebhookPolicy
from trellis.settings import Settings
from trellis.store.engine import Store

if TYPE_CHECKING:
    from trellis.core.kind import NodeKind

# The sections of the catalogue beside those below: packages and modules of the core, in which `operations` gives them.
_BEFORE_UNDO: Final = ("keys", "admins", "events", "requests")
_AFTER_UNDO: Final = ("webhooks", "check", "overview")

Kinds = Callable[[], "Sequence[NodeKind]"]


def catalogue_of(kinds: "Sequence[NodeKind]") -> Catalogue:
    """Return the catalogue of every operation there is, for these kinds."""
    return _catalogue(lambda: kinds)


def _catalogue(kinds: Kinds) -> Catalogue:
    return Catalogue(
        {
            "core": _hello,
            "nodes": lambda: _on_nodes(kinds),
            **{name: partial(_operations_of, name) for name in _BEFORE_UNDO},
            "undo": lambda: _undo(kinds),
            **{name: partial(_operations_of, name) for name in _AFTER_UNDO},
        }
    )


def _operations_of(name: str) -> tuple[Operation, ...]:
    operations: tuple[Operation, ...] = import_module(f"trellis.core.{name}").operations()
    return operations


def _hello() -> tuple[Operation, ...]:
    from trellis.core.hello import HELLO  # noqa: PLC0415  # start-up time

    return (HELLO,)


def _on_nodes(kinds: Kinds) -> Iterator[Operation]:
    from trellis.core import nodes, undo  # noqa: PLC0415  # start-up time

    for kind in kinds():
        yield from (*nodes.operations(kind), undo.operation(kind))


def _undo(kinds: Kinds) -> tuple[Operation, ...]:
    from trellis.core import undo  # noqa: PLC0415  # start-up time

    return (undo.fork(kinds()), *undo.history_operations())


def _all_kinds() -> "Sequence[NodeKind]":
    from trellis.kinds import KINDS  # noqa: PLC0415  # start-up time

    return KINDS


def compose(settings: Settings, kinds: "Sequence[NodeKind] | None" = None, clock: Callable[[], datetime] | None = None) -> Gate:
    """Put the service together, without `kinds` for all that there are. The database is not touched yet."""
    load_kinds = _all_kinds if kinds is None else lambda: kinds
    catalogue = _catalogue(load_kinds)
    environment = Environment(
        community_name=settings.community_name,
        community_url=settings.community_url,
        version=__version__,
        load_kinds=lambda: tuple(load_kinds()),
        load_operations=catalogue.values,
        load_event_types=lambda: event_types(catalogue.values()),
        keep_events=settings.keep_events,
        keep_snapshots=settings.keep_snapshots,
        outgoing=WebhookPolicy(tuple(ip_network(text, strict=False) for text in settings.webhook_allow), settings.webhook_key),
    )
    return Gate(Store(settings), catalogue, environment, clock)
