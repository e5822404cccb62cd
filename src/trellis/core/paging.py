"""Pages: the parameters and the response of every list."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from trellis.core.fields import Field, Integer
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.nodes import TooMuch

PER_PAGE: Final = 25
MOST_PER_PAGE: Final = 1000

PAGING: Final = (
    Field("page", Integer(1), "The page number, counted from 1. Pages past the end are empty.", default=1, example=1),
    Field("perPage", Integer(1, MOST_PER_PAGE), "The number of records per page.", default=PER_PAGE, example=PER_PAGE),
)


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
    """Serialize a page. `results` is a list of records, which may be encoded already."""
    return {
        "page": page,
        "perPage": per_page,
        "totalResults": total,
        "totalPages": max(1, -(-total // per_page)),
        "results": results,
    }
