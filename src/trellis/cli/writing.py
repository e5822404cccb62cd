"""Writing files whole or not at all."""

import secrets
from contextlib import suppress
from pathlib import Path

from trellis.cli.terminal import Failure


def write_whole(path: Path, text: str) -> None:
    """Write a file, in place of the one that may be there: whoever reads it finds the old or the new one. Raises Failure."""
    work = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        with work.open("x", encoding="utf-8") as file:
            file.write(text)
        work.replace(path)
    except OSError as error:
        raise Failure(f"{path} could not be written: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):
            work.unlink()
