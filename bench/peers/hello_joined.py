"""The same limit with trellis's own way of writing: head and body of an answer in one system call."""

from bench.peers.hello import HELLO, hello
from bench.peers.serving import serve
from trellis.cli.wire import TrellisProtocol

if __name__ == "__main__":
    serve(hello(HELLO), http=TrellisProtocol)
