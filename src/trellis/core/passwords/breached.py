"""Passwords that are known from breaches, in a list that the operator has downloaded. No other service is asked about them."""

import os
from bisect import bisect_left
from hashlib import sha1
from pathlib import Path
from typing import Final

_DIGEST: Final = 40  # characters of a SHA-1 digest in hexadecimal
_END: Final = b"~"  # which is greater than any digest
_LONGEST: Final = 200  # bytes of a line: the digest, a colon, and how often it was seen


class BreachedPasswords:
    """The passwords whose digests are in a file with one line for each, in order, as `haveibeenpwned-downloader` writes it.

    Looking up a password takes about forty short reads in a file of a billion lines. Nothing of the file is kept in memory.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def __contains__(self, password: object) -> bool:
        """Return whether a password is in the file. Raises OSError if the file cannot be read."""
        wanted = sha1(str(password).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest().upper().encode()
        with self._file.open("rb") as file:

            def read_digest(at: int) -> bytes:
                """Return the digest in the first line that begins at a position or later; _END at the end of the file."""
                file.seek(max(0, at - 1))
                if at:
                    file.readline(_LONGEST)
                return file.readline(_LONGEST)[:_DIGEST].upper() or _END

            positions = range(os.fstat(file.fileno()).st_size)
            return read_digest(bisect_left(positions, wanted, key=read_digest)) == wanted
