"""Describes the machine that was measured on, as far as it tells."""

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from trellis.store.sqlite import library_version

_PACKAGES: Final = (
    "uvicorn",
    "uvloop",
    "httptools",
    "starlette",
    "orjson",
    "sqlalchemy",
    "psycopg",
    "fastapi",
)


def described() -> dict[str, Any]:
    """Return what is known of processor, memory, system, Python, libraries and disk."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not readable",
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "disk": _disk(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": str(library_version()),
        "wrk": _wrk(),
        "load": round(os.getloadavg()[0], 2),
        "packages": {name: _version(name) for name in _PACKAGES},
        "commit": _commit(),
    }


def _read(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError:
        return ""


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    virtual = ", virtual" if " hypervisor" in _read("/proc/cpuinfo") else ""
    return (found[1] if found else platform.processor() or platform.machine()) + virtual


def _memory() -> str:
    found = re.search(r"^MemTotal:\s*([0-9]+) kB$", _read("/proc/meminfo"), re.MULTILINE)
    return f"{int(found[1]) / 2**20:.0f} GiB" if found else "not readable"


def _system() -> str:
    found = re.search(r'^PRETTY_NAME="(.+)"$', _read("/etc/os-release"), re.MULTILINE)
    return found[1] if found else platform.platform()


def _disk() -> str:
    """Return the file system that the checkout stands on."""
    mounts = [line.split()[1:3] for line in _read("/proc/mounts").splitlines()]
    here = str(Path(__file__).resolve())
    fitting = [(len(at), kind) for at, kind in mounts if here.startswith(at)]
    return max(fitting)[1] if fitting else "not readable"


def _wrk() -> str:
    if not shutil.which("wrk"):
        return "not installed"
    told = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    return " ".join((told.stdout + told.stderr).split()[1:2]) or "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return told.stdout.strip() or "unknown"
