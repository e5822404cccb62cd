"""No header, however long and whatever is in it, makes a request take much memory or fail, at any door and without a key."""

from typing import Final

import pytest

from tests.api_fixtures import MakeApiClient
from tests.loop_meter import send_request
from tests.memory_meter import MemoryMeter

SIZE: Final = 60_000  # bytes; a head has at most 65,536
MOST: Final = 16 * 2**20  # bytes that a request may take at its peak
DOORS: Final = ("/admin/sign-in", "/api/forums/forums", "/mcp", "/api/docs", "/nowhere")
NAMES: Final = (
    *("accept", "accept-encoding", "accept-language", "authorization", "content-type", "cookie", "forwarded", "if-match"),
    *("if-none-match", "origin", "range", "referer", "sec-fetch-site", "traceparent", "user-agent", "x-api-key", "x-csrf-token"),
    *("x-forwarded-for", "x-request-id"),
)
PARTS: Final = ("a-b-", "a,", "a=1; ", '"a",', "W/", "a;q=0.1,", "bytes=0-1,", "((", "/*")


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("door", DOORS)
def test_no_header_takes_much(make_api: MakeApiClient, door: str) -> None:
    api = make_api()
    api.do(send_request(api.application, "GET", door, {}))  # reads what is read once
    for name in NAMES:
        for part in PARTS:
            text = (part * SIZE)[:SIZE]
            with MemoryMeter() as meter:
                status, _ = api.do(send_request(api.application, "GET", door, {name: text}))
            assert status < 500, (name, part)
            assert meter.peak < MOST, (name, part, meter.peak)
