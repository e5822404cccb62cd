"""The composition root: settings → store → catalogue → gate. It is the only module that knows every part of the core.

Modules are imported only when they are needed, so that commands start quickly: a command runs only one or two operations.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.events import event_types
from trellis.core.gate import Gate
from trellis.core.operation import Environment, GroupRole, Operation, Raised, SecondFactorPolicy, SignOnPolicy, WebhookPolicy
from trellis.core.passwords import BreachedPasswords
from trellis.core.roles import ROLES
from trellis.settings import Settings, SettingsError, split_group_roles
from trellis.store.engine import Store
from trellis.traced_gate import TracedGate
from trellis.traces import Traces

if TYPE_CHECKING:
    from trellis.core.kind import NodeKind
    from trellis.store.events import Event

# The other sections of the catalogue: packages and modules of the core that have a function `operations`. Lists of operations show
# them in this order, with those of undo between the two parts; a new section belongs at the end.
_BEFORE_UNDO: Final = ("keys", "admins", "events", "requests")
_AFTER_UNDO: Final = ("access", "webhooks", "proposals", "check", "overview", "search", "alarms", "filters")
_WATCHED: Final = ("keys", "admins", "webhooks")  # sections whose events may raise alarms

Kinds = Callable[[], "Sequence[NodeKind]"]


def catalogue_of(kinds: "Sequence[NodeKind]") -> Catalogue:
    """Return the catalogue of all operations for some kinds."""
    return _catalogue(lambda: kinds)


def _catalogue(kinds: Kinds) -> Catalogue:
    return Catalogue(
        {
            "core": _on_itself,
            "nodes": lambda: _on_nodes(kinds),
            "structure": lambda: _on_structure(kinds),
            **{name: partial(_operations_of, name) for name in _BEFORE_UNDO},
            "undo": lambda: _on_undo(kinds),
            **{name: partial(_operations_of, name) for name in _AFTER_UNDO},
        }
    )


def _operations_of(name: str) -> tuple[Operation, ...]:
    operations: tuple[Operation, ...] = import_module(f"trellis.core.{name}").operations()
    return (
        tuple(replace(one, find_alarm=_find_alarm) if one.writes else one for one in operations) if name in _WATCHED else operations
    )


def _find_alarm(event: "Event") -> Raised | None:
    from trellis.core.alarms import find_alarm  # noqa: PLC0415  # start-up time

    return find_alarm(event)


def list_alarm_types() -> Iterable[str]:
    """Return the event types of alarms."""
    from trellis.core.alarms import ALARM_TYPES  # noqa: PLC0415  # start-up time

    return ALARM_TYPES


def _on_itself() -> tuple[Operation, ...]:
    from trellis.core import batch, hello  # noqa: PLC0415  # start-up time

    return (hello.HELLO, batch.OPERATION)


def _on_nodes(kinds: Kinds) -> Iterator[Operation]:
    from trellis.core import nodes, undo  # noqa: PLC0415  # start-up time

    for kind in kinds():
        yield from (*nodes.operations(kind), undo.operation(kind))


def _on_structure(kinds: Kinds) -> tuple[Operation, ...]:
    from trellis.core import structure  # noqa: PLC0415  # start-up time

    return structure.operations(kinds())


def _on_undo(kinds: Kinds) -> tuple[Operation, ...]:
    from trellis.core import undo  # noqa: PLC0415  # start-up time

    return (undo.fork(kinds()), *undo.history_operations(), *undo.change_set_operations())


@cache
def _catalogue_of_all() -> Catalogue:
    """Return the catalogue for all kinds. It never changes, so a process builds it only once."""
    return _catalogue(_all_kinds)


def _all_kinds() -> "Sequence[NodeKind]":
    from trellis.kinds import KINDS  # noqa: PLC0415  # start-up time

    return KINDS


def compose(
    settings: Settings,
    kinds: "Sequence[NodeKind] | None" = None,
    clock: Callable[[], datetime] | None = None,
    traces: Traces | None = None,
) -> Gate:
    """Return the gate of a service, by default with all kinds and without traces. The database is not accessed yet.

    Raises SettingsError if the settings for single sign-on are wrong.
    """
    load_kinds = _all_kinds if kinds is None else lambda: kinds
    catalogue = _catalogue_of_all() if kinds is None else _catalogue(load_kinds)
    environment = Environment(
        community_name=settings.community_name,
        community_url=settings.community_url,
        public_url=settings.public_url,
        version=__version__,
        load_kinds=lambda: tuple(load_kinds()),
        operations=catalogue,
        load_event_types=lambda: (*event_types(catalogue.values()), *list_alarm_types()),
        keep_events=settings.keep_events,
        keep_snapshots=min(settings.keep_snapshots, settings.keep_events),  # an undo needs the event, too
        job_timeout=settings.job_timeout,
        outgoing=WebhookPolicy(
            tuple(ip_network(text, strict=False) for text in settings.webhook_allow),
            settings.webhook_key,
            settings.instance,
            settings.webhook_hosts,
            settings.require_tls,
        ),
        has_mail=settings.smtp_host is not None,
        second_factors=SecondFactorPolicy(settings.require_second_factor, settings.second_factor_key),
        sign_on=_sign_on_policy(settings, load_kinds),
        breached_passwords=BreachedPasswords(Path(settings.breached_passwords)) if settings.breached_passwords else None,
        proposals_per_key=settings.proposals_per_key,
        proposal_days=settings.proposal_days,
        traces=traces,
    )
    return (Gate if traces is None else TracedGate)(Store(settings), catalogue, environment, clock)


def _sign_on_policy(settings: Settings, load_kinds: Kinds) -> SignOnPolicy:
    """Return the settings for single sign-on. Raises SettingsError for an unknown role or kind, or kinds with a role for all."""
    if settings.sso_issuer is None:
        return SignOnPolicy()
    roles = tuple(GroupRole(*one) for one in split_group_roles(settings.sso_roles or ""))
    for one in roles:
        if one.role not in ROLES:
            raise SettingsError(f"TRELLIS_SSO_ROLES: there is no role {one.role}. There are {', '.join(ROLES)}.")
        if one.kinds and not ROLES[one.role].for_kinds:
            raise SettingsError(f"TRELLIS_SSO_ROLES: the role {one.role} is for all kinds.")
        known = [kind.name for kind in load_kinds() if not kind.is_group] if one.kinds else []
        if unknown := set(one.kinds).difference(known):
            raise SettingsError(f"TRELLIS_SSO_ROLES: {min(unknown)} is none of {', '.join(known)}.")
    return SignOnPolicy(
        settings.sso_issuer,
        settings.sso_name,
        roles,
        joins=settings.sso_new_administrators,
        owners_only=settings.sso_local_sign_in == "owners",
    )
