"""Reading compressed answers, never more of them than may be kept."""

import zlib
from typing import Final

import httpx

_GZIP: Final = zlib.MAX_WBITS | 16  # with gzip's header


class Decompressor:
    """Takes the parts of an answer as they come, and returns what they hold, cut off at `most` bytes."""

    def __init__(self, encoding: str, most: int) -> None:
        self._gzip = zlib.decompressobj(_GZIP) if encoding.strip().lower() in {"gzip", "x-gzip"} else None
        self._most = most

    def read(self, part: bytes) -> bytes:
        """Return what a part holds, which may be nothing. Raises httpx.DecodingError."""
        try:
            return part if self._gzip is None else self._gzip.decompress(part, self._most)
        except zlib.error as error:
            raise httpx.DecodingError(f"its compression is broken ({error})") from None
