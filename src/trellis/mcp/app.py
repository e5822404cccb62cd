"""The MCP endpoint: each message is a POST that is answered with JSON, and no state is kept between messages."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property, partial
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from trellis.core.actor import Actor
from trellis.core.fields import quote
from trellis.core.gate import Result
from trellis.core.keys import redact_beginning
from trellis.core.operation import Call, Operation
from trellis.errors import Refused
from trellis.http.api import (
    ApiRequest,
    ApiResponse,
    CachedResponse,
    Service,
    build_read,
    build_write,
    encode_written,
    may_be_larger,
    receive_body,
    refuse_method,
    require_bearer,
    require_size,
    respond_to_options,
)
from trellis.http.asgi import Receive, Scope, Send
from trellis.http.large import run_by_size
from trellis.http.problems import encode_problem_headers, format_problem
from trellis.mcp import results
from trellis.mcp.arguments import encode_arguments, summarize_arguments, take_target
from trellis.mcp.guide import INSTRUCTIONS
from trellis.mcp.messages import (
    INITIALIZE,
    INVALID_PARAMS,
    LEGACY,
    METHOD_NOT_FOUND,
    SUPPORTED,
    Message,
    ProtocolError,
    check_headers,
    decode_name,
    encode_error,
    encode_result,
    find_object,
    read_message,
)
from trellis.mcp.resources import Resource, Resources
from trellis.mcp.schemas import build_output_schema
from trellis.mcp.tools import Tools
from trellis.sentences import say
from trellis.settings import is_this_machine

PREFIX: Final = "/mcp"
_METHODS: Final = ("POST",)
_CAPABILITIES: Final[Mapping[str, Mapping[str, Any]]] = {"tools": {}, "resources": {}}
_HEADERS: Final[Mapping[str, bytes]] = {  # members of a call's `_meta`, and the headers that have these values over REST
    "trellis/idempotencyKey": b"idempotency-key",
    "trellis/ifMatch": b"if-match",
    "trellis/changeSet": b"change-set",
    "trellis/reason": b"x-audit-log-reason",
}
_OK: Final = 200
_ACCEPTED: Final = 202


class Mcp:
    """The endpoint.

    Checks are made in this order: origin, address throttle, key, rate limit, body, protocol, tool, grant, arguments.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.gate = service.gate
        self.settings = service.settings
        self.tools = Tools(self.gate)
        self.resources = Resources(self.gate)
        self._answers: Mapping[str, Callable[[Message, Actor], bytes]] = {
            "server/discover": self._discover,
            INITIALIZE: self._initialize,
            "ping": lambda _, __: results.encode_complete({}),
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": lambda _, __: results.encode_cacheable({"resourceTemplates": []}, results.LISTS_LAST),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send, malformed: str = "") -> None:
        """Answer a request, or refuse it if `malformed` says how it violates HTTP."""
        request = self.service.read_request(scope, receive, PREFIX)
        request.path = ""  # a slash at the end means nothing
        await self.service.answer(request, send, self._respond(request, malformed), _refuse)

    async def _respond(self, request: ApiRequest, malformed: str) -> ApiResponse:
        if malformed:
            raise Refused("MALFORMED_REQUEST", malformed)
        self._check_origin(request)
        if request.method == "OPTIONS":
            return respond_to_options(_METHODS, cors=bool(self.settings.cors_origins))
        await self.service.admit(request)
        if request.method not in _METHODS:
            raise refuse_method(request.method, _METHODS)
        _check_type(request)
        limit = self.settings.body_limit
        if not may_be_larger(request, limit):
            return await self._receive(request, limit)
        most = max(limit, self._find_most_bytes(request))
        with self.service.large.hold(request.caller, large=most > limit):
            return await self._receive(request, most)

    def _find_most_bytes(self, request: ApiRequest) -> int:
        """Return the most bytes that the body of a request may have; 0 means no more than usual.

        Older clients name the tool only in the body, so that it may be any tool. A body that comes in parts gets no more room,
        since small bodies may come in parts, too.
        """
        if request.headers.get(b"mcp-protocol-version", b"").decode("latin-1") in LEGACY:
            return self.tools.most_bytes if b"content-length" in request.headers else 0
        tool = self.tools.find(decode_name(request.headers.get(b"mcp-name", b"")))
        return 0 if tool is None else tool.most_bytes

    async def _receive(self, request: ApiRequest, limit: int) -> ApiResponse:
        """Receive the message of a request, and answer it."""
        body = await receive_body(request, limit)
        async with self.service.large.take_turn(len(body)):
            return await self._answer_body(request, body)

    async def _answer_body(self, request: ApiRequest, body: bytes) -> ApiResponse:
        message: Message | None = None
        try:
            message = await run_by_size(len(body), read_message, body)
            check_headers(message, request.headers)
        except ProtocolError as error:
            return _respond_to_error(request, message, error, error.status)
        try:
            return await self._answer(request, message, len(body))
        except ProtocolError as error:  # older clients take other statuses for a broken connection or an ended session
            return _respond_to_error(request, message, error, error.status if message.modern else _OK)

    def _check_origin(self, request: ApiRequest) -> None:
        """Refuse requests from pages of other origins in a browser, whose names may lead here (DNS rebinding)."""
        origin = request.headers.get(b"origin")
        if origin is None or self.service.find_allowed_origin(request) is not None:
            return
        sent = origin.decode("latin-1")
        base = urlsplit(request.base)
        if sent == f"{base.scheme}://{base.netloc}" and (self.settings.public_url is not None or is_this_machine(request.base)):
            return
        raise Refused(
            "ORIGIN_NOT_ALLOWED", say("Pages from {told} may not send requests to {prefix}.", told=quote(sent), prefix=PREFIX)
        )

    # --- methods ------------------------------------------------------------------------------------------------------

    async def _answer(self, request: ApiRequest, message: Message, size: int) -> ApiResponse:
        request.details = f" {redact_beginning(message.method, 64)}"
        if message.is_notification:
            return ApiResponse(_ACCEPTED)
        actor = require_bearer(request).agent
        if message.method == "tools/call":
            return ApiResponse(_OK, encode_result(message, await self._call_tool(request, message, actor, size)))
        if message.method == "resources/read":
            result = await self._read_resource(request, message, actor)
        elif (answer := self._answers.get(message.method)) is not None:
            result = answer(message, actor)
        else:
            raise ProtocolError(METHOD_NOT_FOUND, f"There is no method {quote(message.method)}.")
        body = encode_result(message, result)
        self.service.under_way.admit(request.caller, body)
        return ApiResponse(_OK, body)

    def _discover(self, _: Message, __: Actor) -> bytes:
        result = {"supportedVersions": SUPPORTED, "capabilities": _CAPABILITIES, "instructions": INSTRUCTIONS}
        return results.encode_cacheable(result, results.LISTS_LAST)

    def _initialize(self, message: Message, _: Actor) -> bytes:
        wanted = message.params.get("protocolVersion")
        result = {"protocolVersion": wanted if wanted in LEGACY else LEGACY[0], "capabilities": _CAPABILITIES}
        return results.encode_complete({**result, "serverInfo": results.SERVER, "instructions": INSTRUCTIONS})

    def _list_tools(self, _: Message, actor: Actor) -> bytes:
        return results.encode_cacheable({"tools": orjson.Fragment(self.tools.encode(actor))}, results.LISTS_LAST)

    def _list_resources(self, _: Message, actor: Actor) -> bytes:
        found = [one.describe() for one in self.resources.find_granted(actor)]
        return results.encode_cacheable({"resources": found}, results.LISTS_LAST)

    async def _read_resource(self, request: ApiRequest, message: Message, actor: Actor) -> bytes:
        uri = message.params.get("uri")
        resource = self.resources.find(actor, uri)
        if resource is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no resource {quote(uri)}, or the key may not read it.")
        request.details += f" {resource.uri}"
        if not resource.operation:
            return results.encode_contents(resource.uri, resource.media_type, resource.text, results.LISTS_LAST)
        operation = self.gate.catalogue.find(resource.operation)
        request.operation = operation.name
        try:
            return (await self._read(request, operation, None, resource.arguments, 0, resource)).body
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets an error with the id of its message
            await self.service.take_back(request)
            raise self._fail(request, raised) from None

    def _fail(self, request: ApiRequest, raised: Exception) -> ProtocolError:
        """Return the error of the protocol that reports an exception."""
        refused = self.service.explain(request, raised)
        problem = format_problem(refused, request.base, request.request_id)
        return ProtocolError(refused.status, refused.detail, orjson.Fragment(problem), refused.status)

    # --- tools --------------------------------------------------------------------------------------------------------

    async def _call_tool(self, request: ApiRequest, message: Message, actor: Actor, size: int) -> bytes:
        name, arguments = message.params.get("name"), find_object(message.params, "arguments")
        operation = self.tools.find(name)
        if operation is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {quote(name)}")
        request.operation = operation.name
        request.headers = _take_meta(message.meta, request.headers)
        if require_bearer(request).log_requests:
            request.details = f" {operation.name} {await run_by_size(size, self._summarize, arguments)}".rstrip()
        try:
            require_size(size, max(self.settings.body_limit, operation.most_bytes))
            self.gate.authorise(operation.name, actor)  # before any error reveals what exists
            target, given = take_target(operation, arguments)
            if operation.writes:
                return await self._write(request, operation, actor, target, given, size)
            read = await self._read(request, operation, target, given, size)
            self.service.under_way.admit(request.caller, read.body)  # not the result of a write, which is done
            return read.body
        except Exception as raised:  # noqa: BLE001  # whatever it was, the caller gets a result
            await self.service.take_back(request)
            refused = self.service.explain(request, raised)
            problem = format_problem(refused, request.base, request.request_id)
            request.outcome = (refused.status, refused.code)
            return results.encode_refusal(problem, has_schema=build_output_schema(operation) is not None)

    @cached_property
    def _secrets(self) -> frozenset[str]:
        """The names under which any of the operations takes a password."""
        return frozenset(name for operation in self.gate.catalogue.values() for name in operation.secrets)

    def _summarize(self, arguments: Mapping[str, Any]) -> str:
        return summarize_arguments(arguments, self._secrets)

    async def _read(
        self,
        request: ApiRequest,
        operation: Operation,
        target: int | None,
        given: Mapping[str, Any],
        size: int,
        resource: Resource | None = None,
    ) -> CachedResponse:
        """Run an operation that reads, with arguments of about so many bytes; return the result of its tool, or the resource."""
        call = build_read(request, operation, require_bearer(request).agent, target, given)
        sent = await run_by_size(size, encode_arguments, target, given)
        path = operation.name if resource is None else resource.uri
        name = f"{PREFIX} {path}", sent, *request.name[2:]  # and what else it depends on: base URL, view
        slow = operation.slow or operation.slow_with in given
        run = partial(self._run_read, request, call, resource)
        return await self.service.read(request, operation, name, run, slow=slow, size=len(sent))

    def _run_read(self, request: ApiRequest, call: Call, resource: Resource | None) -> CachedResponse:
        result = self.gate.run(call)
        request.uses += result.uses
        value = result.value
        return results.encode_read(value) if resource is None else results.encode_resource(resource.uri, resource.media_type, value)

    async def _write(
        self, request: ApiRequest, operation: Operation, actor: Actor, target: int | None, given: Mapping[str, Any], size: int
    ) -> bytes:
        operation = await self.service.find_write(request, operation, actor, target)
        result = await self.service.write(request, size, partial(self._submit, request, operation, actor, target, given))
        if (verb := result.verb or operation.verb) is None:
            raise LookupError(f"{operation.name} has no verb")
        return await encode_written(request, verb, results.encode_write, verb, result)

    def _submit(
        self, request: ApiRequest, operation: Operation, actor: Actor, target: int | None, given: Mapping[str, Any]
    ) -> Future[Result]:
        return self.gate.submit(build_write(request, operation, actor, target, given))


def _respond_to_error(request: ApiRequest, message: Message | None, error: ProtocolError, status: int) -> ApiResponse:
    request.outcome = (error.status, str(error.code))
    return ApiResponse(status, encode_error(message, error.code, error.message, error.data))


def _check_type(request: ApiRequest) -> None:
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused(
            "UNSUPPORTED_MEDIA_TYPE",
            say("Send Content-Type: application/json, not {type}.", type=quote(kind.decode("latin-1"))),
        )


def _take_meta(meta: Mapping[str, Any], headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """Return the headers, replaced by the values in the call's `_meta` where it has them. Raises ProtocolError."""
    members = {name: meta[name] for name in _HEADERS if name in meta}
    if not members:
        return headers
    if not all(isinstance(value, str) for value in members.values()):
        raise ProtocolError(INVALID_PARAMS, f"In params._meta, {' and '.join(members)} must be text.")
    sent = {_HEADERS[name]: value.encode() for name, value in members.items()}
    version = meta.get("trellis/ifMatch")
    if version is not None and not version.endswith('"') and version != "*":
        sent[_HEADERS["trellis/ifMatch"]] = f'"{version}"'.encode()
    return {**headers, **sent}


def _refuse(request: ApiRequest, refused: Refused) -> tuple[ApiResponse, str]:
    """Return the response to a request that was refused before its message was read, and the code of the error."""
    problem = format_problem(refused, request.base, request.request_id)
    body = encode_error(None, refused.status, refused.detail, orjson.Fragment(problem))
    return ApiResponse(refused.status, body, encode_problem_headers(refused)), refused.code
