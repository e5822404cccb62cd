"""The service's own log on stderr: one line for each record, for people or, as JSON, for machines."""

import json
import logging
import os
import queue
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from trellis.invisible import escape_unsafe
from trellis.settings import Settings

# What a record may tell besides its message; the documentation has what each means.
FIELDS: Final = ("request", "trace", "operation", "key", "method", "path", "status", "ms", "address")

_IN_MESSAGE: Final = frozenset(("method", "path", "status", "ms"))  # of a request, as text has them
MOST_CHARACTERS: Final = 512  # of a path
_LINK: Final = re.compile(r"(/(?:invitation|first-run)/)[\w-]{16,}")  # of the panel, with a secret
_WAITING: Final = 10_000  # lines that wait for who reads them; further ones are left out, and counted
_PATIENCE: Final = 2.0  # seconds for which the end of the process waits for them
_LEFT_OUT: Final = "%d lines of the log were left out, since nobody has read them in time."
_STDERR: Final = 2

access_log: Final = logging.getLogger("trellis.access")
REFUSED: Final = "trellis.server.refused"  # in the scope: the status with which the server has answered in the application's place


def log_refused(status: int, path: str, address: str) -> None:
    """Write a line for a request that the server has refused before the application had it; its path as far as it was read."""
    facts = {"path": redact_links(path)[:MOST_CHARACTERS] or None, "status": status, "address": address or None}
    access_log.info("The server refused %s: %d", f"a request to {facts['path']}" if path else "what came", status, extra=facts)


def redact_links(path: str) -> str:
    """Replace the secret in the path of a one-time link: whoever reads the log could use the link before its owner does."""
    return _LINK.sub(r"\1[hidden]", path)


def configure_logs(settings: Settings, descriptor: int = _STDERR) -> None:
    """Write the log of this process to stderr, as its settings say, and no longer as was said before."""
    handler = PatientHandler(descriptor)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for former in tuple(root.handlers):
        if isinstance(former, PatientHandler):
            root.removeHandler(former)
            former.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # of other packages
    own = logging.getLogger("trellis")
    own.handlers.clear()
    own.setLevel(settings.log_level.upper())
    access_log.setLevel(logging.INFO)


class TextFormatter(logging.Formatter):
    """`2026-11-22T13:00:00.123Z INFO trellis.cli.workers: Worker 12 serves.`, and a traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        more = "".join(f" {name}={value}" for name, value in _fields(record).items() if name not in _IN_MESSAGE)
        # Who sends a line feed must not be able to make a line of their own.
        message = escape_unsafe(message + more).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """An object on one line: `time`, `level`, `logger`, `process`, `message`, and those of FIELDS that are known."""

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
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    return {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}


class PatientHandler(logging.Handler):
    """Writes lines in a thread of its own, so that nobody who reads the log slowly, or not at all, holds up a request."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._left_out = 0
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001  # a record that cannot be told is no reason to fail
            self.handleError(record)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="trellis-log", daemon=True)
            self._thread.start()
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._left_out += 1

    def _serve(self) -> None:
        while (line := self._lines.get()) is not None:
            left_out, self._left_out = self._left_out, 0
            self._write(line)
            if left_out:
                lost = logging.LogRecord(__name__, logging.WARNING, "", 0, _LEFT_OUT, (left_out,), None)
                self._write(self.format(lost))

    def _write(self, line: str) -> None:
        """Write a line, without the locks of `sys.stderr`, which would keep the process from ending while nobody reads."""
        left = f"{line}\n".encode(errors="backslashreplace")
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:  # nobody can read it any more
            return

    def close(self) -> None:
        """Write what waits, for as long as somebody reads it within two seconds."""
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                self._lines.put(None, timeout=_PATIENCE)
            except queue.Full:
                pass
            else:
                thread.join(_PATIENCE)
        super().close()
