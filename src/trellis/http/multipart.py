"""Parses bodies of the type multipart/form-data that have been received completely."""

from collections.abc import AsyncGenerator
from typing import Final

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from trellis.core.fields import quote
from trellis.errors import Refused
from trellis.http.asgi import run_to_end
from trellis.sentences import say

# Python can decode many more, but it remembers every unknown name forever; and of the charsets that it supports, some take hours
# for a body, and some make surrogates of plain ASCII.
_CHARSETS: Final = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252"))
_LONGEST_TYPE: Final = 1024  # bytes; a boundary has at most 70 (RFC 2046, 5.1.1)
_MOST_PARAMETERS: Final = 32  # of a part: the time to parse them grows with the square of the number of semicolons


class _Parts(MultiPartParser):
    """Starlette's parser, extended: it records whether the closing boundary has come, and limits the parameters of a part."""

    ended = False

    @property
    def has_file(self) -> bool:
        """Whether one of the parts so far has a file name."""
        return self._current_files > 0

    def on_headers_finished(self) -> None:
        if (self._current_part.content_disposition or b"").count(b";") > _MOST_PARAMETERS:
            raise MultiPartException(f"A part has more than {_MOST_PARAMETERS} semicolons in its Content-Disposition.")
        super().on_headers_finished()

    def on_end(self) -> None:
        self.ended = True


def parse_multipart(content_type: bytes, body: bytes, most_fields: int) -> list[tuple[str, str]]:
    """Return the names and values of a form. Raises Refused (MALFORMED_REQUEST) if it cannot be read or contains files."""
    charset = _find_charset(content_type)

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    headers = Headers(raw=[(b"content-type", content_type)])
    parser = _Parts(headers, stream(), max_files=0, max_fields=most_fields, max_part_size=len(body))
    try:
        form = run_to_end(parser.parse())  # it waits for nothing: the whole body has been received
        body.decode(charset)  # checked here, since the parser reads invalid bytes as Latin-1
    except MultiPartException as error:
        if parser.has_file:
            detail = say("The form contains a file. Send each value as a plain field, without a file name.")
            raise Refused("MALFORMED_REQUEST", detail) from None
        raise Refused("MALFORMED_REQUEST", say("The multipart body cannot be read: {message}", message=error.message)) from None
    except UnicodeError:
        raise Refused("MALFORMED_REQUEST", say("The body is not valid {charset}.", charset=charset.upper())) from None
    except (ValueError, KeyError, LookupError):
        raise Refused("MALFORMED_REQUEST", say("The multipart body cannot be read.")) from None
    if not parser.ended:
        raise Refused("MALFORMED_REQUEST", say("The multipart body ends before its closing boundary."))
    return [(name, value) for name, value in form.multi_items() if isinstance(value, str)]


def _find_charset(content_type: bytes) -> str:
    """Return the charset of the texts in a form. Raises Refused if it is not supported, or the Content-Type is too long."""
    if len(content_type) > _LONGEST_TYPE:
        raise Refused("MALFORMED_REQUEST", say("The Content-Type has more than {most:,} bytes.", most=_LONGEST_TYPE))
    charset = parse_options_header(content_type)[1].get(b"charset", b"utf-8").lower()
    if charset not in _CHARSETS:
        raise Refused(
            "MALFORMED_REQUEST",
            say(
                "The charset of the multipart body is {charset}, which is not supported. Send the form in UTF-8.",
                charset=quote(charset.decode("latin-1")),
            ),
        )
    return charset.decode("ascii")
