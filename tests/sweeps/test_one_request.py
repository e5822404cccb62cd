"""One request does not stop the others: no body, wherever it is sent, holds the event loop for long.

What it is compared with is an ordinary request of the same operation in the same run; both are measured in processor time. Each
operation gets some of the bodies, and each body some operations; `TRELLIS_TEST_BODIES` says how many, and `all` sends all to all.
Bodies go to both engines, others to each; queries and forms, which are read before a database is asked, to one.
"""

import asyncio
import gc
import json
import os
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator
from random import Random
from statistics import median
from typing import Any, Final

import pytest

from tests.admin.conftest import LOGIN, PASSWORD
from tests.admin.everything import group_alike
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import Run
from tests.loop_meter import Answer, LoopMeter, send_request
from tests.sweeps.grantable import create_target, grantable_routes
from tests.sweeps.hostile_bodies import FORM, JSON, Body, any_bodies, bodies_for, form_bodies
from trellis.admin.app import Panel
from trellis.admin.page import SIGN_IN
from trellis.admin.sections import pages_of
from trellis.admin.sessions import csrf_token
from trellis.compose import catalogue_of
from trellis.core.admins import generate_visitor_token
from trellis.core.gate import Gate
from trellis.http.routes import Route
from trellis.kinds import KINDS
from trellis.rest.docs.examples import given_of
from trellis.settings import Settings

NUMBER: Final = os.environ.get("TRELLIS_TEST_BODIES", "2")
MOST: Final = 20  # times what an ordinary request costs
FLOOR: Final = 0.0005  # seconds of processor time; what costs less is not told from noise
CATALOGUE: Final = catalogue_of(KINDS)

Ask = Callable[[str, bytes], Coroutine[Any, Any, Answer]]  # given a content type and a body


def some(bodies: Iterable[Body], name: str) -> list[Body]:
    """Choose the bodies that are sent to an operation: others for each, and the same in every run."""
    found = list(bodies)
    order = Random(name)  # noqa: S311  # no secret
    return found if NUMBER == "all" else order.sample(found, min(int(NUMBER), len(found)))


