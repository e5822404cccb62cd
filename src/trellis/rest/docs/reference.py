"""The reference, the OpenAPI document and the JSON Schema of structure documents: generated once and readable without a key."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import blake2b
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.paging import MOST_PER_PAGE, PER_PAGE
from trellis.core.structure import build_schema
from trellis.http.api import CachedResponse, Headers
from trellis.rest.docs.dialects import show_dialects
from trellis.rest.docs.openapi import document
from trellis.rest.docs.responses import HEADERS, STATUS_TEXT
from trellis.rest.docs.samples import KEY, coloured
from trellis.rest.docs.view import aliases, all_errors, prose, sections, showcase
from trellis.settings import Settings

if TYPE_CHECKING:
    from jinja2 import Environment

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

# The page and the document are generated once, with these placeholders for the service's address and the path before /api.
_BASE: Final = "https://trellis-base.invalid"
_ROOT: Final = "/trellis-root.invalid"


_ADDRESSES: Final = 4  # for which a page is kept: callers may name any in Host


class Reference:
    """The pages by path, relative to /api.

    Rendering takes a second, and inserting an address into the result some milliseconds. Both happen in a thread, once for all
    callers who wait for it.
    """

    def __init__(self, catalogue: Catalogue, settings: Settings) -> None:
        self._catalogue = catalogue
        self._settings = settings
        static = {f"/docs/{entry.name}": entry.read_bytes() for entry in files("trellis.rest.docs").joinpath("static").iterdir()}
        self._fixed = {path: _page(body, _TYPES[path.rpartition(".")[2]], _PAGE_HEADERS) for path, body in sorted(static.items())}
        self._fixed["/structure.schema.json"] = _structure_schema(catalogue)
        self._rendered: Mapping[str, Callable[[str], CachedResponse]] = {
            "/openapi.json": self._openapi,
            "/docs": self._reference,
        }
        self._kept: OrderedDict[tuple[str, str], CachedResponse] = OrderedDict()
        self._rendering = asyncio.Lock()

    async def find(self, path: str, base_url: str) -> CachedResponse:
        """Return the page at a path, for a caller who reaches this service at `base_url`. Raises KeyError where there is none."""
        name = path, base_url
        if (page := self._fixed.get(path) or self._kept.get(name)) is not None:
            return page
        async with self._rendering:
            if name not in self._kept:  # it may have been rendered for another caller meanwhile
                self._kept[name] = await asyncio.to_thread(self._rendered[path], base_url)
                while len(self._kept) > _ADDRESSES * len(self._rendered):
                    self._kept.popitem(last=False)
            return self._kept[name]

    def __contains__(self, path: str) -> bool:
        return path in self._fixed or path in self._rendered

    def _openapi(self, base_url: str) -> CachedResponse:
        written = orjson.dumps(base_url)[1:-1]
        return _page(self._document.replace(_BASE.encode(), written), b"application/json", _NO_REFERRER)

    def _reference(self, base_url: str) -> CachedResponse:
        root = urlsplit(base_url).path
        page = self._html.replace(_BASE.encode(), escape(base_url).encode()).replace(_ROOT.encode(), escape(root).encode())
        return _page(page, b"text/html; charset=utf-8", _PAGE_HEADERS)

    @cached_property
    def _document(self) -> bytes:
        return orjson.dumps(document(self._catalogue, _BASE))

    @cached_property
    def _html(self) -> bytes:
        template = _templates().get_template("reference.html")
        return template.render(self._said()).encode()

    def _said(self) -> Mapping[str, Any]:
        catalogue = self._catalogue
        return {
            "base": _BASE,
            "root": _ROOT,
            "version": __version__,
            "sections": sections(catalogue, _BASE),
            "errors": all_errors(catalogue),
            "status_text": STATUS_TEXT,
            "aliases": aliases(catalogue),
            "dialects": show_dialects(catalogue),
            "kind": showcase(catalogue),
            "headers": HEADERS,
            "settings": self._settings,
            "per_page": PER_PAGE,
            "most_per_page": MOST_PER_PAGE,
            "key": KEY,
        }


def _structure_schema(catalogue: Catalogue) -> CachedResponse:
    kinds = {operation.kind.name: operation.kind for operation in catalogue.values() if operation.kind is not None}
    return _page(orjson.dumps(build_schema(tuple(kinds.values()))), b"application/schema+json", _NO_REFERRER)


def _page(body: bytes, kind: bytes, headers: Headers) -> CachedResponse:
    return CachedResponse(body, blake2b(body, digest_size=12).hexdigest().encode(), headers, kind)


def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # start-up time: for the first reader

    environment = Environment(
        loader=PackageLoader("trellis.rest.docs"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": prose, "coloured": coloured}
    return environment
