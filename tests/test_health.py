"""What /livez, /readyz and /healthz tell a load balancer or a supervisor."""

import asyncio
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from tests.sqlite_file import file_of
from tests.wait import GIVE_UP
from trellis.compose import compose
from trellis.errors import Refused
from trellis.health import Health
from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.engine import Transaction, faults


async def _ready(health: Health) -> tuple[int, str]:
    """Start, and tell what the first look has found."""
    health.start()
    try:
        while True:
            told = await health.respond("/readyz")
            assert told is not None
            if b"not looked yet" not in told[1]:
                return told[0], told[1].decode()
            await asyncio.sleep(0.01)
    finally:
        await health.stop()


def _look(settings: Settings) -> tuple[int, str]:
    store = compose(settings).store
    try:
        return asyncio.run(_ready(Health(store, settings)))
    finally:
        store.close()


def test_a_process_that_can_do_its_work_is_ready(settings: Settings) -> None:
    status, told = _look(settings)
    disk = "disk: ok\n" if settings.database_url.startswith("sqlite") else ""
    assert (status, told) == (200, f"database: ok\nschema: ok\nwriter: ok\n{disk}")


def test_a_database_of_another_release_is_told(settings: Settings) -> None:
    store = compose(settings).store
    store.write(lambda tx: tx.connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'")), quiet=True).result()
    status, told = asyncio.run(_ready(Health(store, settings)))
    store.close()
    assert status == 503
    assert "schema: the database is at step 0001, and this release needs " in told


def test_a_database_without_its_tables_is_told_until_they_are_back(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that an operator restores while the service runs."""
    monkeypatch.setattr("trellis.health._EVERY", 0.001)
    store = compose(settings).store

    def rename(old: str, new: str) -> None:
        store.write(lambda tx: tx.connection.execute(sa.text(f"ALTER TABLE {old} RENAME TO {new}")), quiet=True).result()

    async def wait_for(health: Health, status: int) -> str:
        async with asyncio.timeout(GIVE_UP):
            while True:
                told = await health.respond("/readyz")
                if told is not None and told[0] == status:
                    return told[1].decode()
                await asyncio.sleep(0.001)

    async def tell() -> tuple[str, object]:
        health = Health(store, settings)
        health.start()
        await wait_for(health, 200)
        rename("alembic_version", "gone")
        found = await wait_for(health, 503), await health.respond("/healthz")
        rename("gone", "alembic_version")
        await wait_for(health, 200)
        await health.stop()
        return found

    ready, asked = asyncio.run(tell())
    store.close()
    assert ready.startswith("database: it cannot be read\nwriter: ok\n")
    assert asked == (503, b"the database cannot be read\n")


def test_a_writer_that_does_not_end_is_told(settings: Settings) -> None:
    store = compose(settings).store
    begun, go_on = threading.Event(), threading.Event()

    def work(_tx: Transaction) -> None:
        begun.set()
        go_on.wait()

    writing = store.write(work, quiet=True)
    begun.wait()
    impatient = SimpleNamespace(busy_timeout=0, database_url=settings.database_url)
    status, told = asyncio.run(_ready(Health(store, impatient)))  # type: ignore[arg-type]
    go_on.set()
    writing.result()
    store.close()
    assert status == 503
    assert "writer: one commit has taken 0 seconds so far" in told


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_disk_that_is_nearly_full_is_told_and_logged_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = [3, 3, 3, 3000, 3000]  # MiB that each finds free; the last one finds what they did
    monkeypatch.setattr("trellis.health._EVERY", 0.001)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=(looks.pop(0) if looks[1:] else looks[0]) * 2**20))
    store = compose(settings).store

    async def tell() -> list[tuple[int, str]]:
        health, told = Health(store, settings), []
        health.start()
        while len(looks) > 1:
            status, text = await health.respond("/readyz") or (0, b"")
            told.append((status, text.decode().splitlines()[-1]))
            await asyncio.sleep(0.001)
        await health.stop()
        return told

    with caplog.at_level("INFO", "trellis.health"):
        assert set(asyncio.run(tell())) >= {(503, "disk: only 3 MiB are free")}
    store.close()
    assert caplog.messages == ["This process is not ready: disk: only 3 MiB are free.", "The disk works again."]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_disk_is_that_of_the_file_to_which_a_link_leads(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = file_of(settings)
    (link := tmp_path / "link.db").symlink_to(real)
    free = {real.parent: 3 * 2**20}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free.get(Path(path), 2**40)))
    status, told = _look(replace(settings, database_url=f"sqlite:///{link}"))
    assert (status, told.splitlines()[-1]) == (503, "disk: only 3 MiB are free")


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_full_disk_of_the_server_is_told_although_small_writes_succeed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tx: Transaction) -> None:
        tx.raw.execute("DO $$ BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$")

    store = compose(settings).store
    with pytest.raises(Refused, match="The disk of the database server is full"):
        store.write(fail).result()
    store.try_to_write().result()
    for health in (Health(store, settings), Health(store, settings)):
        status, told = asyncio.run(_ready(health))
        assert (status, told.splitlines()[0]) == (503, "database: The disk of the database server is full.")
    monkeypatch.setattr(faults, "_QUIET", 0.0)
    assert asyncio.run(_ready(Health(store, settings)))[0] == 200
    store.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_fault_of_the_file_is_over_though_nobody_writes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    store = compose(settings).store
    with monkeypatch.context() as patch:
        patch.setattr(sqlite._library, "SQLITE_OPEN_READWRITE", sqlite._library.SQLITE_OPEN_READONLY)
        with pytest.raises(Refused, match="cannot be written to"):
            store.try_to_write().result()
        status, told = asyncio.run(_ready(Health(store, settings)))
        assert (status, told.splitlines()[0]) == (503, "database: The database cannot be written to.")
    assert asyncio.run(_ready(Health(store, settings)))[0] == 200
    store.close()


def test_however_many_ask_during_a_fault_one_write_is_tried(settings: Settings) -> None:
    """Anybody may ask: they must not fill the queue of the writer, for which others are refused then."""
    store = compose(settings).store
    store.faults.reason = "The database cannot be written to."
    has_begun, goes_on = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        has_begun.set()
        goes_on.wait(GIVE_UP)

    held = store.write(hold)
    assert has_begun.wait(GIVE_UP)

    async def ask() -> None:
        health = Health(store, settings)
        asked = [asyncio.ensure_future(health.respond("/healthz")) for _ in range(50)]
        try:
            answers = await asyncio.gather(*asked)
            assert [answer and answer[0] for answer in answers] == [503] * 50
            assert store.writer.waiting <= 1
        finally:
            goes_on.set()
        await health.stop()

    asyncio.run(ask())
    held.result(GIVE_UP)
    assert asyncio.run(_ready(Health(store, settings)))[0] == 200
    store.close()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_that_accepts_no_writes_is_told_before_anybody_writes_and_its_end_too(settings: Settings) -> None:
    """Such as a standby: a load balancer that goes on sending writes there would have all of them refused."""
    store = compose(settings).store
    with store.reading(snapshot=False) as tx:  # over a connection that is in the pool then
        tx.raw.execute("SET default_transaction_read_only = on")
    status, told = asyncio.run(_ready(Health(store, settings)))
    reason = "The database accepts no writes: its server is a standby, or was set to read-only."
    assert (status, told) == (503, f"database: {reason}\nwriter: ok\n")
    assert asyncio.run(_ready(Health(store, settings)))[0] == 200, "over new connections, as after a failover"
    assert store.faults.reason is None
    store.close()


def test_it_ends_at_once_though_a_look_ends_at_the_same_moment(settings: Settings) -> None:
    store = compose(settings).store

    async def end() -> None:
        health = Health(store, settings)
        health._schema._running = looking = asyncio.get_running_loop().create_future()
        health.start()
        for _ in range(5):
            await asyncio.sleep(0)  # until it waits for that look
        looking.set_result("ok")
        async with asyncio.timeout(GIVE_UP):
            await health.stop()

    asyncio.run(end())
    store.close()


def test_without_a_database_a_process_lives_and_is_not_ready() -> None:
    unreachable = Settings.load({"TRELLIS_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}, None)
    store = compose(unreachable).store
    health = Health(store, unreachable)
    assert asyncio.run(_ready(health)) == (503, "database: it cannot be read\nwriter: ok\n")
    assert asyncio.run(health.respond("/livez")) == (200, b"ok\n")
    assert asyncio.run(health.respond("/nothing")) is None
    store.close()
