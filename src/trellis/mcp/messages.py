"""Reads and encodes the JSON-RPC messages of MCP, checks their headers against them, and defines the errors of the protocol.

The requirements of the specification of 2026-07-28 are on its pages on Streamable HTTP and on versioning.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields import MAX_ID, parse_json
from trellis.core.version import encode_json

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18")  # versions whose clients begin with `initialize`
SUPPORTED: Final = (MODERN, *LEGACY)
INITIALIZE: Final = "initialize"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
_STATUSES: Final[Mapping[int, int]] = {METHOD_NOT_FOUND: 404}  # of errors in the protocol of 2026-07-28; others are 400

_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
_LONGEST_ID: Final = 255
_BEGIN, _END = b"=?base64?", b"?="


class ProtocolError(Exception):
    """A request that the protocol does not allow, as a JSON-RPC error. `status` is the HTTP status."""

    def __init__(self, code: int, message: str, data: Any = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status or _STATUSES.get(code, 400)


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification, whose `id` is None. `modern` means that it follows the protocol of 2026-07-28."""

    id: str | int | None
    method: str
    params: Mapping[str, Any]
    meta: Mapping[str, Any]
    modern: bool = False

    @property
    def is_notification(self) -> bool:
        """Whether nobody waits for a response."""
        return self.id is None


def read_message(body: bytes) -> Message:
    """Read the body of a request. Raises ProtocolError."""
    try:
        sent = parse_json(body.decode())
    except UnicodeError:
        raise ProtocolError(PARSE_ERROR, "The body is not valid UTF-8.") from None
    except ValueError as error:
        raise ProtocolError(PARSE_ERROR, f"The body is not valid JSON: {error}.") from None
    if isinstance(sent, list):
        raise ProtocolError(
            INVALID_REQUEST, "Send one message at a time: the protocol has no batches. The tool core.batch does more."
        )
    if not isinstance(sent, dict) or sent.get("jsonrpc") != "2.0" or not isinstance(sent.get("method"), str):
        raise ProtocolError(INVALID_REQUEST, 'The body must be a JSON-RPC request: an object with "jsonrpc": "2.0" and a method.')
    name = sent.get("id")
    if "id" in sent and not _is_id(name):
        raise ProtocolError(
            INVALID_REQUEST, f"The id of a request must be an integer, or a string of at most {_LONGEST_ID} characters."
        )
    params = find_object(sent, "params", INVALID_REQUEST)
    meta = find_object(params, "_meta", INVALID_PARAMS)
    return Message(name, sent["method"], params, meta, modern=_VERSION in meta)


def find_object(members: Mapping[str, Any], name: str, error: int = INVALID_PARAMS) -> Mapping[str, Any]:
    """Return an object; {} if it is left out or null, as the types of the official clients allow. Raises ProtocolError."""
    found = members.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ProtocolError(error, f"{name} must be an object.")
    return found


def _is_id(name: Any) -> bool:
    if isinstance(name, str):
        return len(name) <= _LONGEST_ID
    return isinstance(name, int) and not isinstance(name, bool) and abs(name) <= MAX_ID


def check_headers(message: Message, headers: Mapping[bytes, bytes]) -> None:
    """Raise ProtocolError if headers are missing, contradict the message, or name a version that is not supported."""
    sent = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
    if not message.modern and sent != MODERN:
        if sent and sent not in LEGACY:
            raise _refuse_version(sent)
        if not sent and not message.is_notification and message.method != INITIALIZE:
            raise ProtocolError(HEADER_MISMATCH, f"The header MCP-Protocol-Version is needed: one of {', '.join(SUPPORTED)}.")
    elif not message.is_notification:
        _check_modern(message, headers, sent)


def _check_modern(message: Message, headers: Mapping[bytes, bytes], sent: str) -> None:
    if missing := [name for name in (_VERSION, _CAPABILITIES) if name not in message.meta]:
        raise ProtocolError(INVALID_PARAMS, f"params._meta must have {' and '.join(missing)}.")
    version = message.meta[_VERSION]
    _compare("MCP-Protocol-Version", sent, version)
    if version != MODERN:
        raise _refuse_version(version)
    _compare("Mcp-Method", headers.get(b"mcp-method", b"").decode("latin-1"), message.method)
    if (member := _NAMED_BY.get(message.method)) is not None:
        _compare("Mcp-Name", decode_name(headers.get(b"mcp-name", b"")), message.params.get(member))


def decode_name(sent: bytes) -> str | None:
    """Read the header Mcp-Name, which may be encoded as `=?base64?…?=`; None if it cannot be read."""
    try:
        if sent.startswith(_BEGIN) and sent.endswith(_END):
            return base64.b64decode(sent[len(_BEGIN) : -len(_END)], validate=True).decode()
        return sent.decode("ascii")
    except (UnicodeError, binascii.Error):
        return None


def _compare(header: str, sent: str | None, meant: Any) -> None:
    if sent != meant:
        raise ProtocolError(HEADER_MISMATCH, f"The header {header} does not say what the body says, or is missing.")


def _refuse_version(version: Any) -> ProtocolError:
    data = {"supported": list(SUPPORTED), "requested": str(version)[:64]}
    return ProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def encode_result(message: Message, result: bytes) -> bytes:
    """Return the response to a request, whose result is encoded already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_json(message.id), result)


def encode_error(message: Message | None, code: int, text: str, data: Any = None) -> bytes:
    """Return the error response to a request; `message` is None if the request could not be read."""
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return encode_json({"jsonrpc": "2.0", "id": None if message is None else message.id, "error": error})
