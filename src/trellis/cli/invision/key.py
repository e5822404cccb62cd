"""Reads the key of the old community, from a file and never from an argument."""

import re
import stat
from pathlib import Path
from typing import Final

from trellis.cli.terminal import STDIN, Failure, print_message, read_line

_KEY: Final = re.compile(r"[!-9;-~]{8,200}", re.ASCII)  # no colon: Basic ends the key with one


def read_key(file: Path) -> str:
    """Return the key, the first line of a file, or of standard input for `-`. Raises Failure, which does not repeat the key."""
    try:
        if str(file) != STDIN and stat.S_IMODE(file.stat().st_mode) & 0o077:
            print_message(f"Others on this machine can read {file}: chmod 600 {file}", style="yellow")
        line = read_line(str(file))
    except OSError as error:
        raise Failure(f"{file} could not be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        line = ""
    key = line.strip().removeprefix("\ufeff")
    if not _KEY.fullmatch(key):
        raise Failure(f"The first line of {file} is not a key: 8 to 200 letters, digits and signs, without spaces and colons.")
    return key
