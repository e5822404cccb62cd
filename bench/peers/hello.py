"""The limit of reading: an ASGI application that does nothing but answer, with `--bytes` as many bytes as it is told."""

import argparse
from typing import Any

from bench.peers.serving import serve
from trellis.cli.wire import JoiningProtocol

_HELLO = b'{"hello":"world"}'


def hello(body: bytes) -> Any:
    """Make the application that answers with this body."""
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())],
    }
    rest = {"type": "http.response.body", "body": body}

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(start)
        await send(rest)

    return app


def main() -> None:
    """Serve it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=len(_HELLO), help="the size of the body")
    parser.add_argument("--joined", action="store_true", help="write head and body at once, as trellis does")
    given = parser.parse_args()
    body = _HELLO if given.bytes == len(_HELLO) else b'"' + b"." * (given.bytes - 2) + b'"'
    serve(hello(body), http=JoiningProtocol if given.joined else "httptools")


if __name__ == "__main__":
    main()
