"""A release, built once for all tests of it."""

from pathlib import Path

import pytest

from scripts.release import build


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files of a release that was built from this clone, but for the Debian package, which takes longest."""
    return build(tmp_path_factory.mktemp("release"), debian=False)