class OneRequest:
    """Sends ordinary and hostile requests, and notes those that hold the loop too long."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.statuses: set[int] = set()
        self._costs: dict[str | None, float] = {}  # of ordinary requests, by what they are like

    def compare(
        self, what: str, ask: Ask, ordinary: bytes, hostile: Iterable[Body], media: str = JSON, *, like: str | None = None
    ) -> None:
        """Compare hostile requests with an ordinary one. What holds the loop is sent twice more: it must do so each time.

        Ordinary requests that are answered alike, wherever they are sent, are measured once; `like` says what they have in common.
        """
        with asyncio.Runner() as runner:
            if like is None or like not in self._costs:
                self._measure(runner, ask, media, ordinary)
                cost = median(self._measure(runner, ask, media, ordinary).total for _ in range(3))
                self._costs[like] = cost
            cost = self._costs[like]
            bound = MOST * max(cost, FLOOR)
            for body in hostile:
                longest = min(self._try(runner, ask, body, bound))
                if longest > bound:
                    self.held.append(f"{what}, {body.name}: {1000 * longest:.1f} ms, ordinary {1000 * cost:.2f} ms")

    def _try(self, runner: asyncio.Runner, ask: Ask, body: Body, bound: float) -> Iterator[float]:
        content = body.write()
        for _ in range(3):
            longest = self._measure(runner, ask, body.type, content).longest
            yield longest
            if longest <= bound:
                return

    def _measure(self, runner: asyncio.Runner, ask: Ask, media: str, content: bytes) -> LoopMeter:
        with LoopMeter() as meter:
            status, _ = runner.run(ask(media, content))
        self.statuses.add(status)
        return meter


@pytest.fixture
def sweep() -> OneRequest:
    """A sweep without what the test run has loaded: as in the service, it need not be walked through for garbage each time.

    It stays so in the tests that follow, for which it is of no use either.
    """
    gc.collect()
    gc.freeze()
    return OneRequest()


def test_no_body_holds_the_loop(engine: str, make_api: MakeApiClient, run: Run, community: Community, sweep: OneRequest) -> None:
    api = make_api(rate_limit=0)
    routes = [route for route in grantable_routes(CATALOGUE) if route.operation.writes]
    for route in routes:
        operation = route.operation
        target = create_target(CATALOGUE, operation, run, f"For {operation.name}")
        path = f"/api{route.path}?dryRun=1".replace("{id}", str(target))

        def ask(media: str, content: bytes, method: str = route.method, path: str = path) -> Coroutine[Any, Any, Answer]:
            headers = {"authorization": f"Bearer {api.key}", "content-type": media, "idempotency-key": "same"}
            return send_request(api.application, method, path, headers, content)

        own = bodies_for(field.name for field in operation.takes if not field.read_only)
        name = f"{operation.name} on {engine}"
        sweep.compare(operation.name, ask, _ordinary(route), [*some(any_bodies(), name), *some(own, name)])
    assert sweep.held == []
    assert sweep.statuses <= {200, 201, 400, 404, 409, 412, 422}
    assert len(routes) > 20


def _ordinary(route: Route) -> bytes:
    operation = route.operation
    if operation.kind is not None and route.verb.creates:
        return b'{"name": "Ordinary"}'
    return json.dumps(given_of(operation)).encode()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_no_query_holds_the_loop(make_api: MakeApiClient, run: Run, community: Community, sweep: OneRequest) -> None:
    api = make_api(rate_limit=0, bad_key_limit=1_000_000)
    for route in grantable_routes(CATALOGUE):
        target = create_target(CATALOGUE, route.operation, run, f"For {route.operation.name}")
        path = f"/api{route.path}?".replace("{id}", str(target)) + "dryRun=1&" * route.operation.writes
        for key in (api.key, "nobody", ""):

            def ask(_: str, content: bytes, method: str = route.method, path: str = path, key: str = key) -> Any:
                headers = {"authorization": f"Bearer {key}"} if key else {}
                return send_request(api.application, method, path + content[:60_000].decode(), headers)

            hostile = some(form_bodies(["search"]), path + key)
            hostile = hostile if NUMBER == "all" else hostile[: 2 if key == api.key else 1]
            sweep.compare(f"{route.operation.name} for {key[:6] or 'no key'}", ask, b"", hostile)
    assert sweep.held == []
    assert max(sweep.statuses) < 500


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_no_form_holds_the_loop(gate: Gate, settings: Settings, run: Run, community: Community, sweep: OneRequest) -> None:
    panel = Panel(gate, settings)
    admin = int(run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD)["id"])
    pages = [page for page in pages_of(CATALOGUE, KINDS) if page.method == "POST" and page.path not in {"/sign-out", SIGN_IN}]
    alike = group_alike(pages)
    for page in (those[at % len(those)] for at, those in enumerate(alike)):
        path = "/admin" + re.sub(r"{\w+}", "0", page.path.replace("{id:int}", str(community.news)))
        session = str(run("admins.sign_in", admin, address="198.51.100.7", agent="a browser")["token"])
        visitor = generate_visitor_token(gate)
        for name, token in (("session", session), ("visitor", visitor), ("nothing", "")):

            def ask(media: str, content: bytes, path: str = path, name: str = name, token: str = token) -> Any:
                headers = {"cookie": f"trellis_{name}={token}", "content-type": media, "x-csrf-token": csrf_token(token)}
                return send_request(panel, "POST", path, headers, content)

            hostile = some(form_bodies(["name", "login", "permissions.view", "grants"]), path + name)
            hostile = hostile if NUMBER == "all" else hostile[: 2 if name == "session" else 1]
            like = None if page.open or name == "session" else name  # to whom each page says to sign in first
            sweep.compare(f"{path} with {name}", ask, b"name=x", hostile, FORM, like=like)
    assert sweep.held == []
    assert max(sweep.statuses) < 500
    assert len(alike) > 20
