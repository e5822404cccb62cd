"""Reads bodies of the type multipart/form-data that have come whole."""

from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from trellis.errors import Refused
from trellis.sentences import say

T = TypeVar("T")


class _Parts(MultiPartParser):
    """Starlette's parser, which does not say by itself whether the closing boundary has come."""

    ended = False

    def on_end(self) -> None:
        self.ended = True


def parse_multipart(content_type: bytes, body: bytes, most_fields: int) -> list[tuple[str, str]]:
    """Return the names and values of a form, which may have no files. Raises Refused (MALFORMED_REQUEST)."""

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    headers = Headers(raw=[(b"content-type", content_type)])
    parser = _Parts(headers, stream(), max_files=0, max_fields=most_fields, max_part_size=len(body))
    try:
        form = _run_to_end(parser.parse())
        if b"charset=" not in content_type.lower():
            body.decode()  # the parser would take what is not UTF-8 for Latin-1
    except MultiPartException as error:
        raise Refused("MALFORMED_REQUEST", say("The multipart body cannot be read: {message}", message=error.message)) from None
    except UnicodeError:
        raise Refused("MALFORMED_REQUEST", say("The body is not valid UTF-8.")) from None
    except (ValueError, KeyError, LookupError):
        raise Refused("MALFORMED_REQUEST", say("The multipart body cannot be read.")) from None
    if not parser.ended:
        raise Refused("MALFORMED_REQUEST", say("The multipart body ends before its closing boundary."))
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, in whatever thread this is: all that is parsed has come already."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what the coroutine returned
    coroutine.close()
    raise RuntimeError("the parser waited for something")
