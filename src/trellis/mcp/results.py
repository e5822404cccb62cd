"""The results of tool calls and of reading resources, encoded."""

from http import HTTPStatus
from typing import Any, Final

from trellis import __version__
from trellis.core.gate import Result
from trellis.core.operation import RawText
from trellis.core.verbs import Verb
from trellis.core.version import compute_tag, encode_json, encode_large
from trellis.errors import Refused
from trellis.http.api import CachedResponse
from trellis.sentences import say

MOST_BYTES: Final = 8 * 2**20  # of the result of a tool that reads
PRIVATE: Final = "private"  # nothing is the same for all keys
LISTS_LAST: Final = 60_000  # milliseconds for which a client may keep lists
SERVER: Final = {"name": "trellis", "version": __version__}
_META: Final = {"io.modelcontextprotocol/serverInfo": SERVER}


def encode_complete(members: dict[str, Any], **meta: Any) -> bytes:
    """Return a complete result with these members."""
    return encode_json({**members, "resultType": "complete", "_meta": _META | {f"trellis/{name}": at for name, at in meta.items()}})


def encode_cacheable(members: dict[str, Any], milliseconds: int) -> bytes:
    """Return a result that a client may keep for so many milliseconds."""
    return encode_complete({**members, "ttlMs": milliseconds, "cacheScope": PRIVATE})


def encode_read(value: Any) -> CachedResponse:
    """Return the result of a tool that reads, with the version of what it returns. Raises Refused (PAGE_TOO_LARGE)."""
    if isinstance(value, RawText):
        _check_size(len(value.text.encode()))
        return CachedResponse(_encode(value.text, b"", {}), b"")
    body = encode_json(value)
    _check_size(len(body))
    version = compute_tag(value, body)
    return CachedResponse(_encode(body.decode(), body, {"etag": version}), version.encode())


def encode_resource(uri: str, media_type: str, value: Any) -> CachedResponse:
    """Return the contents of a resource that an operation has read. Raises Refused (PAGE_TOO_LARGE)."""
    body = encode_json(value)
    _check_size(len(body))
    return CachedResponse(encode_contents(uri, media_type, body.decode(), 0), b"")


def _check_size(size: int) -> None:
    """Refuse a result that is too large. The response contains it twice, once as text in JSON."""
    if size > MOST_BYTES:
        detail = say(
            "The result has more than {mib} MiB. Ask for less at once: with a smaller perPage, limit or depth, or for a part with "
            "under.",
            mib=MOST_BYTES >> 20,
        )
        raise Refused("PAGE_TOO_LARGE", detail)


def encode_write(verb: Verb, result: Result) -> bytes:
    """Return the result of a tool that writes: the value, and notes about it, for programs and in words.

    `verb` is the verb that was carried out. If the call waits for somebody's approval, its status is 202, and the value is the
    proposal.
    """
    body = encode_large(result.value)
    meta: dict[str, Any] = {}
    notes: list[str] = []
    if verb.status == HTTPStatus.ACCEPTED:
        meta["proposal"] = result.value["id"]
        notes.append(verb.answer)
    if result.dry:
        meta["dryRun"] = True
        notes.append("Dry run: nothing has changed.")
    elif verb.etag:
        meta["etag"] = compute_tag(result.value, body)
    if result.event is not None:
        meta["event"] = result.event
        notes.append(f"Recorded as event {result.event}.")
    if result.change_set is not None:
        meta["changeSet"] = result.change_set
        notes.append(f"Change set {result.change_set}.")
    if result.replayed:
        meta["replayed"] = True
        notes.append("This is the result of the first call with this idempotency key.")
    return _encode(body.decode(), body if isinstance(result.value, dict) else b"", meta, notes)


def encode_refusal(problem: bytes, *, has_schema: bool) -> bytes:
    """Return the result of a tool call that was refused, with the problem document.

    The document is structured content, too, unless the tool has an output schema: it does not fit that, and clients would report
    only that.
    """
    return _encode(problem.decode(), b"" if has_schema else problem, {}, error=True)


def encode_contents(uri: str, media_type: str, text: str, milliseconds: int) -> bytes:
    """Return the contents of a resource."""
    return encode_cacheable({"contents": [{"uri": uri, "mimeType": media_type, "text": text}]}, milliseconds)


def _encode(text: str, structured: bytes, meta: dict[str, Any], notes: list[str] | None = None, *, error: bool = False) -> bytes:
    """Return the result of a tool. `structured` is encoded already, and is inserted as it is."""
    content = encode_json([{"type": "text", "text": one} for one in (text, *(notes or ()))])
    told = b',"structuredContent":%b' % structured if structured else b""
    failed = b',"isError":true' if error else b""
    return b'{"content":%b%b%b,%b' % (content, told, failed, encode_complete({}, **meta)[1:])
