"""Reads the forms that browsers send, within limits."""

from collections import Counter
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from trellis.admin.submitted import LOADED, MAX_FORM, Submitted
from trellis.core.networks import find_network
from trellis.errors import Refused
from trellis.http.large import run_by_size
from trellis.http.multipart import parse_multipart
from trellis.sentences import say

_SMALL: Final = 16_384  # bytes of a form that is not counted, such as one to sign in
_OF_ONE: Final = 4  # larger forms in progress of one administrator, or of the visitors from one network
_OF_VISITORS: Final = 32  # larger forms in progress of all visitors
_VISITORS: Final = "visitors"  # a name that is no address
_HELD: Final = "trellis.held"  # the name in a scope
_MAX_READ: Final = 33_554_432  # bytes of a larger form that are read and discarded, so that the browser shows the response
_MAX_FIELDS: Final = 500  # names
_MAX_VALUES: Final = 2_000  # a field has several if several boxes are ticked
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"


class LargeForms:
    """Counts the larger forms in progress: each takes memory from its first byte until its response has been read."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()  # by caller, and of all visitors

    def hold(self, http: Request, admin: int | None) -> None:
        """Count a form of an administrator, or of a visitor (None). Raises Refused (BUSY) if too many are in progress."""
        size = http.headers.get("content-length", "")
        if len(size) < len(str(_MAX_READ)) and size.isascii() and size.isdigit() and int(size) <= _SMALL:
            return
        network = find_network(http.client.host if http.client else "")
        most = {network: _OF_ONE, _VISITORS: _OF_VISITORS} if admin is None else {f"administrator {admin}": _OF_ONE}
        if any(self._of[name] >= allowed for name, allowed in most.items()):
            told = say("Too many large forms are in progress. Nothing was changed: send this one again in a moment.")
            raise Refused("BUSY", told)
        self._of.update(most.keys())
        http.scope[_HELD] = tuple(most)

    def release(self, scope: MutableMapping[str, Any]) -> None:
        """Stop counting the form of a request, if it was counted."""
        self._of -= Counter(scope.pop(_HELD, ()))  # keeps no zeros


async def read_form(http: Request, most_multipart: int, *, signed_in: bool) -> Submitted:
    """Read a form of at most 1 MiB, or a multipart form of at most `most_multipart` bytes. Raises Refused.

    A larger form is read to its end, within limits, and refused. Percent-encoded forms stay small on every page, because decoding
    one blocks all threads. Of somebody who has not signed in, only the size of a form of more than 1 MiB is kept.
    """
    content_type = http.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    in_parts = kind == _MULTIPART and most_multipart > 0
    most = most_multipart if in_parts else MAX_FORM
    kept = most if signed_in else min(most, MAX_FORM)
    body, size = bytearray(), 0
    async for part in http.stream():
        size += len(part)
        if size <= kept:
            body += part
        elif size > _MAX_READ:
            break
    if size > most:
        raise Refused(
            "BODY_TOO_LARGE",
            say(
                "The form is larger than the limit of {most} MiB. Nothing was changed: go back and shorten what you typed.",
                most=most >> 20,
            ),
        )
    if not body or size > kept:
        return Submitted(size=size)
    if in_parts:
        return await run_by_size(size, _parse_parts, content_type.encode("latin-1"), bytes(body))
    if kind != _FORM:
        raise Refused("UNSUPPORTED_MEDIA_TYPE", say("The panel only accepts forms as browsers send them."))
    return await run_by_size(size, _parse_form, bytes(body))


def _parse_form(body: bytes) -> Submitted:
    try:
        form = Submitted(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_VALUES), len(body))
    except ValueError as error:
        raise Refused("MALFORMED_REQUEST", say("The form could not be read. Go back and send it again.")) from error
    return _check_whole(form)


def _parse_parts(content_type: bytes, body: bytes) -> Submitted:
    return _check_whole(Submitted(parse_multipart(content_type, body, _MAX_VALUES), len(body)))


def _check_whole(form: Submitted) -> Submitted:
    """Return a form if all of it has come and can be read. Raises Refused."""
    if len(form) > _MAX_FIELDS:
        raise Refused(
            "MALFORMED_REQUEST",
            say("The form has {count:,} fields; at most {max_fields} are read.", count=len(form), max_fields=_MAX_FIELDS),
        )
    if form.get(LOADED) == "begin":
        raise Refused(
            "MALFORMED_REQUEST",
            say(
                "The page had not loaded to its end when the form was sent, so that a part of it is missing. Nothing was changed. "
                "Go back, reload the page and try again."
            ),
        )
    return form
