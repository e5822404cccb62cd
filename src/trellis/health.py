"""Health checks for load balancers and supervisors, which report whether this process works: /livez, /readyz and /healthz."""

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from trellis.errors import Refused
from trellis.http.reading import SharedRead
from trellis.settings import Settings
from trellis.store.condition import find_file
from trellis.store.engine import Store
from trellis.store.inspection import accepts_writes
from trellis.store.sqlite import find_real_file
from trellis.store.steps import find_newest_step, read_step

log = logging.getLogger(__name__)

_EVERY: Final = 1.0  # seconds between two checks
_PATIENCE: Final = 2.0  # seconds that a check may take
_HEALTH: Final = 1.0  # seconds after which /healthz reports that the database cannot be read
LEAST_DISK: Final = 64 * 2**20  # free bytes that a SQLite database needs to keep working
_OK: Final = "ok"


class Health:
    """The health of one process. It is checked every second in the background, so that requests for /readyz cost nothing."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        file = find_file(settings)
        self._folder = None if file is None else find_real_file(file).parent
        self._schema = SharedRead("trellis-health", self._read)
        self._found: Mapping[str, str] = {"start": "not looked yet"}
        self._task: asyncio.Task[None] | None = None
        self._pages: Mapping[str, Callable[[], Awaitable[tuple[int, str]]]] = {
            "/livez": self._live,
            "/readyz": self._ready,
            "/healthz": self._health,
        }

    def start(self) -> None:
        """Start checking, in the running event loop."""
        self._task = asyncio.create_task(self._keep_looking())

    async def stop(self) -> None:
        """Stop checking."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._schema.close()

    async def respond(self, path: str) -> tuple[int, bytes] | None:
        """Return the status and the text of the page at a path; None if there is no such page."""
        if (page := self._pages.get(path)) is None:
            return None
        status, text = await page()
        return status, f"{text}\n".encode()

    async def _live(self) -> tuple[int, str]:
        """Report that the event loop runs. The database is not checked, since a restart of this process would not repair it."""
        return 200, _OK

    @property
    def is_ready(self) -> bool:
        """Whether the last check found no problem."""
        return all(state == _OK for state in self._found.values())

    async def _ready(self) -> tuple[int, str]:
        """Report the results of the last check: status 200 if all are ok, otherwise 503."""
        return (200 if self.is_ready else 503), "\n".join(f"{what}: {state}" for what, state in self._found.items())

    async def _health(self) -> tuple[int, str]:
        """Report whether this process can use its database now, and if not, why. The check takes one second at most."""
        try:
            await self._look(_HEALTH)
        except (Refused, TimeoutError):
            return 503, self._store.faults.reason or "the database cannot be read"
        reason = self._store.faults.reason
        return (200, _OK) if reason is None else (503, reason)

    # --- checking -----------------------------------------------------------------------------------------------------

    async def _keep_looking(self) -> None:
        while True:
            try:
                schema = await self._look(_PATIENCE)
            except (Refused, TimeoutError) as error:
                silent = f"no answer within {_PATIENCE:.0f} seconds"
                fault = silent if isinstance(error, TimeoutError) else "it cannot be read"
                database = {"database": self._store.faults.reason or fault}
            else:
                database = {"database": self._store.faults.reason or _OK, "schema": schema}
            found = {**database, "writer": self._judge_writer(), **self._judge_disk()}
            self._tell_changes(found)
            self._found = found
            await asyncio.sleep(_EVERY)

    def _tell_changes(self, found: Mapping[str, str]) -> None:
        """Log problems of the writer and the disk that have begun or ended. The store itself logs those of the database."""
        for what in ("writer", "disk"):
            state = found.get(what, _OK)
            if (state == _OK) is not (self._found.get(what, _OK) == _OK):
                if state == _OK:
                    log.info("The %s works again.", what)
                else:
                    log.warning("This process is not ready: %s: %s.", what, state)

    async def _look(self, seconds: float) -> str:
        """Read from the database, and return `ok` or what is wrong with its schema.

        If the server refuses writes or the database has a known fault, also try to write. Concurrent calls share one look.
        Raises Refused, TimeoutError.
        """
        async with asyncio.timeout(seconds):
            try:
                return await self._schema.run()
            except Refused:
                raise
            except Exception as error:  # such as a missing table, while an operator restores the database
                self._store.outage.record_failure(error)
                raise Refused("BUSY", str(error)) from error

    def _read(self) -> str:
        """Return `ok` or what is wrong with the schema, once a write has succeeded if one is to be tried. Raises Refused."""
        with self._store.reading() as tx:
            step, may_write = read_step(tx), accepts_writes(tx)
        if not may_write or self._store.faults.reason is not None:
            self._store.try_to_write().result()
        newest = find_newest_step()
        return _OK if step == newest else f"the database is at step {step}, and this release needs {newest}"

    def _judge_writer(self) -> str:
        if self._store.writer.is_full():
            return f"{self._store.writer.waiting} writes wait for their turn"
        busy = self._store.writer.busy_seconds()
        return _OK if busy < self._settings.busy_timeout else f"one commit has taken {busy:.0f} seconds so far"

    def _judge_disk(self) -> Mapping[str, str]:
        if self._folder is None:
            return {}
        try:
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            return {"disk": str(error.strerror or error)}
        return {"disk": _OK if free >= LEAST_DISK else f"only {free // 2**20} MiB are free"}
