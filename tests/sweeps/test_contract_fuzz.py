"""The running service keeps what its OpenAPI document promises, whatever is sent: schemathesis, in a bounded run."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hypothesis.configuration import storage_directory

from tests.api_fixtures import MakeService
from tests.community import ENDPOINTS, Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.wait import GIVE_UP

CONFIGURATION: Final = Path(__file__).with_name("schemathesis.toml")
EXAMPLES: Final = os.environ.get("TRELLIS_FUZZ_EXAMPLES", "2")  # for each operation; give more for a longer run
PHASES: Final = {"sqlite": "examples,coverage,stateful", "postgresql": "fuzzing,stateful"}
JSON: Final = "application/json"
# A form is read to what JSON would be, whatever the operation. Where each boundary is tried, on SQLite, one is sent forms.
FORMED: Final = "webhooks.create"


def leave_out_forms(document: bytes) -> bytes:
    """Return an OpenAPI document with the forms of one operation only."""
    found = json.loads(document)
    for operation in (operation for path in found["paths"].values() for operation in path.values() if "operationId" in operation):
        content = operation.get("requestBody", {}).get("content", {})
        for media in content.keys() - {JSON} if operation["operationId"] != FORMED else ():
            del content[media]
    return json.dumps(found).encode()


@pytest.mark.slow
@pytest.mark.timeout(1600)
def test_the_service_keeps_the_promises_of_its_openapi_document(
    engine: str, serve: MakeService, community: Community, key: MakeKey, run: Run, database: DatabaseState, tmp_path: Path
) -> None:
    service = serve(rate_limit=0, bad_key_limit=1_000_000)
    document = tmp_path / "openapi.json"
    promised = service.client.get(f"{service.address}/api/openapi.json").content
    document.write_bytes(leave_out_forms(promised) if engine == "sqlite" else promised)
    asked = [
        *(f"--config-file={CONFIGURATION}", "--no-color", "run", str(document), "--url", f"{service.address}/api"),
        *("--tls-verify", "false"),  # there is no TLS, and each request would look for its certificates
        *("--request-timeout", str(GIVE_UP)),  # on a busy machine an answer may take longer than the usual ten seconds
        *("--header", f"Authorization: Bearer {key('*')}"),
        *("--header", "X-Request-Id: fuzz"),  # an unsuitable one is replaced rather than refused
        *("--phases", PHASES[engine], "--max-examples", EXAMPLES, "--generation-deterministic"),
        *("--continue-on-failure", "--no-shrink", "--warnings", "off"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", *asked],
        cwd=tmp_path,
        # Which characters there are is kept there. Of a larger environment, each request would look at each variable twice.
        env={"HOME": str(tmp_path), "HYPOTHESIS_STORAGE_DIRECTORY": str(storage_directory().path)},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    assert f"Selected: {ENDPOINTS}/{ENDPOINTS}" in done.stdout
    assert f"Tested: {ENDPOINTS}" in done.stdout
    assert service.terminate() == 0
    assert "Traceback" not in service.output
    statuses = {row["status"] for row in database.requests()}
    assert statuses >= {200, 201, 400, 401, 404}
    assert max(statuses) < 500
    assert run("check.list")["problems"] == []
