"""More writes than a service can take: each is answered, well or with 503, and afterwards all is as before."""

import asyncio

from bench.overload import MOST, Load
from tests.api_fixtures import MakeService, serve
from tests.fixture_types import MakeKey

__all__ = ["serve"]


def test_every_write_is_answered_well_or_refused_and_the_service_recovers(serve: MakeService, key: MakeKey) -> None:
    service = serve(write_queue=10, rate_limit=0, connections=2 * MOST + 200)
    load = Load("127.0.0.1", service.port, key("*"))
    tally, _ = asyncio.run(load.open_loop(rate=3000, seconds=0.5))
    assert tally.statuses.keys() == {201, 503}
    assert tally.lost == 0
    assert sum(tally.statuses.values()) == tally.sent
    listed = service.call("GET", "/forums/forums?perPage=1", load.key).json()["totalResults"]
    assert listed == tally.answered_well, "what was refused was not begun, and what was done was said to be"
    assert service.call("POST", "/forums/forums", load.key, json={"name": "Afterwards"}).status_code == 201
