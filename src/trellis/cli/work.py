"""The command that delivers webhooks and mail separately from serving."""

import asyncio
import logging
import signal
from contextlib import ExitStack, suppress

from trellis.cli.community import community
from trellis.core.gate import Gate
from trellis.logs import configure_logs
from trellis.mail import Mailer, MailServer
from trellis.settings import Settings
from trellis.traces import load_traces
from trellis.webhooks import DeliveryWorker

log = logging.getLogger(__name__)


def work() -> None:
    """Deliver webhooks and mail until SIGTERM. Several of them share the work with each other and with `trellis serve`."""
    configure_logs(settings := Settings.load())
    with ExitStack() as ending:
        if (traces := load_traces()) is not None:
            ending.callback(traces.stop)
        gate = ending.enter_context(community(settings, traces=traces))
        if settings.smtp_host is not None:
            mailer = Mailer(gate, MailServer(settings))
            mailer.start()
            ending.callback(mailer.stop)
        with suppress(KeyboardInterrupt):
            asyncio.run(_work(gate))


async def _work(gate: Gate) -> None:
    worker = DeliveryWorker(gate)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stop)
    log.info("Delivering webhooks. Send SIGTERM to stop.")
    await worker.run()
    log.info("Trellis has stopped.")
