"""The names of workers, from which other workers on the same machine can tell that a worker's process has ended."""

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

_ENDED: Final = frozenset("ZX")  # the states of a process that has ended


def name_worker(instance: str | None = None) -> str:
    """Return a unique name for a worker: where its process runs, its process id and start time there, and a random part.

    `instance` is a name that the operator gives to a container. Only one container at a time may have it.
    """
    pid = os.getpid()
    return f"{_find_place(instance)}/{pid}/{_find_start(pid) or '-'}/{secrets.token_hex(4)}"


def has_ended(name: str, instance: str | None = None) -> bool:
    """Return whether the process of a worker is known to have ended. If it runs elsewhere or cannot be seen, it counts as running.

    A worker in an earlier container with the same `instance` as this process has ended, since there is only one at a time.
    """
    place, _, rest = name.partition("/")
    number, _, rest = rest.partition("/")
    began, _, _ = rest.partition("/")
    if place != (here := _find_place(instance)):
        return instance is not None and place.partition(":")[0] == here.partition(":")[0]
    if not number.isdecimal() or not began.isdecimal():
        return False
    pid = int(number)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # the process exists, but belongs to another user
        pass
    start = _find_start(pid)
    return start is not None and start != began


def _find_place(instance: str | None) -> str:
    """Return a name for the place in which a process id is unique: the host, its boot and the namespace, if these can be read.

    `instance` replaces the host. It is marked with `=`, so that it differs from any host name.
    """
    host = f"={instance}" if instance else socket.gethostname()
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{host}:{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    return host


def _find_start(pid: int) -> str | None:
    """Return the start time of a process in the kernel's units; "" if it has ended, None if the time cannot be read."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return "" if state in _ENDED else fields[18]
