"""The file for the secrets of new keys, which only its owner may read."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from trellis.cli.terminal import Failure, print_message
from trellis.store.engine import sync_folder


class KeysFile:
    """A new file with a line for each key: its name, a tab, the key."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self._path = path
        self._file = file
        self.is_empty = True  # or of no use

    def write(self, keys: Iterable[Mapping[str, Any]]) -> bool:
        """Write keys to the disk; return whether that was possible."""
        try:
            for key in keys:
                self._file.write(f"{key['name']}\t{key['key']}\n")
                self.is_empty = False
            self._file.flush()
            os.fsync(self._file.fileno())
            sync_folder(self._path.absolute().parent)
        except OSError as error:
            print_message(f"{self._path} could not be written: {error.strerror}. The keys are shown instead.", style="red")
            self.is_empty = True  # what is in it may end in the middle of a key
            return False
        return True


@contextmanager
def open_keys_file(path: Path | None) -> Iterator[KeysFile | None]:
    """Create the file with mode 0600, and delete it again unless keys were written to it. Raises Failure if it already exists."""
    if path is None:
        yield None
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise Failure(f"{path} already exists. Give a new file with --keys-to; nothing was done.") from None
    except OSError as error:
        raise Failure(f"{path} could not be created: {error.strerror}. Nothing was done.") from None
    file = os.fdopen(descriptor, "w", encoding="utf-8")
    keys = KeysFile(path, file)
    try:
        os.fchmod(descriptor, 0o600)
        yield keys
    finally:
        with suppress(OSError):  # `write` has reported what could not be written; closing tries to write it again
            file.close()
        if keys.is_empty:
            with suppress(OSError):
                path.unlink()
