"""Serves a peer on the settings of `trellis serve`: uvicorn, uvloop, httptools, no access log, one process."""

import socket
from typing import Any

import uvicorn

BACKLOG = 2048


def serve(app: Any, *, lifespan: bool = False) -> None:
    """Serve on a free port of this machine, and print the address; end with SIGTERM."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    print(f"Address: http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        interface="asgi3",
        lifespan="on" if lifespan else "off",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        log_level="warning",
    )
    uvicorn.Server(config).run(sockets=[listener])
