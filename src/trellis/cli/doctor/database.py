"""What `trellis doctor` checks in the database: its server, the clocks, backups, administrators and webhooks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from trellis.cli.community import community
from trellis.cli.doctor.finding import Finding, doubtful, good, wrong
from trellis.cli.terminal import Failure
from trellis.core.admins import can_anybody_sign_in, has_administrators, lacks_local_owner
from trellis.core.gate import Gate
from trellis.core.overview import is_recent_backup
from trellis.errors import Refused
from trellis.settings import Settings, variable
from trellis.store.condition import explain_error, find_file
from trellis.store.figures import read_figures
from trellis.store.inspection import Inspection, Server, inspect, need_room

_APART: Final = 2.0  # seconds by which two clocks may differ
_OLDEST_SERVER: Final = 140_000
_LATE: Final = timedelta(minutes=15)


def look_at_database(settings: Settings) -> Iterator[Finding]:
    """Open the database, and check what is in it and around it."""
    try:
        with community(settings) as gate:
            yield _judge_writes(gate, settings)
            with gate.store.reading() as tx:
                found, now = inspect(tx), datetime.fromisoformat(gate.now())  # together, as other reads may take a while
                figures = read_figures(tx, gate.now())
            if found.server is not None:
                yield from _judge_server(found.server, settings)
            yield from judge_clocks(found, now)
            yield _judge_backup(found.server, figures.last_backup, now)
            yield _judge_administrators(gate)
            if lacks_local_owner(gate):
                yield doubtful(
                    "single sign-on",
                    "No owner has a password here: no owner can sign in while the provider is down.",
                    "Give one a password: trellis admins reset-password LOGIN, or Your account in the panel.",
                )
            late = [w.id for w in figures.webhooks if w.waiting_since and now - datetime.fromisoformat(w.waiting_since) > _LATE]
            if late:
                yield doubtful(
                    "webhooks",
                    f"Messages have been waiting for more than 15 minutes for {', '.join(f'webhook {number}' for number in late)}.",
                    "Their pages in the panel say what their endpoints answer. Is `trellis serve` or `trellis work` running?",
                )
            elif figures.webhooks:
                yield good("webhooks", f"{len(figures.webhooks)} switched on, none is late.")
    except Failure as failure:
        yield wrong("database", str(failure), "Nothing else in it could be checked.")


def _judge_writes(gate: Gate, settings: Settings) -> Finding:
    """Find out whether a database can be written to, by doing so. A PostgreSQL server reports itself whether it accepts writes."""
    try:
        if find_file(settings) is not None:
            gate.store.try_to_write().result()
        else:
            with gate.store.reading() as tx:
                need_room(tx)
    except Refused as refused:
        if gate.store.faults.reason is not None:  # otherwise a long write is under way
            told = explain_error(settings, refused) or refused.detail
            return wrong("database", told, "Until it can be written to, reads go on, and writes are refused.")
    return good("database", f"{gate.store.describe_engine()}, at the newest step.")


def _judge_server(server: Server, settings: Settings) -> Iterator[Finding]:
    if server.version < _OLDEST_SERVER:
        yield wrong("PostgreSQL", f"Version {server.version // 10_000} is too old.", "Trellis needs version 14 or newer.")
    for name, value in (("synchronous_commit", server.synchronous_commit), ("fsync", server.fsync)):
        if value not in {"on", "remote_apply", "remote_write"}:
            yield wrong("PostgreSQL", f"{name} is {value}: acknowledged writes can be lost.", f"Set {name} to on.")
    if server.is_standby:
        yield wrong("PostgreSQL", "This server is a standby, which accepts no writes.", "Use the address of the primary.")
    elif server.is_read_only:
        action = "Find out why, such as a full disk at a provider, and set default_transaction_read_only to off."
        yield wrong("PostgreSQL", "This server, database or account was set to read-only: it accepts no writes.", action)
    needed = settings.database_pool + 2
    if server.max_connections < 2 * needed:
        yield doubtful(
            "PostgreSQL",
            f"It accepts {server.max_connections} connections, and each process uses up to {needed}.",
            f"Raise max_connections, or lower {variable('database_pool')}.",
        )
    else:
        yield good("PostgreSQL", f"It accepts {server.max_connections} connections, and each process uses up to {needed}.")


def judge_clocks(found: Inspection, now: datetime) -> Iterator[Finding]:
    """Compare this machine's clock with that of the database server, and with the newest row."""
    if found.server is not None and (apart := abs(found.server.time - now.timestamp())) > _APART:
        told = f"This machine's clock and that of PostgreSQL are {apart:,.0f} seconds apart."
        yield wrong("clock", told, "Synchronize both with a time server (NTP): expiry depends on it.")
    elif found.newest_at is not None and datetime.fromisoformat(found.newest_at) > now + timedelta(seconds=_APART):
        told = f"The newest row is of {found.newest_at}, which is ahead of this machine's clock ({_write(now)})."
        yield wrong("clock", told, "Synchronize every machine with a time server (NTP).")
    else:
        yield good("clock", f"{_write(now)}.")


def _judge_backup(server: Server | None, last: int | None, now: datetime) -> Finding:
    if server is not None:
        return good("backups", "Those of PostgreSQL are not known here.")
    action = "Run `trellis backup FILE`, or keep `trellis backup FOLDER --every 6h --keep 28` running."
    if last is None:
        return doubtful("backups", "No backup was made by `trellis backup`.", action)
    made = datetime.fromtimestamp(last / 1000, UTC)
    told = f"The last one was made at {_write(made)}."
    return good("backups", told) if is_recent_backup(made, now) else doubtful("backups", told, action)


def _judge_administrators(gate: Gate) -> Finding:
    if can_anybody_sign_in(gate):
        return good("administrators", "There are some.")
    if has_administrators(gate):
        return doubtful(
            "administrators",
            "Nobody can sign in: each was disabled, has not accepted their invitation, or may use no password and has no account "
            "at the provider.",
            "`trellis admins invite LOGIN` makes another link, `trellis admins reset-password LOGIN` gives one a password, and "
            "`trellis admins create LOGIN` adds an owner.",
        )
    return doubtful(
        "administrators", "There is none, so nobody can use the panel.", "`trellis serve` prints a link to create the first."
    )


def _write(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
