"""Pages: the parameters and the response of every list."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from trellis.core.fields import Field, Input, Integer
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.nodes import TooMuch

PER_PAGE: Final = 25
MOST_PER_PAGE: Final = 1000

_PAGE: Final = Field("page", Integer(1), "The page number, counted from 1. Pages past the end are empty.", default=1, example=1)
_SIZE: Final = Field("perPage", Integer(1, MOST_PER_PAGE), "The number of records per page.", default=PER_PAGE, example=PER_PAGE)
PAGING: Final = (_PAGE, _SIZE)


def parse_paging(given: Input) -> tuple[int, int]:
    """Return the number of the page that a call asks for, and the number of records per page."""
    return given.get(_PAGE.name, _PAGE.default), given.get(_SIZE.name, _SIZE.default)


@contextmanager
def refusing_large_pages() -> Iterator[None]:
    """Refuse a page that is read inside if its records have very long texts. Raises Refused (PAGE_TOO_LARGE)."""
    try:
        yield
    except TooMuch as much:
        detail = say(
            "The records of this page have more than {mib} MiB of text. Ask for fewer at once, with a smaller perPage.",
            mib=much.mib,
        )
        raise Refused("PAGE_TOO_LARGE", detail) from None


def serialize_page(results: Any, total: int, page: int, per_page: int) -> dict[str, Any]:
    """Serialise a page. `results` is a list of records, which may be encoded already."""
    return {
        "page": page,
        "perPage": per_page,
        "totalResults": total,
        "totalPages": max(1, -(-total // per_page)),
        "results": results,
    }


def read_all(read: Callable[[int], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return all records of a list in its order, by a function that reads the page with a number."""
    first = read(1)
    return join_pages([first] if first["totalPages"] == 1 else [read(page) for page in number_pages(first)])


def number_pages(first: Mapping[str, Any]) -> Sequence[int]:
    """Return the numbers of pages from the last to the first, so that a delete meanwhile moves no record to a page already read."""
    return range(first["totalPages"], 0, -1)


def join_pages(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of pages that were read from the last to the first, in their order, each once."""
    return list({one["id"]: one for page in reversed(pages) for one in page["results"]}.values())
