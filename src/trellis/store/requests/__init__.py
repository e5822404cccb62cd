"""The request log: requests to the API, and how often keys use each operation.

`append` writes a batch, `search` and the `find_…` functions read, and the `count_…` functions count. `purge` deletes expired rows,
and `trim` the oldest rows of a log that is too large. Requests without a valid key are counted by address and minute
(`append_keyless`, `search_keyless`), and only a few of them are logged.
"""

from trellis.store.requests.keyless import KeylessCount, append_keyless, purge_keyless, search_keyless
from trellis.store.requests.log import append, purge
from trellis.store.requests.request import Request
from trellis.store.requests.searching import (
    LoggedRequest,
    LogPosition,
    estimate_count,
    find,
    find_all_by_request_id,
    find_by_request_id,
    search,
)
from trellis.store.requests.size import check_size, repair_size, trim
from trellis.store.requests.uses import OperationUse, count_by_hour, count_uses, read_quarters
