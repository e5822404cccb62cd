"""A test run that is interrupted or killed leaves no process and no folder behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cleanup import processes_marked
from tests.program import running
from tests.wait import wait_until

ROOT: Final = Path(__file__).parent.parent
HANGING: Final = """
import time

import pytest
from tests.api_fixtures import serve, service


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_that_hangs(serve, _folder):
    serve(options=("--workers", "2"))
    print(f"\\n{_folder}", flush=True)
    time.sleep(600)
"""
# What a shell starts in the background ignores SIGINT, and so does all that it starts.
RUN: Final = """if True:
    import signal, sys, pytest
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(pytest.main(sys.argv[1:]))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="what is left behind is found in Linux's /proc"),
]


@pytest.mark.parametrize("signals", [[signal.SIGINT] * 2, [signal.SIGKILL]], ids=["interrupted twice", "killed"])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, signals: list[signal.Signals]) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    options = ("-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", ROOT, "-c", ROOT / "pyproject.toml", "-s")
    command = (sys.executable, "-c", RUN, *options, tmp_path / "test_hanging.py")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with running(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        lines = iter(run.stdout.readline, "")
        folder = Path(next(line for line in lines if "/trellis-tests-" in line).strip())
        mark = folder.name
        assert len(list(processes_marked(mark))) > 4, "the service, its workers, and PostgreSQL's processes"
        for each in signals:
            run.send_signal(each)
        run.wait(300)
    wait_until(lambda: not list(processes_marked(mark)))
    wait_until(lambda: not folder.exists())
