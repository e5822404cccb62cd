"""The REST application: plain ASGI over the catalogue, one route per operation."""

import re
from concurrent.futures import Future
from functools import partial
from typing import Final
from urllib.parse import unquote_to_bytes

from trellis.core.actor import Actor
from trellis.core.fields import MAX_ID, invalid_id, quote
from trellis.core.gate import Result
from trellis.core.operation import Operation, RawText
from trellis.core.verbs import Response, Verb
from trellis.core.version import compute_version
from trellis.errors import LongRead, Refused, refuse_fault
from trellis.http.api import (
    ApiRequest,
    ApiResponse,
    CachedResponse,
    Service,
    build_read,
    encode_written,
    may_be_larger,
    receive_body,
    refuse_method,
    require_bearer,
    respond_to_options,
    respond_to_preflight,
)
from trellis.http.asgi import Receive, Scope, Send
from trellis.http.json_body import LINES, accepts_lines, encode_lines
from trellis.http.large import run_by_size
from trellis.http.routes import Route, build_routes
from trellis.rest.bodies import refuse_malformed
from trellis.rest.calls import read_call, read_query
from trellis.rest.dialect import TRANSLATORS, encode_answer
from trellis.rest.docs import Reference
from trellis.rest.responses import renew_page, respond_to_read, respond_to_refusal, respond_to_write, respond_with_links
from trellis.rest.routing import Methods, Table
from trellis.sentences import say

PREFIX: Final = "/api"
_ID: Final = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)


