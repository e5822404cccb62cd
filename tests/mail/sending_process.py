"""A process that sends what the outbox has, and is killed once the server has taken it, before that is recorded."""

import os
import signal
import sys

from trellis.compose import compose
from trellis.mail import Mailer, MailServer
from trellis.settings import Settings


class KilledAfterwards(MailServer):
    """The server, after whose answer the process ends."""

    def send(self, to: str, subject: str, body: str, identity: str) -> None:
        super().send(to, subject, body, identity)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    database, port = sys.argv[1:]
    settings = Settings(
        database_url=database, smtp_host="127.0.0.1", smtp_port=int(port), smtp_tls="off", smtp_from="panel@lantern.example"
    )
    Mailer(compose(settings), KilledAfterwards(settings)).work()
