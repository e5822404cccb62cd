"""What `make test` installs from npm in tests/clients: axe for the pages, and what makes and judges clients."""

import os
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent / "clients" / "node_modules"


def npm_package(name: str) -> Path:
    """Return the folder of an installed package. Where the npm registry could not be reached there is nothing to test with."""
    folder = FOLDER / name
    if not folder.exists():
        reason = f"{name} is not installed: run `make test`, which reports if the npm registry cannot be reached"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
