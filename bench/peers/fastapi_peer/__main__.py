"""Serves it on the settings of `trellis serve`."""

from bench.peers.fastapi_peer.app import app
from bench.peers.serving import serve

if __name__ == "__main__":
    serve(app)
