"""Sending mail: `server` talks to the mail server, `worker` sends the mail in the outbox, in a thread beside the event loop."""

from trellis.mail.server import MailServer, NotSent
from trellis.mail.worker import Mailer
