"""What was large is given back to the system as soon as it is free, whatever was large before."""

import subprocess
import sys

import pytest

_COUNT = """
import ctypes, sys
from trellis.cli.limits import keep_heap_small

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "free", "fast", "mapped", "in_maps", "a", "b", "used", "unused", "c")]

library = ctypes.CDLL(None)
if not hasattr(library, "mallinfo2"):
    sys.exit(77)
library.mallinfo2.restype = Counts
if sys.argv[1] == "set":
    keep_heap_small()
first = bytes(16_000_000)
del first
before = library.mallinfo2().mapped
held = [bytes(400_000) for _ in range(10)]
print(library.mallinfo2().mapped - before)
"""


@pytest.mark.parametrize(("how", "is_mapped"), [("set", True), ("as usual", False)])
def test_large_pieces_stay_out_of_the_heap_after_one_that_was_larger(how: str, *, is_mapped: bool) -> None:
    ran = subprocess.run([sys.executable, "-c", _COUNT, how], capture_output=True, text=True, check=False)
    if ran.returncode == 77:
        pytest.skip("another C library")
    assert ran.stderr == ""
    assert (int(ran.stdout) > 5) is is_mapped  # one or two may fit into a hole that is there already
