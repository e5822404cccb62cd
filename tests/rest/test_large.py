"""Requests with bodies larger than usual: each takes much memory, so that few are in progress at a time, whoever sends them."""

import asyncio
from collections.abc import AsyncIterator

import httpx

from tests.api_client import ApiClient, read_refusal
from tests.fixture_types import MakeKey


def test_large_requests_of_all_keys_together_are_few(api: ApiClient, key: MakeKey) -> None:
    keys = [key("structure.plan") for _ in range(4)]
    goes_on = asyncio.Event()
    refused: list[httpx.Response] = []

    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await goes_on.wait()
        yield b"}"

    async def send(one: str) -> int:
        answer = await api.sending(
            "POST", "/core/structure/plan", key=one, content=body(), headers={"Content-Type": "application/json"}
        )
        if answer.status_code == 503:
            refused.append(answer)
        if len(refused) == 2:
            goes_on.set()
        return answer.status_code

    async def send_all() -> list[int]:
        async with asyncio.timeout(30):
            return await asyncio.gather(*(send(one) for one in keys for _ in range(2)))

    assert sorted(api.do(send_all())) == [400] * 6 + [503] * 2
    for answer in refused:
        assert "6 large requests are already in progress" in read_refusal(answer, 503, "BUSY")["detail"]
    assert api.post("/core/structure/plan", {}).status_code == 400, "there is room again"
