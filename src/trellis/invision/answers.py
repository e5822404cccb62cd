"""The answers of a community's REST API as they were received, over the network or from files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from trellis.core.fields import MAX_ID, parse_whole_number, quote

HELLO: Final = "core/hello"
_BEFORE: Final = b"\xef\xbb\xbf \t\r\n"  # what PHP sends first for each of its files that begins with a mark or an empty line
MOST_VALUES: Final = 4_000_000  # in all answers: objects, lists and what they contain; as many take up to half a GiB of memory


class ReadingFailed(Exception):
    """A community, or its saved answers, cannot be read. The text explains what was wrong and what to do."""


class Parser:
    """Parses answers as JSON, with a limited number of values in all of them: a small text may take much memory."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def parse(self, raw: bytes) -> Any:
        """Return the value of an answer. Raises orjson.JSONDecodeError, ReadingFailed."""
        self._left -= sum(raw.count(sign) for sign in (b",", b"[", b"{"))
        if self._left < 0:
            raise ReadingFailed(
                f"The answers have more than {MOST_VALUES:,} values in all. Read one section after the other, with --section."
            )
        return orjson.loads(raw.lstrip(_BEFORE))


@dataclass(slots=True)
class Answers:
    """The answers of a community: its greeting, and the pages of each list by path. `cautions` are doubts about the answers."""

    hello: Mapping[str, Any] | None = None
    pages: dict[str, list[Any]] = field(default_factory=dict)
    cautions: list[str] = field(default_factory=list)

    def find_records(self, paths: Sequence[str]) -> list[Mapping[str, Any]] | None:
        """Return the records of a list, each once, in the order of ids; None if no path was answered. Raises ReadingFailed."""
        path = next((one for one in paths if one in self.pages), None)
        if path is None:
            return None
        found: dict[int, Mapping[str, Any]] = {}
        for number, answer in enumerate(self.pages[path], 1):
            found |= parse_page(answer, f"{path}, page {number}").records
        return [found[number] for number in sorted(found)]

    def count_missing(self, path: str) -> int:
        """Return how many records are missing from the pages of a list, by the total that they report. Raises ReadingFailed."""
        pages = [parse_page(answer, f"{path}, page {number}") for number, answer in enumerate(self.pages[path], 1)]
        seen = {number for page in pages for number in page.records}
        return max(0, (pages[-1].total or 0) - len(seen)) if pages else 0


class ListPage(NamedTuple):
    """A page of a list: its records by id, and the number of records of the whole list, if it reports one."""

    records: dict[int, Mapping[str, Any]]
    total: int | None


def parse_page(answer: Any, where: str) -> ListPage:
    """Parse the answer to a request for a list. A bare list of records is accepted too. Raises ReadingFailed, naming `where`."""
    results = answer.get("results") if isinstance(answer, Mapping) else answer
    if isinstance(results, Mapping):  # PHP writes a list with gaps as an object
        results = list(results.values())
    if not isinstance(results, list):
        raise ReadingFailed(f"{where}: this is not a list of records, which would have 'results'. Read the community again.")
    total = parse_whole_number(answer.get("totalResults")) if isinstance(answer, Mapping) else None
    return ListPage(dict(_list_records(results, where)), total)


def _list_records(results: Sequence[Any], where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for position, record in enumerate(results, 1):
        number = parse_whole_number(record.get("id")) if isinstance(record, Mapping) else None
        if number is None or not 1 <= number <= MAX_ID:
            shown = quote(record.get("id") if isinstance(record, Mapping) else record)
            raise ReadingFailed(
                f"{where}: record {position} has no usable id, but {shown}. Read the community again; if that does not help, "
                "leave this section out with --section."
            )
        yield number, record
