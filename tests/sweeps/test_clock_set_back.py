"""A sweep over every write after the clock was set back: none takes the time of a record's last change back.

Otherwise whoever follows `updatedSince` would miss the change. No kind is named here.
"""

from typing import Any, Final

import sqlalchemy as sa

from tests.fixture_types import Clock, Events, RunForEvent
from tests.node_rows import write_by_hand
from tests.sweeps.grantable import create_target
from trellis.compose import catalogue_of
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind
from trellis.core.operation import Call
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store.tables import administrators, keys, nodes, saved_filters, webhooks

CATALOGUE: Final = catalogue_of(KINDS)
WRITES: Final = frozenset(operation.name for operation in CATALOGUE.values() if operation.writes and operation.fork is None)
TABLES: Final = (administrators, keys, nodes, saved_filters, webhooks)
PASSWORD: Final = "kept in a tin box"  # of nobody
# These need a passkey, a provider or a session, so they are tested in tests/admin/admins. They change administrators alone.
BY_A_PERSON: Final = frozenset(
    f"admins.{verb}"
    for verb in (
        *("sign_in", "confirm_password", "sign_out", "refuse_sign_in", "accept_invitation"),
        *("add_passkey", "rename_passkey", "remove_passkey", "set_authenticator", "remove_authenticator"),
        *("renew_recovery_codes", "reset_second_factor", "begin"),
        *("sign_on", "confirm_sign_on", "join", "follow_groups", "turn_away"),
        *("link_identity", "accept_by_sign_on", "unlink_identity"),
    )
)


class Watch:
    """Runs writes, and checks after each that every record that it wrote says that it was changed at `since` or later."""

    def __init__(self, gate: Gate, since: str) -> None:
        self._gate = gate
        self._since = since
        self._known = self._find_older()
        self.ran: set[str] = set()

    def __call__(self, operation: str, target: int | None = None, /, **raw: Any) -> Any:
        return self.run_as(TERMINAL, operation, target, **raw)

    def run_as(self, actor: Actor, operation: str, target: int | None = None, /, **raw: Any) -> Any:
        value = self._gate.run(Call(operation, actor, raw, target)).value
        assert self._find_older() <= self._known, operation
        self.ran.add(operation)
        return value

    def _find_older(self) -> set[tuple[Any, ...]]:
        """Return the records that were changed before, such as the built-in groups."""
        with self._gate.store.reading() as tx:
            return {
                (table.name, *row)
                for table in TABLES
                for row in tx.connection.execute(
                    sa.select(*table.primary_key.columns, table.c.updated_at).where(table.c.updated_at < self._since)
                )
            }


def _write_nodes(kind: NodeKind, run: Watch) -> None:
    def operation(verb: str) -> str:
        return kind.operation(verb)

    first, second, third = (run(operation("create"), name=name)["id"] for name in ("One", "Two", "Three"))
    run(operation("update"), first, name="Changed")
    for verb, raw in (("copy", {}), ("order", {"ids": [second, first]})):
        if operation(verb) in CATALOGUE:
            run(operation(verb), first if CATALOGUE[operation(verb)].has_target else None, **raw)
    run(operation("put_external"), externalId="by-program", name="By a program")
    run(operation("delete_external"), externalId="by-program", **{"deleteChildrenOrMove": -1} if kind.tree else {})
    if kind.tree:
        run(operation("update"), second, parentId=first)
        run(operation("delete"), first, deleteChildrenOrMove=third)
    else:
        run(operation("delete"), first)
    run(operation("restore"), _newest(run))
    run(operation("update"), first, name="Changed again")
    run(operation("restore"), _newest(run))
    run(operation("update"), second, externalId=f"{kind.name}-two")
    document = {"format": "trellis/1", "name": "sweep", kind.name: [{"externalId": f"{kind.name}-two", "name": "Planned"}]}
    run("structure.plan", document=document)
    run("structure.apply", document=document)


def _newest(run: Watch) -> int:
    return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])


def _write_keys(run: Watch) -> None:
    one, two = (run("keys.create", name=name, grants=["*"], preset="agent")["id"] for name in ("One", "Two"))
    create = KINDS[1].operation("create")
    plugin = Actor("key", one, "One", frozenset({"webhooks.create", create}))
    for _ in range(2):
        run.run_as(plugin, "webhooks.create", url="https://hooks.example/x", events=["*"])
    run.run_as(plugin, create, name="By a key")
    run("events.restore_of_key", one, since="2026-01-01", skipConflicts=True)
    run("keys.update", one, note="Changed")
    run("keys.restore", _newest(run))
    run("keys.pause", one)
    run("keys.resume", one)
    run("keys.pause_preset", preset="agent")
    run("keys.rotate", one)
    run("keys.update_many", ids=[one, two], ungrant=["webhooks.list"])
    run("keys.revoke", one)
    run("keys.revoke_many", ids=[two])


def _write_admins(run: Watch) -> None:
    ada, mira = (
        run("admins.create", name=name, login=name, password=PASSWORD, mustChangePassword=False)["id"] for name in ("Ada", "Mira")
    )
    admin = Actor.administrator(mira, "Mira", None)
    run.run_as(admin, "webhooks.create", url="https://hooks.example/x", events=["*"])
    saved = run.run_as(admin, "filters.create", name="Mine", list="requests", query="status=4xx")["id"]
    run.run_as(admin, "filters.update", saved, name="Ours")
    run.run_as(admin, "filters.delete", saved)
    run("admins.update", mira, name="Mira Holm")
    run("admins.set_role", mira, role="auditor")
    run("admins.set_password", mira, password=f"{PASSWORD} of {ada}")
    run("admins.disable", mira)
    run("admins.enable", mira)
    invited = run("admins.invite", name="Guest", login="guest")["id"]
    run("admins.renew_invitation", invited)
    run("admins.withdraw_invitation", invited)


def _write_webhooks(run: Watch) -> None:
    webhook = run("webhooks.create", url="https://hooks.example/x", events=["*"])["id"]
    run("webhooks.update", webhook, description="Changed")
    run("webhooks.rotate", webhook)
    run("webhooks.test", webhook)
    run("webhooks.redeliver", webhook, failedSince="2026-01-01")
    run("webhooks.disable", webhook, because="gone")
    run("webhooks.delete", webhook)


def test_no_write_takes_the_time_of_the_last_change_back(
    gate: Gate, settings: Settings, clock: Clock, do: RunForEvent, events: Events
) -> None:
    kind = KINDS[1]
    do(kind.operation("create"), name="Before")
    run = Watch(gate, since=clock.text)
    clock.move(hours=-1)
    for one in KINDS:
        _write_nodes(one, run)
    for write in (_write_keys, _write_admins, _write_webhooks):
        write(run)
    for verb in ("approve", "reject", "withdraw", "expire"):
        target = create_target(CATALOGUE, CATALOGUE[f"proposals.{verb}"], run)
        clock.move(days=8 * (verb == "expire"))
        run(f"proposals.{verb}", target, **{"reason": "No."} if verb == "reject" else {})
    clock.move(days=-8)
    write_by_hand(settings, "UPDATE nodes SET name = ' Untidy '")
    run("check.repair")
    run("core.batch", operations=[{"operation": kind.operation("create"), "body": {"name": "In a batch"}}])
    run("changesets.restore", events()[-1]["changeSet"])
    assert events()[-1]["at"] > clock.text
    assert WRITES - BY_A_PERSON - run.ran - {event["operation"] for event in events()} == set()
