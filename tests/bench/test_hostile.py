"""Requests that nobody should send: each is answered, none with an error of the service's own, and the community stays sound."""

import asyncio

from bench.hostile import Maker, attack, read_targets
from tests.api_fixtures import MakeService, serve
from tests.community import Community
from tests.fixture_types import MakeKey, Run

__all__ = ["serve"]

REQUESTS = 300


def test_no_request_fails_the_service_or_hangs(serve: MakeService, key: MakeKey, run: Run, community: Community) -> None:
    service = serve(rate_limit=0, bad_key_limit=1_000_000)
    targets = read_targets(service.client.get("openapi.json").json())
    keys = (key("*", rateLimit=0), key("*.list", rateLimit=0))
    found = asyncio.run(attack("127.0.0.1", service.port, Maker(1, targets, f"127.0.0.1:{service.port}", keys), REQUESTS))
    assert found.wrong == []
    assert found.sent == sum(found.statuses.values()) + found.closed >= REQUESTS
    assert found.statuses.keys() >= {200, 201, 204, 400, 401, 403, 404, 405, 415}
    assert service.call("POST", "/forums/forums", keys[0], json={"name": "Afterwards"}).status_code == 201
    assert run("check.list")["problems"] == []
    assert service.terminate() == 0
    assert "Traceback" not in service.output
