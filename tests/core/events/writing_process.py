"""A process that writes forums beside others: writing_process NUMBER GO. It tells when it can, and begins when there is a GO."""

import sys
from pathlib import Path
from typing import Any

from tests.wait import wait_until
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings


def main() -> None:
    """Create, change and delete so many forums, each after a change that is refused."""
    number, go = sys.argv[1:]
    gate = compose(Settings.load(dotenv=None))

    def run(operation: str, target: int | None = None, **raw: Any) -> Any:
        return gate.run(Call(operation, TERMINAL, raw, target)).value

    sys.stdout.write("ready\n")
    sys.stdout.flush()
    wait_until(Path(go).exists)
    for name in range(int(number)):
        forum = run("forums.create", name=f"{name}")["id"]
        run("forums.update", forum, name="Again")
        try:
            run("forums.update", forum, parentId=forum)
        except Refused:
            run("forums.delete", forum)
    gate.store.close()
