"""Decompressing answers up to a limit."""

import zlib
from typing import Final

import httpx

_GZIP: Final = zlib.MAX_WBITS | 16  # with gzip's header


class Decompressor:
    """Decompresses the parts of an answer with gzip as they arrive, each to at most `most` bytes. Other parts are unchanged."""

    def __init__(self, encoding: str, most: int) -> None:
        self._gzip = zlib.decompressobj(_GZIP) if encoding.strip().lower() in {"gzip", "x-gzip"} else None
        self._most = most

    def read(self, part: bytes) -> bytes:
        """Return the content of a part, which may be empty. Raises httpx.DecodingError."""
        try:
            return part if self._gzip is None else self._gzip.decompress(part, self._most)
        except zlib.error as error:
            raise httpx.DecodingError(f"its compression is broken ({error})") from None
