"""The parts that REST and MCP, the interfaces for keys, share: identification, rate limits, reading, writing, caching, logging."""

from trellis.http.api.cache import CachedResponse, Name
from trellis.http.api.calls import build_read, build_write, encode_written, may_be_larger, receive_body, require_size
from trellis.http.api.counts import BOUNDS, RequestCounts
from trellis.http.api.headers import accept_request_id, is_not_modified
from trellis.http.api.identify import extract_key
from trellis.http.api.options import refuse_method, respond_to_options, respond_to_preflight
from trellis.http.api.rate_limits import Allowance
from trellis.http.api.request import (
    PAGE,
    PAGE_REFUSAL,
    REQUEST,
    ApiRequest,
    ApiResponse,
    Headers,
    build_headers,
)
from trellis.http.api.request_log import RequestLog
from trellis.http.api.service import Service, require_bearer
