"""The reader, which reads all lists of a community page by page. Pages may come from caches and overlap."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trellis.invision.answers import HELLO, Answers, ReadingFailed, parse_page
from trellis.invision.live.client import Client

_MOST_PAGES: Final = 10_000


class Reader:
    """Reads lists. `progress` is called with the number of records read so far and the expected total."""

    def __init__(self, client: Client, per_page: int, progress: Callable[[int, int], None]) -> None:
        self._client = client
        self._per_page = per_page
        self._progress = progress
        self._done = 0
        self._total = 0

    def read(self, lists: Mapping[str, Sequence[str]]) -> Answers:
        """Read the greeting and the lists, each from the first of its paths that exists. Raises ReadingFailed."""
        hello = self._client.get(HELLO, needed=False, _=secrets.token_hex(4))
        answers = Answers(hello if isinstance(hello, Mapping) else None)
        for paths in lists.values():
            for path in paths:
                if (pages := self._read_list(path, answers.cautions)) is not None:
                    answers.pages[path] = pages
                    break
        return answers

    def _read_list(self, path: str, cautions: list[str]) -> list[Any] | None:
        """Return the pages of a list; None if it does not exist. If records seem to have moved between pages, read it twice."""
        done = self._done
        pages, doubt = self._read_pages(path)
        if pages is not None and doubt:
            self._done = done
            pages, doubt = self._read_pages(path)
        if pages is not None and doubt:
            cautions.append(f"{path}: the community {doubt}, even when it was read again. Is somebody changing it?")
        return pages

    def _read_pages(self, path: str) -> tuple[list[Any] | None, str]:
        """Read a list until all of the records that it reports have come, or a page is empty, not there, or has nothing new.

        Return the pages, and a doubt about them or "".
        """
        seen: set[int] = set()
        pages: list[Any] = []
        fresh = secrets.token_hex(4)  # an answer may come from a cache, but not from one of an earlier run
        totals: set[int] = set()
        total = 0
        while len(pages) < _MOST_PAGES:
            number = len(pages) + 1
            answer = self._client.get(path, page=number, perPage=self._per_page, _=fresh)
            if answer is None and not pages:
                return None, ""
            if answer is None:
                break
            page = parse_page(answer, f"{path}, page {number}")
            if page.total is not None:
                totals.add(page.total)
            if pages and page.records.keys() <= seen:
                break  # empty, or from a release without pages, which sends all records each time
            pages.append(answer)
            seen |= page.records.keys()
            total = page.total or 0
            self._tell(len(seen), total)
            if not page.records or len(seen) == total:  # a smaller total is wrong: to end there would lose records without a word
                break
        else:
            raise ReadingFailed(f"{path} has no end: {_MOST_PAGES:,} pages were read. Ask for more at once with --per-page.")
        self._done += len(seen)
        if (missing := total - len(seen)) > 0:
            return pages, f"reports {missing:,} more records than it sent"
        # If a record is deleted, another one moves from the next page to a page that was read already, so it is missed although the
        # numbers match.
        return pages, "reported different totals on different pages" if len(totals) > 1 else ""

    def _tell(self, seen: int, total: int) -> None:
        self._total = max(self._total, self._done + max(seen, total))
        self._progress(self._done + seen, self._total)
