"""Decompressing answers up to a limit."""

import zlib
from typing import Final

import httpx

_GZIP: Final = zlib.MAX_WBITS | 16  # with gzip's header
_MEMBER: Final = b"\x1f\x8b"  # the beginning of each member


class Decompressor:
    """Decompresses the parts of an answer with gzip as they arrive, each to at most `most` bytes. Other parts are unchanged.

    There may be several members, one after the other (RFC 1952, 2.2). Anything else after a member is ignored, as browsers do.
    """

    def __init__(self, encoding: str, most: int) -> None:
        self._gzip = zlib.decompressobj(_GZIP) if encoding.strip().lower() in {"gzip", "x-gzip"} else None
        self._most = most

    def read(self, part: bytes) -> bytes:
        """Return the content of a part, which may be empty. Raises httpx.DecodingError."""
        if self._gzip is None:
            return part
        content = bytearray()
        while part and len(content) < self._most:
            if self._gzip.eof:
                if not _MEMBER.startswith(part[:2]):
                    break
                self._gzip = zlib.decompressobj(_GZIP)
            try:
                content += self._gzip.decompress(part, self._most - len(content))
            except zlib.error as error:
                raise httpx.DecodingError(f"its compression is broken ({error})") from None
            part = self._gzip.unused_data
        return bytes(content)

    def end(self) -> None:
        """Check that the answer is complete. Raises httpx.DecodingError."""
        if self._gzip is not None and not self._gzip.eof:
            raise httpx.DecodingError("its compression has no end")
