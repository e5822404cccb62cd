"""The pages of the reference: their paths and HTML, and the addresses of everything that they describe."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trellis import __version__
from trellis.core.catalogue import Catalogue
from trellis.core.paging import MOST_PER_PAGE, PER_PAGE
from trellis.http.design import TEMPLATES as SHARED
from trellis.http.routes import REFERENCE, find_in_reference
from trellis.rest.docs.components import load_components
from trellis.rest.docs.contents import aliases, all_errors, prose, section_names, sections, showcase
from trellis.rest.docs.dialects import show_dialects
from trellis.rest.docs.responses import STATUS_TEXT
from trellis.rest.docs.samples import KEY, coloured
from trellis.rest.docs.types import in_words
from trellis.settings import Settings

if TYPE_CHECKING:
    from jinja2 import Environment

INDEX: Final = "/docs"
GUIDE: Final[Mapping[str, str]] = {
    "start": "Start here",
    "keys": "Keys and grants",
    "requests": "Requests",
    "lists": "Lists and paging",
    "places": "Places and permissions",
    "dry-run": "Dry run",
    "versions": "Versions",
    "idempotency": "Sending twice",
    "limits": "Limits",
    "errors": "Errors",
    "names": "Invision Community 4.2 names",
    "dialects": "Other dialects",
}
_HEADERS: Final = ("X-Request-Id", "Change-Set", "X-Audit-Log-Reason", "If-None-Match", "If-Match", "Idempotency-Key")


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of things in the reference. They are built only here, so that no link can lead elsewhere."""

    catalogue: Catalogue
    root: str

    @property
    def index(self) -> str:
        """Return the address of the index."""
        return f"{self.root}{REFERENCE}"

    def section(self, name: str) -> str:
        """Return the address of the operations of a resource."""
        return f"{self.index}/{name}"

    def operation(self, name: str) -> str:
        """Return the address of an operation."""
        return f"{self.root}{find_in_reference(self.catalogue.find(name))}"

    def guide(self, name: str) -> str:
        """Return the address of a chapter of the guide."""
        return f"{self.index}/guide/{name}"

    def error(self, message: str) -> str:
        """Return the address of an error, by its `errorMessage`."""
        return f"{self.guide('errors')}#{message}"

    def header(self, name: str) -> str:
        """Return the address of a request header."""
        return f"{self.guide('requests')}#header-{name}"


def page_paths(catalogue: Catalogue) -> tuple[str, ...]:
    """Return the path of every page, relative to /api."""
    return (INDEX, *(f"{INDEX}/{name}" for name in section_names(catalogue)), *(f"{INDEX}/guide/{name}" for name in GUIDE))


def render_pages(catalogue: Catalogue, settings: Settings, base: str, root: str) -> dict[str, bytes]:
    """Return the HTML of every page by its path. `base` is the address of the service, `root` the path in it."""
    templates = _templates()
    shown = {**_describe(catalogue, settings, base), "root": root, "to": Addresses(catalogue, root), "page": "", "section": None}
    pages = _list_pages(shown)
    return {path: templates.get_template(name).render({**shown, **more}).encode() for path, name, more in pages}


def _list_pages(shown: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    yield INDEX, "index.html", {"page": "index", "title": "API reference"}
    for section in shown["sections"]:
        yield f"{INDEX}/{section.name}", "section.html", {"section": section, "page": section.name, "title": section.title}
    for name, title in GUIDE.items():
        yield f"{INDEX}/guide/{name}", "guide.html", {"page": f"guide/{name}", "chapter": f"guide/{name}.html", "title": title}


def _describe(catalogue: Catalogue, settings: Settings, base: str) -> Mapping[str, Any]:
    return {
        "base": base,
        "reference": REFERENCE,
        "version": __version__,
        "community": settings.community_name,
        "guide": GUIDE,
        "request_headers": _HEADERS,
        "sections": sections(catalogue, base),
        "errors": all_errors(catalogue),
        "status_text": STATUS_TEXT,
        "aliases": aliases(catalogue),
        "dialects": show_dialects(catalogue),
        "kind": showcase(catalogue),
        "headers": load_components()["headers"],
        "settings": settings,
        "per_page": PER_PAGE,
        "most_per_page": MOST_PER_PAGE,
        "key": KEY,
    }


def _templates() -> "Environment":
    from jinja2 import (  # noqa: PLC0415  # start-up time: needed only for the first reader
        ChoiceLoader,
        Environment,
        FileSystemLoader,
        PackageLoader,
        StrictUndefined,
    )

    environment = Environment(
        loader=ChoiceLoader((PackageLoader("trellis.rest.docs"), FileSystemLoader(SHARED))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"prose": prose, "coloured": coloured, "in_words": in_words}
    return environment
