"""The address from which pages get news."""

from typing import Final

from starlette.responses import Response

from trellis.admin.live import EventStream, describe_news
from trellis.admin.page import Page, PageRequest
from trellis.core.news import News, parse_position, read_news, read_position

_STREAM: Final = "text/event-stream"


async def show(request: PageRequest) -> Response:
    """Return the news since a position: as a stream, for as long as the session lasts, or at once, as JSON."""
    since = parse_position(request.http.headers.get("last-event-id", "") or request.query.get("since", ""))
    if _STREAM in request.http.headers.get("accept", ""):
        return EventStream(await request.watcher.open(request.signed_in, since), request.watcher.close)
    if since is None:
        return request.json(describe_news(News(await request.runner.read(read_position, request.actor))))
    return request.json(describe_news(await request.runner.read(read_news, since, request.actor)))


PAGES: Final = (Page("GET", "/news", show, background=True),)
