"""The limit of reading: an ASGI application that does nothing but answer, with `--bytes` as many bytes as it is told."""

import argparse
from typing import Any

from bench.peers.serving import serve

HELLO = b'{"hello":"world"}'


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
    parser.add_argument("--bytes", type=int, default=len(HELLO), help="the size of the body")
    wanted = parser.parse_args().bytes
    serve(hello(HELLO if wanted == len(HELLO) else b'"' + b"." * (wanted - 2) + b'"'))


if __name__ == "__main__":
    main()
