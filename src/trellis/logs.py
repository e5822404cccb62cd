"""The service's own log on stderr, with one line for each record: text for people, or JSON for machines."""

import json
import logging
import os
import queue
import re
import select
import threading
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from textwrap import indent
from typing import Any, Final

from trellis.invisible import escape_unsafe
from trellis.settings import Settings
from trellis.timestamps import format_timestamp

# Fields that a record may have in addition to its message. The documentation explains each of them.
FIELDS: Final = ("request", "trace", "operation", "key", "method", "path", "status", "ms", "address")

_IN_MESSAGE: Final = frozenset(("method", "path", "status", "ms"))  # fields that the message of a request contains already
# Pages of the panel whose links contain a secret, also mistyped: the link as it should be remains valid. A path is read once for
# each, however long it is: whoever sends it has no key.
_ONE_TIME: Final = re.compile(r"invitation|first-run", re.IGNORECASE)
_PANEL: Final = re.compile(r"/admin\b", re.IGNORECASE)
_SHORTEST: Final = 16  # characters of what may be a secret
_SIGN_ON: Final = "/sign-on"  # what follows the secret in the address with which somebody takes an invitation
_WAITING: Final = 10_000  # lines that may wait to be written; further ones are dropped and counted
_PATIENCE: Final = 2.0  # seconds; see PatientHandler.close
_LEFT_OUT: Final = "%d lines of the log were left out, since nobody has read them in time."
_STDERR: Final = 2

access_log: Final = logging.getLogger("trellis.access")
SERVER_STATUS: Final = "trellis.server.status"  # key in the scope: the status that the server has sent instead of the application


def log_refused(status: int, path: str, address: str, request_id: str) -> None:
    """Log a request that the server refused before it reached the application. `path` is what was read of it, without keys."""
    facts = {"path": redact_links(path) or None, "status": status, "address": address or None, "request": request_id or None}
    access_log.info("The server refused %s: %d", f"a request to {facts['path']}" if path else "what came", status, extra=facts)


def redact_links(path: str) -> str:
    """Replace the secret in the path of a one-time link, so that nobody who reads the log can use the link before its owner."""
    panel = _PANEL.search(path)
    for page in _ONE_TIME.finditer(path):
        start, end = page.span()
        is_page = path[start - 1 : start] == "/" or (panel is not None and panel.end() <= start)
        if is_page and len(path) - end >= _SHORTEST:
            return f"{path[:end]}/[hidden]{_SIGN_ON if path.endswith(_SIGN_ON) else ''}"
    return path


def configure_logs(settings: Settings, descriptor: int = _STDERR) -> None:
    """Write the log of this process to a descriptor, by default stderr, in the format of the settings; undo an earlier call."""
    handler = PatientHandler(descriptor)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for former in tuple(root.handlers):
        if isinstance(former, PatientHandler):
            root.removeHandler(former)
            former.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # for other packages
    own = logging.getLogger("trellis")
    own.handlers.clear()
    own.setLevel(settings.log_level.upper())
    access_log.setLevel(logging.INFO)


class TextFormatter(logging.Formatter):
    """Writes `2026-11-22T13:00:00.123Z INFO trellis.cli.workers: Worker 12 serves.`, and the indented traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        more = "".join(f" {name}={value}" for name, value in _fields(record).items() if name not in _IN_MESSAGE)
        # A caller who sends a line feed must not be able to forge a line of the log.
        message = escape_unsafe(message + more).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        return f"{line}\n{indent(escape_unsafe(self.formatException(record.exc_info)), '  ')}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Writes an object on one line: `time`, `level`, `logger`, `process`, `message`, the known FIELDS, and `error`, if any."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=True)


def _time(record: logging.LogRecord) -> str:
    return format_timestamp(datetime.fromtimestamp(record.created, UTC))


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}


class PatientHandler(logging.Handler):
    """Writes lines in its own thread, so that no request has to wait if the log is read slowly or not at all."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # a record that cannot be formatted must not make its caller fail
            self.handleError(record)
            return
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._left_out += 1
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name="trellis-log", daemon=True)
            with suppress(RuntimeError):  # no thread can be started now: the line waits for the next one
                thread.start()
                self._thread = thread

    def _serve(self) -> None:
        while (line := self._lines.get()) is not None:
            left_out, self._left_out = self._left_out, 0
            self._write(line)
            if left_out:
                lost = logging.LogRecord(__name__, logging.WARNING, "", 0, _LEFT_OUT, (left_out,), None)
                self._write(self.format(lost))

    def _write(self, line: str) -> None:
        """Write a line, without the locks of `sys.stderr`: while nobody reads, they would keep the process from ending."""
        left = f"{line}\n".encode(errors="backslashreplace")
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # the program that has started this one has made the descriptor non-blocking
                self._writable.poll()
            except OSError:  # nobody can read it any more
                return

    def close(self) -> None:
        """Write the waiting lines. Gives up after two seconds for room in a full queue, and two more for the writing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                self._lines.put(None, timeout=_PATIENCE)
            except queue.Full:
                pass
            else:
                thread.join(_PATIENCE)
        super().close()
