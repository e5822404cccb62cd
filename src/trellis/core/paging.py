"""Pages: the parameters and the response of every list."""

from typing import Any, Final

from trellis.core.fields import Field, Integer

PER_PAGE: Final = 25
MOST_PER_PAGE: Final = 1000

PAGING: Final = (
    Field("page", Integer(1), "The page number, counted from 1. Pages past the end are empty.", default=1, example=1),
    Field("perPage", Integer(1, MOST_PER_PAGE), "The number of records per page.", default=PER_PAGE, example=PER_PAGE),
)


def serialize_page(results: Any, total: int, page: int, per_page: int) -> dict[str, Any]:
    """Serialize a page; its results are a list, encoded perhaps."""
    return {
        "page": page,
        "perPage": per_page,
        "totalResults": total,
        "totalPages": max(1, -(-total // per_page)),
        "results": results,
    }
