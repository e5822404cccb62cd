"""The application: the nineteen operations under /api."""

from fastapi import FastAPI, HTTPException, Request, Response

from bench.peers.fastapi_peer.models import Blog, Calendar, Category, Forum, Group
from bench.peers.fastapi_peer.nodes import Kind, Refusal, router_of
from bench.peers.fastapi_peer.schemas import CalendarIn, CalendarOut, CategoryIn, CategoryOut, ForumIn, ForumOut, GroupOut, Out

app = FastAPI(title="Nodes", docs_url="/api/docs", openapi_url="/api/openapi.json")
for kind, verbs in (
    (Kind("groups", "/core/groups", Group, GroupOut), "list get delete"),
    (Kind("forums", "/forums/forums", Forum, ForumOut, ForumIn), "list get create update delete"),
    (Kind("blogs", "/blog/blogs", Blog, Out), "delete"),
    (Kind("calendars", "/calendar/calendar", Calendar, CalendarOut, CalendarIn), "list get create update delete"),
    (Kind("categories", "/downloads/category", Category, CategoryOut, CategoryIn), "list get create update delete"),
):
    app.include_router(router_of(kind, verbs), prefix="/api")


@app.exception_handler(HTTPException)
async def refuse(_request: Request, error: HTTPException) -> Response:
    """Answer a refusal as RFC 9457 has it."""
    name, _, detail = str(error.detail).partition(": ")
    body = Refusal(status=error.status_code, title=name, detail=detail).model_dump_json()
    return Response(body, error.status_code, error.headers, "application/problem+json")
