"""Builds the response to writes while too many wait, which the server sends without running the application.

This costs a sixth of a refusal by the application, so that even if four times as many writes arrive as can be done, the processor
has time for those that are done.
"""

import re
from typing import Final

from trellis.http.api import ApiRequest, Service, build_headers
from trellis.http.asgi import Scope, receive_nothing
from trellis.http.server import Writes, write_headers, write_status
from trellis.rest.responses import respond_to_refusal
from trellis.store.engine import refuse_full

_BASE, _ID, _LENGTH = "{base}", "{id}", b"{length}"  # placeholders for what differs; no URL and no id contains braces
_READING: Final = frozenset((b"GET", b"HEAD", b"OPTIONS"))


class Overload(Writes):
    """Recognises writes below a prefix, and builds the whole response to them while too many wait."""

    def __init__(self, service: Service, prefix: str) -> None:
        self._service = service
        # As `rewrite_address` reads it, and as whoever takes us for a proxy sends it: with the scheme and the host.
        self._address = re.compile(rb"(?i:[a-z][a-z0-9+.-]*://[^/?#]*)?/+%b/" % re.escape(prefix.strip("/").encode()))
        self._most = service.settings.write_queue + 1  # one more is with the writer; so each has a place when it is queued
        self._template, self._length = _prepare(service, prefix)

    def has(self, method: bytes, path: bytes) -> bool:
        return method not in _READING and self._address.match(path) is not None

    def refuse(self, scope: Scope) -> bytes | None:
        if self.under_way < self._most and not self._service.gate.store.writer.is_full():
            return None
        headers = dict(scope["headers"])
        if b"origin" in headers:
            return None
        base, request_id = self._service.find_base_url(scope, headers).encode(), self._service.choose_request_id(headers).encode()
        response = self._template.replace(_LENGTH, b"%d" % (self._length + len(base) + len(request_id)))
        return response.replace(_BASE.encode(), base).replace(_ID.encode(), request_id)


def _prepare(service: Service, prefix: str) -> tuple[bytes, int]:
    """Return the response with placeholders for what differs, and the length of its body without them."""
    request = ApiRequest("POST", prefix, "", b"", {}, _BASE, "", _ID, "", receive_nothing)
    response = respond_to_refusal(request, refuse_full())
    headers = build_headers(request, response, None, service.settings.transport_headers)
    filled = write_headers((name, _LENGTH if name == b"content-length" else value) for name, value in headers)
    whole = write_status(response.status) + filled + b"\r\n" + response.body
    return whole, len(response.body) - len(_BASE) - len(_ID)
