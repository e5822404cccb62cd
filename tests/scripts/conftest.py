"""A release, built once for all tests of it."""

import fcntl
from pathlib import Path

import pytest

from scripts.release import build


@pytest.fixture(scope="session")
def release(_folder: Path) -> list[Path]:
    """Return the files of a release that was built from this clone, but for the Debian package, which takes longest.

    The first process of the run that wants it builds it for the others.
    """
    target = _folder / "release"
    with (_folder / "release.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if not (target / "SHA256SUMS").exists():
            target.mkdir(exist_ok=True)
            build(target, debian=False)
    return sorted(target.iterdir(), key=lambda file: (file.name == "SHA256SUMS", file))
