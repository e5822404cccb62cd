"""Programs that a test runs beside itself, which end with it whatever happens."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Start a program, with the options of `subprocess.Popen`; kill it at the end if it has not ended by itself."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()
