"""A stream of server-sent events to one page: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson
from starlette.responses import StreamingResponse

from trellis.admin.live.watcher import Stream
from trellis.core.news import News, format_position
from trellis.http.asgi import Receive, Scope, Send, call_when_gone

_BEAT_EVERY: Final = 20.0  # seconds: proxies close a response that sends nothing, most of them after a minute
_BEAT: Final = b"event: beat\ndata: 1\n\n"  # no comment: the page receives it and knows that the stream is alive
_RETRY: Final = b"retry: 2000\n\n"  # milliseconds after which a browser opens the stream again
_MOST_BYTES: Final = 65_536  # then the browser opens another stream; this much fits into the buffers even if nobody reads
_HEADERS: Final = {
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",  # makes nginx pass everything on at once
}


class EventStream(StreamingResponse):
    """The response for one stream. It ends when the stream ends or the browser has gone, and closes the stream."""

    def __init__(self, stream: Stream, close: Callable[[Stream], None]) -> None:
        super().__init__(_nothing(), headers=_HEADERS, media_type="text/event-stream")
        self._stream = stream
        self._close = close

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(call_when_gone(receive, self._stream.end))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            sent = await _send_part(send, _RETRY)
            while not self._stream.is_ended and sent < _MOST_BYTES:
                try:
                    async with asyncio.timeout(_BEAT_EVERY):
                        await self._stream.woken.wait()
                except TimeoutError:
                    sent += await _send_part(send, _BEAT)
                    continue
                if (news := self._stream.take()) is not None:
                    sent += await _send_part(send, format_news(news))
            await send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()
            self._close(self._stream)


def describe_news(news: News) -> dict[str, Any]:
    """Return news as a page reads it."""
    return {"position": format_position(news.position), "topics": sorted(news.topics)}


def format_news(news: News) -> bytes:
    """Format news as a server-sent event. Its id is the position, which a browser sends as Last-Event-ID when it reconnects."""
    told = describe_news(news)
    return b"id: %b\nevent: news\ndata: %b\n\n" % (told["position"].encode(), orjson.dumps(told["topics"]))


async def _send_part(send: Send, part: bytes) -> int:
    await send({"type": "http.response.body", "body": part, "more_body": True})
    return len(part)


def _nothing() -> Iterator[bytes]:
    yield from ()
