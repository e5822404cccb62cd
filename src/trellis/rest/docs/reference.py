"""The reference, the OpenAPI document and the JSON Schema of structure documents: generated once and readable without a key."""

import asyncio
from collections import OrderedDict
from functools import cached_property
from hashlib import blake2b
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import orjson

from trellis.core.catalogue import Catalogue
from trellis.core.structure import build_schema
from trellis.http.api import CachedResponse, Headers
from trellis.http.design import STATIC as SHARED
from trellis.rest.docs.openapi import document
from trellis.rest.docs.pages import page_paths, render_pages
from trellis.settings import Settings

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NO_REFERRER: Final[Headers] = ((b"referrer-policy", b"no-referrer"),)
_PAGE_HEADERS: Final[Headers] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    *_NO_REFERRER,
)
_TYPES: Final = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
_FOLDERS: Final = (Path(__file__).parent / "static", SHARED)

# Pages and document are generated once, with these placeholders for the service's address and the path before /api.
_BASE: Final = "https://trellis-base.invalid"
_ROOT: Final = "/trellis-root.invalid"

_OPENAPI: Final = "/openapi.json"
_ADDRESSES: Final = 4  # for which pages are kept: callers can send any Host


class Reference:
    """The pages by path, relative to /api.

    Rendering takes a second, and inserting an address into the result some milliseconds. Both happen in a thread, once for all
    callers who wait for it.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self._catalogue = catalogue
        self._settings = settings
        static = {f"/docs/{file.name}": file.read_bytes() for folder in _FOLDERS for file in folder.iterdir()}
        self._fixed = {path: _page(body, _TYPES[path.rpartition(".")[2]], _PAGE_HEADERS) for path, body in sorted(static.items())}
        self._fixed["/structure.schema.json"] = _structure_schema(catalogue)
        self._rendered = frozenset((_OPENAPI, *page_paths(catalogue)))
        self._kept: OrderedDict[str, dict[str, CachedResponse]] = OrderedDict()
        self._rendering = asyncio.Lock()

    async def find(self, path: str, base_url: str) -> CachedResponse:
        """Return the page at a path, for a caller who reaches this service at `base_url`. Raises KeyError if there is none."""
        if (page := self._fixed.get(path) or self._kept.get(base_url, {}).get(path)) is not None:
            return page
        if path not in self._rendered:
            raise KeyError(path)
        async with self._rendering:
            kept = self._kept.setdefault(base_url, {})
            if path not in kept:  # it may have been rendered for another caller meanwhile
                kept[path] = await asyncio.to_thread(self._render, path, base_url)
                while len(self._kept) > _ADDRESSES:
                    self._kept.popitem(last=False)
            return kept[path]

    def __contains__(self, path: str) -> bool:
        return path in self._fixed or path in self._rendered

    def _render(self, path: str, base_url: str) -> CachedResponse:
        if path == _OPENAPI:
            written = orjson.dumps(base_url)[1:-1]
            return _page(self._document.replace(_BASE.encode(), written), b"application/json", _NO_REFERRER)
        root = urlsplit(base_url).path
        page = self._pages[path].replace(_BASE.encode(), escape(base_url).encode()).replace(_ROOT.encode(), escape(root).encode())
        return _page(page, b"text/html; charset=utf-8", _PAGE_HEADERS)

    @cached_property
    def _document(self) -> bytes:
        return orjson.dumps(document(self._catalogue, _BASE))

    @cached_property
    def _pages(self) -> dict[str, bytes]:
        return render_pages(self._catalogue, self._settings, _BASE, _ROOT)


def _structure_schema(catalogue: Catalogue) -> CachedResponse:
    kinds = {operation.kind.name: operation.kind for operation in catalogue.values() if operation.kind is not None}
    return _page(orjson.dumps(build_schema(tuple(kinds.values()))), b"application/schema+json", _NO_REFERRER)


def _page(body: bytes, kind: bytes, headers: Headers) -> CachedResponse:
    return CachedResponse(body, blake2b(body, digest_size=12).hexdigest().encode(), headers, kind)
