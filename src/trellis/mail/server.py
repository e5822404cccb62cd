"""The mail server: one connection for each mail, encrypted as configured, and cut if it takes too long."""

import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import formatdate, unquote
from typing import Any, BinaryIO, Final

from trellis.sentences import say
from trellis.settings import Settings, SettingsError
from trellis.store.mail import reasons

_STEP: Final = 15.0  # seconds that each answer of the server may take
_WHOLE: Final = 60.0  # seconds that the whole conversation may take
_LONGEST: Final = 300  # characters of the reason of a failure
_MOST: Final = 100_000  # bytes that a server may answer in all
_SECRETS: Final = re.compile(r"[\w-]{32,}|\w+://\S+")  # possible links in a refused mail that a server quotes


class NotSent(Exception):
    """A mail was not sent; the text is the reason. If `is_final`, the server will never accept it."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        self.is_final = is_final


class _Answers:
    """The answers of a server, up to a limit in bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = _MOST

    def readline(self, most: int) -> bytes:
        line = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise ConnectionError("The server answers without an end.")
        if line and not line.endswith(b"\n") and len(line) < most:  # the library would take what there is for the whole line
            raise ConnectionError("The server hung up within an answer.")
        return line

    def close(self) -> None:
        self._file.close()


class _Conversation(smtplib.SMTP):
    """A connection that can be cut from the moment when it waits for the server's greeting."""

    def __init__(self, watch: Callable[[smtplib.SMTP], None], *given: Any, **named: Any) -> None:
        self._watch = watch
        super().__init__(*given, **named)

    def getreply(self) -> tuple[int, bytes]:
        self._watch(self)
        if self.file is None and self.sock is not None:
            self.file = _Answers(self.sock.makefile("rb"))
        return super().getreply()


class _EncryptedConversation(_Conversation, smtplib.SMTP_SSL):
    """The same as `_Conversation`, encrypted from the first byte."""


class _Subject(str):
    """A subject that is sent literally: the library would decode any part that looks encoded, including line ends."""

    __slots__ = ()
    name = "Subject"

    def fold(self, *, policy: EmailPolicy) -> str:
        """Return the header as it is sent."""
        charset = "us-ascii" if self.isascii() and "=?" not in self else "utf-8"
        return f"{self.name}: {Header(str(self), charset, header_name=self.name).encode(linesep=policy.linesep)}{policy.linesep}"


class MailServer:
    """The mail server in the settings. `tls` checks its certificate, by default as the machine does."""

    def __init__(self, settings: Settings, tls: ssl.SSLContext | None = None) -> None:
        self._host = settings.smtp_host or ""
        self._port = settings.smtp_port
        self._mode = settings.smtp_tls
        self._user = settings.smtp_user
        self._read_password = settings.read_smtp_password
        self._from = settings.smtp_from or ""
        self._tls = tls
        self._guard = threading.Lock()
        self._open: smtplib.SMTP | None = None
        self._is_cut = False

    def check(self) -> str:
        """Connect, encrypt and sign in, but send nothing; return a sentence about the connection. Raises NotSent."""
        with self._connect() as smtp:
            smtp.noop()
            signed = "signed in" if self._user else "nobody signs in"
            return f"{self._host}:{self._port} answers, {'not encrypted' if self._mode == 'off' else 'encrypted'}, {signed}."

    def send(self, to: str, subject: str, body: str, identity: str) -> None:
        """Send a mail. Raises NotSent."""
        message = self._build(to, subject, body, identity)
        with self._connect() as smtp:
            smtp.send_message(message)

    def cut(self) -> None:
        """Cut the open connection, if any, from another thread: whoever waits for an answer stops waiting."""
        with self._guard:
            self._is_cut = True
            sock = None if self._open is None else self._open.sock
        if sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _build(self, to: str, subject: str, body: str, identity: str) -> EmailMessage:
        name, _, sender = self._from.rpartition(" <")
        user, _, domain = sender.strip("<>").rpartition("@")
        if subject.splitlines() != [subject]:
            raise ValueError("A subject has no linefeed: a header could be added by it.")
        message = EmailMessage(policy=SMTP.clone(cte_type="7bit"))  # not every server accepts eight
        message["From"] = Address(unquote(name), user, domain)
        message["To"] = Address(addr_spec=to)
        message["Subject"] = _Subject(subject)
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{identity}@{domain}>"
        message["Auto-Submitted"] = "auto-generated"  # so that no out-of-office reply is sent (RFC 3834)
        message.set_content(body)
        return message

    @contextmanager
    def _connect(self) -> Iterator[smtplib.SMTP]:
        timer = threading.Timer(_WHOLE, self.cut)
        timer.daemon = True
        with self._guard:
            self._is_cut = False
        try:
            timer.start()
            smtp = self._begin()
            try:
                if self._mode == "starttls":
                    smtp.starttls(context=self._context())
                if self._user is not None:
                    smtp.login(self._user, self._read_password())
                yield smtp
            finally:
                with suppress(smtplib.SMTPException, OSError):
                    smtp.quit()  # whatever the server answers: a mail that it has accepted is sent
                smtp.close()
        except (smtplib.SMTPException, SettingsError, OSError, ValueError) as error:
            raise self._explain(error) from None
        finally:
            timer.cancel()
            with self._guard:
                self._open = None

    def _explain(self, error: Exception) -> NotSent:
        """Return why nothing was sent, in words for an administrator."""
        is_final = False
        match error:
            case _ if self._is_cut:
                why = reasons.TOOK_TOO_LONG
            case smtplib.SMTPRecipientsRefused(recipients=recipients):
                code, reply = next(iter(recipients.values()))
                why, is_final = say(reasons.ADDRESS_REFUSED, code=code, error=_decode(reply)), code >= 500
            case smtplib.SMTPDataError(smtp_code=code, smtp_error=reply):
                why, is_final = say(reasons.MAIL_REFUSED, code=code, error=_decode(reply)), code >= 500
            case smtplib.SMTPAuthenticationError(smtp_code=code):
                why = say(reasons.NOT_SIGNED_IN, user=self._user, code=code)
            case smtplib.SMTPResponseException(smtp_code=code, smtp_error=reply):
                why = say(reasons.REFUSED, code=code, error=_decode(reply))
            case SettingsError():
                why = str(error)
            case UnicodeError():  # its text contains a part of the password
                why = reasons.NOT_WRITABLE
            case _:
                why = say(reasons.INTERRUPTED, host=f"{self._host}:{self._port}", error=str(error) or type(error).__name__)
        return NotSent(_clean(why), is_final=is_final)

    def _watch(self, smtp: smtplib.SMTP) -> None:
        with self._guard:
            self._open = smtp
            if self._is_cut:
                raise TimeoutError(reasons.TOOK_TOO_LONG)

    def _begin(self) -> smtplib.SMTP:
        if self._mode == "tls":
            return _EncryptedConversation(self._watch, self._host, self._port, timeout=_STEP, context=self._context())
        return _Conversation(self._watch, self._host, self._port, timeout=_STEP)

    def _context(self) -> ssl.SSLContext:
        return self._tls or ssl.create_default_context()


def _decode(reply: bytes | str) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else reply


def _clean(text: str) -> str:
    """Return the printable part of a server's answer as one short line, without what may be the link of an invitation."""
    return _SECRETS.sub("…", "".join(one if one.isprintable() else " " for one in text))[:_LONGEST]
