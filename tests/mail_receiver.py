"""A mail server for the tests, in a thread: it keeps what it takes, and refuses what it is told to."""

import asyncio
import ssl
import threading
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final, Self

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

CERTIFICATE: Final = Path(__file__).parent / "mail" / "tls" / "certificate.pem"
_KEY: Final = CERTIFICATE.with_name("key.pem")
USER, PASSWORD = "trellis", "a password of the mail server"


def trusting() -> ssl.SSLContext:
    """Return what trusts the receiver's certificate."""
    return ssl.create_default_context(cafile=str(CERTIFICATE))


class MailReceiver:
    """Takes mail on `port`. `answers` are given to recipients in place of 250, one for each mail."""

    def __init__(self, *, starttls: bool = False, tls: bool = False, auth: bool = False, port: int = 0) -> None:
        self.port = port
        self.received: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.answers: list[str] = []
        self.data_answer = "250 Taken"
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(CERTIFICATE, _KEY)
        self._starttls, self._tls, self._auth = starttls, tls, auth
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _begin(self) -> None:
        tls = self._context if self._tls else None
        self._server = await self._loop.create_server(self._new, "127.0.0.1", self.port, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _new(self) -> SMTP:
        about: dict[str, Any] = {"enable_SMTPUTF8": False, "loop": self._loop, "hostname": "mail.test"}
        if self._starttls:
            about |= {"tls_context": self._context, "require_starttls": True}
        if self._auth:
            about |= {"auth_required": True, "auth_require_tls": self._starttls, "authenticator": self._authenticate}
        return SMTP(self, **about)

    @staticmethod
    def _authenticate(*given: Any) -> AuthResult:
        sent = given[-1]
        fits = isinstance(sent, LoginPassword) and (sent.login.decode(), sent.password.decode()) == (USER, PASSWORD)
        return AuthResult(success=fits, handled=False)

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any) -> str:  # noqa: N802
        """Take a recipient, or refuse it."""
        answer = self.answers.pop(0) if self.answers else "250 Known"
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        """Take a mail."""
        if self.data_answer.startswith("250"):
            content = envelope.content
            assert isinstance(content, bytes)
            message = message_from_bytes(content, policy=policy.SMTP)
            assert isinstance(message, EmailMessage)
            self.recipients += envelope.rcpt_tos
            self.received.append(message)
        return self.data_answer


def text_of(message: EmailMessage) -> str:
    """Return what a mail says."""
    text: str = message.get_content()
    return text.replace("\r\n", "\n")
