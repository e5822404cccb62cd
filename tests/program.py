"""Programs that a test runs beside itself, which end with it whatever happens."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(command: Sequence[Any], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Start a program, with the options of `subprocess.Popen`; kill it at the end if it has not ended by itself.

    Ctrl-C is not sent to it as well: it is for the test run, which then comes to this end.
    """
    with subprocess.Popen(command, process_group=0, **options) as process:
        try:
            yield process
        finally:
            process.kill()
