"""Passwords that are known from breaches: a list that the operator has fetched, which nobody outside is asked about."""

import os
from hashlib import sha1
from pathlib import Path
from typing import Final

_DIGEST: Final = 40  # characters of a SHA-1 digest in hexadecimal
_LONGEST: Final = 200  # bytes of a line: the digest, a colon, and how often it was seen


class BreachedPasswords:
    """The passwords whose digests are in a file: a line each, in order, as `haveibeenpwned-downloader` writes it.

    Looking takes about forty short reads in a file of a thousand million lines; nothing of it is kept in memory.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def __contains__(self, password: object) -> bool:
        """Return whether a password is among them. Raises OSError."""
        wanted = sha1(str(password).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest().upper().encode()
        with self._file.open("rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size

            def read_digest(at: int) -> bytes:
                """Return the digest of the first line that begins there or later; nothing at the end."""
                file.seek(max(0, at - 1))
                if at:
                    file.readline(_LONGEST)
                return file.readline(_LONGEST)[:_DIGEST].upper()

            while low < high:
                middle = (low + high) // 2
                if b"" < read_digest(middle) < wanted:
                    low = middle + 1
                else:
                    high = middle
            return read_digest(low) == wanted
