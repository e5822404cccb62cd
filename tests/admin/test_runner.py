"""The panel's writes, while they wait for their turn, and its long reads."""

import asyncio
import threading
from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.admin.runner import Runner
from trellis.admin.submitted import find_status
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.idempotency import refuse_running
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.engine import Transaction


def test_a_write_whose_client_has_gone_is_not_begun(gate: Gate, settings: Settings, run: Run) -> None:
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    runner = Runner(gate, settings).serving(gone)
    done = threading.Event()
    held = gate.store.write(lambda _: done.wait(60))
    with pytest.raises(Refused, match=r"^BUSY"):
        asyncio.run(runner.perform(Call("forums.create", TERMINAL, {"name": "News"})))
    done.set()
    assert held.result(60)
    assert run("forums.list")["totalResults"] == 0


def test_a_write_whose_client_waits_is_done(gate: Gate, settings: Settings, run: Run) -> None:
    async def stays() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    runner = Runner(gate, settings).serving(stays)
    asyncio.run(runner.perform(Call("forums.create", TERMINAL, {"name": "News"})))
    assert run("forums.list")["totalResults"] == 1


def test_a_form_sent_again_while_the_first_one_still_runs_is_told_so(
    gate: Gate, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the words that programs get, who are told about a header of theirs."""

    def refuse(_: Call) -> Any:
        raise refuse_running()

    monkeypatch.setattr(gate, "submit", refuse)
    call = Call("forums.create", TERMINAL, {"name": "News"}, token="panel/once", fingerprint="of the form")
    with pytest.raises(Refused) as refused:
        asyncio.run(Runner(gate, settings).perform_once(call, size=0))
    assert refused.value.detail == "This form is still being processed. Wait a moment, then send it again."
    assert find_status(refused.value) == 409
    assert run("forums.list")["totalResults"] == 0


def test_checks_that_are_asked_for_together_are_one(
    gate: Gate, settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reads every row: whoever may check, such as an auditor, holds one thread at most, and nobody else's."""
    run("forums.create", name="News")
    begun, go, check = threading.Semaphore(0), threading.Event(), gate.run

    def wait(call: Call) -> Any:
        begun.release()
        assert go.wait(60)
        return check(call)

    monkeypatch.setattr(gate, "run", wait)
    runner = Runner(gate, settings)

    async def receive() -> dict[str, Any]:
        return {}

    async def ask() -> list[Any]:
        asked = [asyncio.create_task(runner.serving(receive).check()) for _ in range(50)]
        await asyncio.to_thread(begun.acquire)
        go.set()
        return [await one for one in asked]

    told = asyncio.run(ask())
    assert {one.value["checked"]["forums"] for one in told} == {1}
    assert not begun.acquire(blocking=False)


def test_reads_that_turn_out_to_be_long_end_in_threads_two_at_a_time(gate: Gate, settings: Settings, run: Run, engine: str) -> None:
    for number in range(20):
        run("forums.create", name=f"Long {number}", description=f"<p>{'wörd ' * 6_000}</p>")
    runner, where = Runner(gate, settings), list[str]()
    decode, both = Transaction.decode, threading.Event()

    def note_thread(value: Any) -> Any:
        where.append(threading.current_thread().name)
        if len(set(where)) == 1:
            assert both.wait(60), "a second one begins while the first one runs"
        both.set()
        return decode(value)

    async def ask() -> Any:
        return await asyncio.gather(*(runner.perform(Call("forums.list", TERMINAL)) for _ in range(5)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transaction, "decode", staticmethod(note_thread))
        found = asyncio.run(ask())
    assert [[one["name"] for one in page.value["results"]] for page in found] == [[f"Long {number}" for number in range(20)]] * 5
    assert where
    assert threading.main_thread().name not in where
    assert engine == "postgresql" or len(set(where)) == 2
