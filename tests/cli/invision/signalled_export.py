"""`trellis export invision` in a process that gets a signal when it begins to write its first file."""

import os
import signal
import sys
from typing import Any

from trellis.cli import main
from trellis.invision import saved


def export() -> None:
    """Run the command; the number of the signal and what the process does at it stand before its arguments."""
    number, action = map(int, sys.argv[1:3])
    write_json = vars(saved)["_write_json"]

    def write_and_send(*arguments: Any) -> Any:
        os.kill(os.getpid(), number)
        return write_json(*arguments)

    vars(saved)["_write_json"] = write_and_send
    if number != signal.SIGKILL:
        signal.signal(number, action)
    sys.argv[1:3] = []
    main()
