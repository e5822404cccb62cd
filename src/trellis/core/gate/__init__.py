"""The gate, through which every interface runs its operations; see gate.py for the few exceptions.

`gate.py` has the order of things around a transaction, `calls.py` what happens inside it, `ahead.py` what is prepared before it.
"""

from trellis.core.gate.gate import Gate, Result