class Rest:
    """The API. Checks are made in this order: address throttle, key, rate limit, endpoint, grant, body."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.gate = service.gate
        self.settings = service.settings
        self.reference = Reference(self.gate.catalogue, self.settings)
        self.table = Table(build_routes(self.gate.catalogue))

    async def __call__(self, scope: Scope, receive: Receive, send: Send, malformed: str = "") -> None:
        """Answer a request, or refuse it if `malformed` says how it violates HTTP."""
        request = self.service.read_request(scope, receive, PREFIX)
        await self.service.answer(request, send, self._respond(request, malformed), self._refuse)

    async def _respond(self, request: ApiRequest, malformed: str) -> ApiResponse:
        if malformed:
            raise refuse_malformed(malformed)
        methods, text = self.table.find(request.path)
        if methods is None and request.path in self.reference:
            request.logged = False  # reading the reference is not a request to the API
            return await self._serve_reference(request)
        if request.method == "OPTIONS" and methods is not None:
            return respond_to_options(methods, cors=bool(self.settings.cors_origins))
        if request.method == "OPTIONS" and self.settings.cors_origins and b"access-control-request-method" in request.headers:
            return respond_to_preflight()
        bearer = await self.service.admit(request)
        route, target = self._route(request, methods, text)
        operation = route.operation
        if not operation.writes:
            return await self._read(request, route, target)
        operation = await self.service.find_write(request, operation, bearer.actor, target)
        limit = self.settings.body_limit
        large = operation.most_bytes > limit and may_be_larger(request, limit)
        with self.service.large.hold(request.caller, large=large):
            return await self._write(request, route, operation, target, operation.most_bytes if large else limit)

    async def _write(self, request: ApiRequest, route: Route, operation: Operation, target: int | None, limit: int) -> ApiResponse:
        body = await receive_body(request, limit)
        submit = partial(self._submit, request, operation, require_bearer(request).actor, target, body)
        async with self.service.large.take_turn(len(body)):
            result = await self.service.write(request, len(request.query) + len(body), submit)
            verb = result.verb or route.verb
            return await encode_written(request, verb, self._respond_to_write, request, route, operation, verb, result)

    def _respond_to_write(self, request: ApiRequest, route: Route, operation: Operation, verb: Verb, result: Result) -> ApiResponse:
        translator = None if verb.records_at else TRANSLATORS.get(request.dialect)  # a dialect has no form for proposals
        # Nothing is read here: if a read failed, the client would repeat a write that is done. Keys write no kind that shows
        # groups.
        actor = require_bearer(request).actor
        shown = result.value if translator is None else translator.serialize(operation, result.value, self.gate, actor)
        collection = f"{request.base}{PREFIX}{verb.records_at or route.operation.path}"
        return respond_to_write(verb, result, shown, collection, pretty=request.pretty)

    def _submit(self, request: ApiRequest, operation: Operation, actor: Actor, target: int | None, body: bytes) -> Future[Result]:
        """Read a request whose body has been received, and hand it to the writer."""
        return self.gate.submit(read_call(request, operation, actor, target, body, TRANSLATORS.get(request.dialect)))

    async def _serve_reference(self, request: ApiRequest) -> ApiResponse:
        """Return a page of the reference, which needs no key."""
        if request.method == "OPTIONS":
            return respond_to_options(("GET",), cors=bool(self.settings.cors_origins))
        if request.method not in {"GET", "HEAD"}:
            raise refuse_method(request.method, ("GET",))
        return self._respond_to_read(request, await self.reference.find(request.path, request.base))

    def _route(self, request: ApiRequest, methods: Methods | None, text: str | None) -> tuple[Route, int | None]:
        """Find the endpoint that an identified caller requested, check the grant, and read the id in the path."""
        if methods is None:
            raise Refused(
                "NO_ENDPOINT",
                say(
                    "There is no endpoint at {path}. All endpoints are listed at {prefix}/docs.",
                    path=quote(request.path),
                    prefix=PREFIX,
                ),
            )
        if (route := methods.get("GET" if request.method == "HEAD" else request.method)) is None:
            raise refuse_method(request.method, methods)
        request.operation = route.operation.name
        self.gate.authorise(route.operation.name, require_bearer(request).actor)
        if text is None:
            return route, None
        if (named := route.operation.path_field) is not None:
            request.path_values = {named.name: _decode_path(named.name, text)}
            return route, None
        return route, _parse_id(route.operation, text)

    # --- reading ----------------------------------------------------------------------------------------------------

    def find_read(self, request: ApiRequest) -> tuple[Route, int | None] | None:
        """Return the endpoint that an identified caller reads from, and the id in the path, if `read_at_once` may answer.

        Raises Refused.
        """
        methods, text = self.table.find(request.path)
        route = None if methods is None else methods.get("GET")
        if route is None or route.operation.writes or route.verb.response is Response.FEED:  # a feed can be waited for
            return None
        slow = _may_be_slow(route.operation, request.query)
        if not self.service.reads_at_once(request, route.operation, slow=slow, size=len(request.query)):
            return None
        return self._route(request, methods, text)

    def read_at_once(self, request: ApiRequest, route: Route, target: int | None) -> tuple[ApiResponse, str | None]:
        """Return the response to a read that `find_read` has found, which may be a refusal, and the code of the error.

        Raises LongRead if it is to be read in another thread.
        """
        try:
            run = partial(self._run_read, request, route, target, again=False)
            return respond_to_read(request, self.service.read_at_once(request, route.operation, request.name, run)), None
        except LongRead:
            raise
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets a response
            return self._refuse(request, self.service.explain(request, raised))

    async def _read(self, request: ApiRequest, route: Route, target: int | None) -> ApiResponse:
        cached = await self._find(request, route, target)
        if cached.is_empty and (b"wait" in request.query or b"%" in request.query) and request.method != "HEAD":
            cached = await self._wait(request, route, target, cached)
        return self._respond_to_read(request, cached)

    async def _find(self, request: ApiRequest, route: Route, target: int | None, *, again: bool = False) -> CachedResponse:
        """Return the answer to a request, from memory or by reading."""
        run = partial(self._run_read, request, route, target, again=again)
        slow, name = _may_be_slow(route.operation, request.query), request.name
        if _is_read_in_lines(request, route):
            name = (*name[:3], name[3] + LINES)
        return await self.service.read(request, route.operation, name, run, slow=slow, size=len(request.query))

    async def _wait(self, request: ApiRequest, route: Route, target: int | None, first: CachedResponse) -> CachedResponse:
        """Read again until the answer is not empty, for at most as long as the request says, and return the last answer."""
        given = await run_by_size(len(request.query), lambda: route.operation.form.read(read_query(request)))
        last = first

        async def read() -> bool:
            nonlocal last
            self.gate.authorise(route.operation.name, require_bearer(request).actor)  # reading from memory does not check it
            last = await self._find(request, route, target, again=True)
            return not last.is_empty

        if seconds := given.get("wait", 0):
            await self.service.wait(request, seconds, read)
        return last

    def _respond_to_read(self, request: ApiRequest, cached: CachedResponse) -> ApiResponse:
        response = respond_to_read(request, cached)
        if request.method != "HEAD":
            self.service.under_way.admit(request.caller, response.body)
        return response

    def _run_read(self, request: ApiRequest, route: Route, target: int | None, *, again: bool) -> CachedResponse:
        operation, actor = route.operation, require_bearer(request).actor
        translator = TRANSLATORS.get(request.dialect)
        known = None if translator is None else translator.find_known(operation)
        raw = read_query(request, known) if request.query or request.path_values else {}
        if translator is not None and raw:
            raw = translator.read(operation, raw, request.at)
        result = self.gate.run(build_read(request, operation, actor, target, raw, again=again))
        request.uses += result.uses
        if isinstance(result.value, RawText):
            body = result.value.text.encode()
            return CachedResponse(body, compute_version(body).encode(), (), result.value.media_type.encode(), result.shows)
        shown = result.value if translator is None else translator.serialize(operation, result.value, self.gate, actor)
        shows = result.shows if translator is None or result.shows is None else (*result.shows, *translator.shows(self.gate))
        is_empty = route.verb.response is Response.FEED and not shown["results"] and not shown["more"]
        here = f"{request.base}{PREFIX}{route.path}"
        if _is_read_in_lines(request, route):
            body, cursor = encode_lines(shown["results"]), shown["next"]
            response = respond_with_links(body, compute_version(body), here, request.query, route.verb.links, result.value)
            if cursor is not None:
                response.headers += ((b"next", b"%d" % cursor),)
            response.type, response.shows, response.is_empty = LINES.encode(), shows, is_empty
            return response
        body, version = encode_answer(result.value, shown, route.verb.response, pretty=request.pretty)
        response = respond_with_links(body, version, here, request.query, route.verb.links, result.value)
        if result.recount is not None and translator is None and not request.pretty:
            response.renew = partial(renew_page, result.recount, result.value["page"], result.value["perPage"], here, request.query)
        response.shows, response.is_empty = shows, is_empty
        response.operation = None if route.verb.response is Response.FEED else operation  # a feed may be in lines, or waited for
        return response

    async def send_in_parts(
        self, request: ApiRequest, response: ApiResponse, started: int, _scope: Scope, _receive: Receive, send: Send
    ) -> None:
        """Send a response that `read_at_once` has made and that is too large to be sent in one piece."""
        await self.service.answer(request, send, self._admit(request, response), self._refuse, started)

    async def send_long(
        self,
        request: ApiRequest,
        route: Route,
        target: int | None,
        started: int,
        _scope: Scope,
        _receive: Receive,
        send: Send,
    ) -> None:
        """Read in a thread what `read_at_once` has found to be long, and send the response."""
        await self.service.answer(request, send, self._read(request, route, target), self._refuse, started)

    async def _admit(self, request: ApiRequest, response: ApiResponse) -> ApiResponse:
        self.service.under_way.admit(request.caller, response.body)
        return response

    # --- responding ---------------------------------------------------------------------------------------------------

    def _refuse(self, request: ApiRequest, refused: Refused) -> tuple[ApiResponse, str]:
        """Return the response to a refusal, and the code of the error."""
        translator = TRANSLATORS.get(request.dialect)
        if translator is not None and request.operation is not None:
            operation = self.gate.catalogue.find(request.operation)
            translator = translator if translator.covers(operation) else None  # other operations are refused in our form
        code = refused.code if translator is None else translator.find_code(refused.code)
        return respond_to_refusal(request, refused, translator), code


def _is_read_in_lines(request: ApiRequest, route: Route) -> bool:
    """Return whether the events of a feed are to be sent one per line."""
    wanted = request.headers.get(b"accept")
    return wanted is not None and route.verb.response is Response.FEED and accepts_lines(wanted)


def _may_be_slow(operation: Operation, query: bytes) -> bool:
    """Return whether a read may take long: always, or with a parameter that the query may contain, perhaps percent-encoded."""
    return operation.slow or (operation.slow_with != "" and (operation.slow_with.encode() in query or b"%" in query))


def _decode_path(name: str, text: str) -> str:
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        detail = say("{name} in the path must be UTF-8, percent-encoded, not {text}.", name=name, text=quote(text))
        raise refuse_fault(name, "INVALID_VALUE", detail) from None


def _parse_id(operation: Operation, text: str) -> int:
    if _ID.fullmatch(text) and int(text) <= MAX_ID:
        return int(text)
    raise invalid_id(operation.singular, text, operation.missing_code)
