"""Requests with bodies larger than usual: each takes much memory, so that few are in progress at a time, whoever sends them."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Future

import httpx
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.fixture_types import MakeKey, Run
from tests.wait import wait_in_loop_until
from trellis.core.gate import Result
from trellis.core.operation import Call


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


def test_heavy_bodies_of_all_keys_are_read_one_at_a_time(
    api: ApiClient, key: MakeKey, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they are parsed to is in memory until the write has ended. Small ones do not wait."""
    top = run("forums.create", name="News")["id"]
    submit, goes_on, begun = api.application.gate.submit, threading.Event(), list[int]()

    def wait(call: Call) -> Future[Result]:
        begun.append(len(call.raw.get("description", "")))
        assert begun[-1] < 1000 or goes_on.wait(60)
        return submit(call)

    keys = [key("forums.update") for _ in range(4)]
    monkeypatch.setattr(api.application.gate, "submit", wait)

    async def send_all() -> list[int]:
        heavy = [
            asyncio.create_task(api.sending("POST", f"/forums/forums/{top}", key=one, json={"description": " " * 300_000}))
            for one in keys
        ]
        await wait_in_loop_until(lambda: begun)
        small = await api.sending("POST", f"/forums/forums/{top}", key=keys[0], json={"description": "<p>Few words.</p>"})
        seen = len(begun)
        goes_on.set()
        return [seen, small.status_code, *(answer.status_code for answer in await asyncio.gather(*heavy))]

    seen, small, *heavy = api.do(send_all())
    assert seen == 2, "the first heavy one and the small one"
    assert small == 200
    assert set(heavy) <= {200, 400}
    assert len(begun) == 5


def test_reads_that_may_be_long_share_two_threads(api: ApiClient, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree or an export may take 250 MiB while it is read and encoded."""
    run("forums.create", name="News")
    where, read = set[str](), api.application.gate.run

    def note_thread(call: Call) -> Result:
        where.add(threading.current_thread().name.rpartition("_")[0])
        return read(call)

    monkeypatch.setattr(api.application.gate, "run", note_thread)
    asked = [api.sending("GET", path) for path in ("/forums/forums/tree", "/core/structure", "/forums/forums/tree?depth=2") * 3]
    assert {answer.status_code for answer in api.together(*asked)} == {200}
    assert where == {"trellis-long"}
