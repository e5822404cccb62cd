"""Delivery in a serving process, by a worker in a thread with its own event loop, so that requests do not wait for it."""

import asyncio
import logging
import threading

from trellis.core.gate import Gate
from trellis.webhooks.worker import DeliveryWorker

log = logging.getLogger(__name__)


class Background:
    """A worker in the background of a process that serves."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: DeliveryWorker | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Start delivering."""
        thread = threading.Thread(target=self._run, name="trellis-webhooks", daemon=True)
        thread.start()
        self._thread = thread

    def stop(self) -> None:
        """Stop, after at most a few seconds for messages in progress."""
        if self._thread is None:
            return
        self._ready.wait()
        if self._loop is not None and self._worker is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._worker.stop)
        self._thread.join()
        self._thread = None

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.get_loop()  # raises OSError if too many files are open
                runner.run(self._work())
        except Exception:
            log.exception("This process no longer delivers webhooks.")
        finally:
            self._ready.set()

    async def _work(self) -> None:
        self._loop, self._worker = asyncio.get_running_loop(), DeliveryWorker(self._gate)
        self._ready.set()
        try:
            await self._worker.run()
        finally:
            self._gate.store.close_reader()
