"""What becomes of writes that the service does not wait for any longer when it stops."""

import asyncio
import threading
from typing import Any

import httpx
import pytest

from tests.api_client import ApiClient
from tests.wait import wait_in_loop_until
from trellis.store.engine import Transaction


def test_a_write_whose_commit_hangs_is_answered_before_the_process_ends(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server cancels what is left after 30 seconds. By itself it would answer 500, and log a traceback."""
    store = api.application.gate.store
    hangs, goes_on, commit = threading.Event(), threading.Event(), store.writer._commit

    def commit_slowly(tx: Transaction) -> None:
        hangs.set()
        goes_on.wait()
        commit(tx)

    async def cancel(*asked: "asyncio.Future[httpx.Response]") -> list[httpx.Response]:
        for one in asked:
            one.cancel()
        return await asyncio.gather(*asked)

    async def run() -> list[Any]:
        begun = asyncio.ensure_future(api.sending("POST", "/forums/forums", json={"name": "Begun"}))
        await asyncio.to_thread(hangs.wait)
        waits = asyncio.ensure_future(api.sending("POST", "/forums/forums", json={"name": "Waits"}))
        await wait_in_loop_until(lambda: store.writer.waiting == 1)
        try:
            return await cancel(begun, waits)
        finally:
            goes_on.set()

    monkeypatch.setattr(store.writer, "_commit", commit_slowly)
    begun, waits = api.do(run())
    assert [(one.status_code, one.json()["errorMessage"]) for one in (begun, waits)] == [(503, "BUSY"), (503, "BUSY")]
    assert "stopping before this write has ended, so it may have been made" in begun.json()["detail"]
    assert waits.json()["detail"] == "The service is stopping. Nothing was changed; try again in a moment."
    assert store.write(lambda _tx: True).result()
    assert [forum["name"] for forum in api.get("/forums/forums").json()["results"]] == ["Begun"]
