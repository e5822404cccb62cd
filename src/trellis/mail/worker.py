"""The mail worker: a thread in each process that delivers, which turns alarms into mail and sends what is due, one by one."""

import logging
import threading
from collections.abc import Callable
from typing import Final

from trellis.core.gate import Gate
from trellis.core.mail import Draft, begin_attempt, fill, has_work, settle
from trellis.errors import Refused
from trellis.languages import load_offered
from trellis.mail.server import MailServer, NotSent
from trellis.store.engine import Transaction

log = logging.getLogger(__name__)

_LOOK_EVERY: Final = 2.0
_GRACE: Final = 3.0  # seconds for a mail that is being sent when the worker stops
_WRITE_AGAIN: Final = 0.5  # seconds until an outcome that could not be written is written again


class Mailer:
    """Sends mail until it is stopped. Several mailers share the work, each in a process of its own."""

    def __init__(self, gate: Gate, server: MailServer) -> None:
        self._gate = gate
        self._server = server
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start sending."""
        thread = threading.Thread(target=self._run, name="trellis-mail", daemon=True)
        thread.start()
        self._thread = thread

    def stop(self) -> None:
        """Stop. A mail that is being sent gets a few seconds to finish; otherwise it is sent again later."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_GRACE)
            self._server.cut()
            self._thread.join(_GRACE)

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_LOOK_EVERY):
                try:
                    self.work()
                except Refused:  # the store has logged why
                    continue
                except Exception:
                    log.exception("Mail could not be sent; it will be tried again.")
        finally:
            self._gate.store.close_reader()

    def work(self) -> int:
        """Turn new alarms into mail, and send all mail that is due; return the number of mails that were sent."""
        store, environment = self._gate.store, self._gate.environment
        with store.reading() as tx:
            if not has_work(tx, self._gate.environment, self._gate.now()):
                return 0
        store.write(lambda tx: fill(tx, environment, self._gate.now()), quiet=True).result()
        sent = 0
        while not self._stopping.is_set():
            draft = store.write(lambda tx: begin_attempt(tx, environment, self._gate.now()), quiet=True).result()
            if draft is None:
                break
            sent += self._send(draft)
        return sent

    def _send(self, draft: Draft) -> bool:
        error, is_final = None, False
        try:
            say = load_offered(draft.language).sentence
            self._server.send(draft.to, say(draft.text.subject), say(draft.text.body), draft.identity)
        except NotSent as refused:
            error, is_final = str(refused), refused.is_final
            log.warning("Mail %d could not be sent: %s", draft.mail.id, error)
        self._record(lambda tx: settle(tx, draft.mail, error, is_final=is_final))
        return error is None

    def _record(self, outcome: Callable[[Transaction], None]) -> None:
        """Write an outcome, again and again until the database accepts it, since the mail would be sent again otherwise."""
        while True:
            try:
                return self._gate.store.write(outcome, quiet=True).result()
            except Refused:  # the store has logged why
                if self._stopping.wait(_WRITE_AGAIN):
                    raise
