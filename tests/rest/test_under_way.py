"""Large answers whose readers do not read: one copy for all of them, and no more than there is room for."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from tests.api_client import CLIENT_ADDRESS, ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.fixture_types import MakeKey, Run
from tests.wait import wait_until
from trellis.http.sending import PART

LARGE = "/forums/forums?perPage=20"


class Reader:
    """A caller that reads the head and the first part of an answer, or nothing, and the rest when it is told to go on."""

    def __init__(
        self, api: ApiClient, path: str, key: str = "", *, reads_nothing: bool = False, client: str = CLIENT_ADDRESS, host: str = ""
    ) -> None:
        self.status = 0
        self.reads_nothing = reads_nothing
        self.read = b""
        self.goes_on = asyncio.Event()
        self.has_begun = asyncio.Event()
        address, _, query = path.partition("?")
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "client": (client, 1),
            "path": f"/api{address}",
            "query_string": query.encode(),
            "headers": [(b"host", host.encode() or b"api.example"), (b"authorization", f"Bearer {key or api.key}".encode())],
        }
        self.task = asyncio.ensure_future(api.application(scope, self._receive, self._send))

    async def _receive(self) -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if self.reads_nothing:
            self.has_begun.set()
        if self.read or self.reads_nothing:
            await self.goes_on.wait()
        self.status = message.get("status", self.status)
        self.read += message.get("body", b"")
        if self.read:
            self.has_begun.set()

    async def finish(self) -> None:
        self.goes_on.set()
        await self.task


@pytest.fixture
def forums(run: Run) -> None:
    for number in range(40):
        run("forums.create", name=f"Long {number}", description=f"{number:03d}" * 20_000)


def test_all_who_wait_for_the_same_answer_share_its_bytes(make_api: MakeApiClient, forums: None) -> None:
    api = make_api(answer_cache=0)
    wait_until(lambda: api.application.gate.store.data_version() is not None)

    async def read() -> None:
        readers = [Reader(api, LARGE) for _ in range(30)]
        for reader in readers:
            await reader.has_begun.wait()
        whole = int(api.application.service.under_way.total)
        assert whole > 1_000_000
        for reader in readers:
            await reader.finish()
        assert {len(reader.read) for reader in readers} == {whole}
        assert len({reader.read for reader in readers}) == 1
        assert api.application.service.under_way.total == 0

    api.do(read())


def test_a_key_that_does_not_read_is_refused_more_and_others_are_not(make_api: MakeApiClient, forums: None, key: MakeKey) -> None:
    api, other = make_api(answers_under_way=16_000_000), key("*")

    async def read() -> None:
        paths = [f"{LARGE}&page={page}&sortBy={order}" for page in (1, 2) for order in ("id", "name")]
        held = {path: Reader(api, path) for path in paths}
        for reader in held.values():
            await reader.has_begun.wait()
        assert sorted(reader.status for reader in held.values()) == [200, 200, 200, 503]
        assert all((b"TOO_MUCH_UNREAD" in reader.read) == (reader.status == 503) for reader in held.values())
        again = Reader(api, next(path for path, reader in held.items() if reader.status == 200))
        await again.has_begun.wait()
        assert again.status == 200, "it is under way to this key already"
        theirs = Reader(api, f"{LARGE}&sortDir=desc", other)
        await theirs.has_begun.wait()
        assert theirs.status == 200
        for reader in (*held.values(), again, theirs):
            await reader.finish()

    api.do(read())
    assert api.get(f"{LARGE}&sortDir=desc&sortBy=name").status_code == 200
    assert api.application.service.under_way.total == 0


def test_an_answer_for_which_there_is_no_room_is_not_counted(make_api: MakeApiClient, forums: None, key: MakeKey) -> None:
    api = make_api(key("forums.list", bounds={"forums.list": {"perDay": 2}}), answers_under_way=4 * PART)

    async def read() -> None:
        held = Reader(api, LARGE)
        await held.has_begun.wait()
        for _ in range(2):
            read_refusal(await api.sending("GET", "/forums/forums?perPage=19"), 503, "TOO_MUCH_UNREAD")
        await held.finish()

    api.do(read())
    assert api.get("/forums/forums?perPage=19").status_code == 200
    read_refusal(api.get("/forums/forums?perPage=19"), 429, "GRANT_USED_UP")


def test_an_answer_counts_before_its_head_is_read(make_api: MakeApiClient, forums: None) -> None:
    """A connection on which earlier answers are not read takes no more, not even a head."""
    api = make_api(answers_under_way=4 * PART)

    async def read() -> None:
        held = Reader(api, LARGE, reads_nothing=True)
        await held.has_begun.wait()
        assert read_refusal(await api.sending("GET", "/forums/forums?perPage=19"), 503, "TOO_MUCH_UNREAD")
        await held.finish()
        assert held.status == 200

    api.do(read())
    assert api.application.service.under_way.total == 0


def test_a_key_that_does_not_read_can_still_write_and_read_little(make_api: MakeApiClient, forums: None) -> None:
    api = make_api(answers_under_way=4 * PART)

    async def read() -> None:
        held = Reader(api, LARGE)
        await held.has_begun.wait()
        answer = await api.sending("GET", "/forums/forums?perPage=19")
        assert read_refusal(answer, 503, "TOO_MUCH_UNREAD")
        assert answer.headers["retry-after"] == "1"
        assert (await api.sending("GET", "/forums/forums?perPage=1")).status_code == 200
        made = await api.sending("POST", "/forums/forums", json={"name": "News", "description": "x" * 90_000})
        assert made.status_code == 201, "what has happened is told, whatever is under way"
        await held.finish()

    api.do(read())
    assert api.get("/forums/forums?perPage=19").status_code == 200


def test_who_has_no_key_is_known_by_the_network(make_api: MakeApiClient) -> None:
    """One caller can use any number of addresses in an IPv6 network, and the document has other bytes for each host."""
    size = len(make_api(public_url=None).get("/openapi.json").content)
    api = make_api(public_url=None, answers_under_way=3 * size)

    async def read() -> None:
        clients = ("2001:db8::1", "a.example"), ("2001:db8::2", "b.example"), ("2001:db8:0:1::1", "c.example")
        readers = [Reader(api, "/openapi.json", client=client, host=host) for client, host in clients]
        for reader in readers:
            await reader.has_begun.wait()
        assert sorted(reader.status for reader in readers) == [200, 200, 503]
        assert readers[2].status == 200
        for reader in readers:
            await reader.finish()

    api.do(read())
