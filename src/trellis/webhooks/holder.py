"""The name of a worker, by which others on the same machine can tell that its process has ended."""

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

_ENDED: Final = frozenset("ZX")  # states of a process that runs no more


def name_worker(instance: str | None = None) -> str:
    """Make a name that no other worker has: where its process runs, its number and when it began there, and a random part.

    `instance` is a name that the operator gives to a container, and to one at a time.
    """
    pid = os.getpid()
    return f"{_find_place(instance)}/{pid}/{_find_start(pid) or '-'}/{secrets.token_hex(4)}"


def has_ended(name: str, instance: str | None = None) -> bool:
    """Return whether the process of a worker is known to have ended. What runs elsewhere, or cannot be seen, counts as running.

    What ran in a container of the same `instance` as this process has ended with it, since there is one at a time.
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
    except OSError:  # somebody else's
        pass
    start = _find_start(pid)
    return start is not None and start != began


def _find_place(instance: str | None) -> str:
    """Return what tells apart all sets of process numbers: the host, its boot and the namespace, as far as they can be seen.

    An instance, which no host's name looks like, takes the place of the host.
    """
    host = f"={instance}" if instance else socket.gethostname()
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{host}:{boot}:{Path('/proc/self/ns/pid').stat().st_ino}"
    return host


def _find_start(pid: int) -> str | None:
    """Return when a process began, in the kernel's count; '' for one that runs no more, None where that cannot be seen."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return "" if state in _ENDED else fields[18]
