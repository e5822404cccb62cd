"""What is outside of a key's bounds makes no difference to it: in two communities that differ only there, all is answered alike.

The same calls, made up at random, are made by a key with bounds in two communities in which the nodes outside have other names,
texts, external ids and permissions, and are changed and moved outside meanwhile. A stranger, which is a key without bounds, changes
them too, proposes changes, makes webhooks, reads what the key reads next, so that it is in memory, and sends the same
Idempotency-Keys with other requests. What the key is told must be the same. It does not ask for the OpenAPI document, which takes
longer than all else together and is made without the database.
"""

import asyncio
import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpx
import pytest

from tests.agent_client import AgentClient
from tests.api_client import ApiClient
from tests.api_fixtures import listen
from tests.conftest import NewSettings, runner
from tests.fixture_types import Clock
from tests.wait import wait_in_loop_until
from trellis.asgi import Application
from trellis.compose import compose

PATHS: Final = {
    "forums": "/forums/forums",
    "calendars": "/calendar/calendar",
    "categories": "/downloads/category",
    "groups": "/core/groups",
}
TREES: Final = ("forums", "categories")
VERBS: Final = ("list", "get", "create", "update", "delete", "copy", "restore")
ABOUT_ALL: Final = ("events.list", "structure.export", "structure.plan", "structure.apply")
NODES: Final = (("In", None), ("Out", None), ("Ina", 0), ("Outa", 1), ("Inb", 2), ("Outb", 3), ("Inc", 0))  # with their parents
OUTSIDE: Final = (2, 4, 6)  # the ids of those whose names begin with Out
BEYOND: Final = 12  # ids that calls name are at most this
UNLIKE: Final = re.compile(r"prp_[\w-]+|[0-9a-f]{24,}|[\w-]{22,}")  # ids of requests, of tasks and of plans
HEADERS: Final = ("cache-control", "etag", "link", "location", "next", "retry-after", "trellis-event", "trellis-change-set")


class Community:
    """Nodes of each kind. The key may know those whose names begin with In; the names of the others begin with `outside`."""

    def __init__(self, new_settings: NewSettings, outside: str) -> None:
        self.settings, self.clock, self.outside = new_settings(), Clock(), outside
        self.gate = listen(compose(self.settings, clock=self.clock))
        self.run = runner(self.gate)
        mine = self.run("groups.create", name="Ingroup", externalId="in-group")["id"]
        hidden = self.run("groups.create", name=f"{outside} club", externalId=f"{outside}-club")["id"]
        under = {"groups": [f"groups:{mine}"]}
        for kind in ("forums", "calendars", "categories"):
            made: list[int] = []
            for name, parent in NODES:
                about = {"name": name, "externalId": f"{kind}-{name}", "permissions": {"view": [mine]}}
                if name.startswith("Out"):
                    about = {"name": f"{outside} {name}", "externalId": f"{outside}-{name}", "permissions": {"view": [hidden]}}
                above = {"parentId": None if parent is None else made[parent]} if kind in TREES else {}
                made.append(self.run(f"{kind}.create", **about, **above)["id"])
            roots = made[:1] if kind in TREES else [made[number] for number, (name, _) in enumerate(NODES) if name[0] == "I"]
            under[kind] = [f"{kind}:{root}" for root in roots]
        names = [name for kind in PATHS for verb in VERBS if (name := f"{kind}.{verb}") in self.gate.environment.grantable]
        self.stranger = self.run(
            "keys.create",
            name=f"{outside} bot",
            grants=[*names, "events.list", "webhooks.*"],
            bounds={"calendars.update": {"level": "propose"}},
        )
        bounds: dict[str, Any] = {name: {"under": under[name.partition(".")[0]]} for name in names}
        bounds |= {name: {"under": [one for some in under.values() for one in some]} for name in ABOUT_ALL}
        bounds["categories.update"] |= {"level": "propose"}
        self.key = self.run("keys.create", name="Bot", grants=list(bounds), bounds=bounds)
        self.api = ApiClient(Application(self.settings, self.gate), self.key["key"])
        self.agent = AgentClient(self.api)

    def perform(self, call: tuple[Any, ...]) -> Any:
        """Run a call; return what the key is told."""
        self.clock.move(seconds=1)
        door, *about = call
        if door == "administrator":
            operation, target, raw = about
            return self.run(operation, target, **self.name(raw)) and None
        if door == "stranger":
            method, path, more = about
            self.api(method, path, key=self.stranger["key"], **self.name(more))
            return None
        if door == "dialect":
            self.run("keys.update", self.key["id"], dialect=about[0])
            return None
        if door == "agent":
            answer = self.agent.send(*about)
            return answer.status_code, UNLIKE.sub("…", answer.text)
        method, path, more = about
        if door == "both":
            self.api(method, path, key=self.stranger["key"], **more)
        return self.tell(self.api(method, path, **more))

    def tell(self, answer: httpx.Response) -> Any:
        """Return what an answer tells. That two fail alike tells nothing."""
        assert answer.status_code < 500, answer.text
        told = [UNLIKE.sub("…", answer.headers.get(name, "")) for name in HEADERS]
        return answer.status_code, told, UNLIKE.sub("…", answer.text)

    async def wait(self, *requests: tuple[str, str, str, dict[str, Any]]) -> Any:
        """Let the key wait for an event while requests are made, each by a key; return what it is told at the end."""
        newest = (await self.api.sending("GET", "/core/events")).json()["next"]
        asked = asyncio.ensure_future(self.api.sending("GET", "/core/events", params={"after": f"{newest}", "wait": "30"}))
        await wait_in_loop_until(lambda: self.api.application.service.waiting.count)
        for key, method, path, body in requests:
            (await self.api.sending(method, path, key=key, json=self.name(body))).raise_for_status()
        return self.tell(await asked)

    def name(self, value: Any) -> Any:
        """Fill in what the names outside begin with."""
        if isinstance(value, dict):
            return {name: self.name(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.name(one) for one in value]
        return value.format(self.outside) if isinstance(value, str) else value

    def close(self) -> None:
        self.api.close()
        self.gate.store.close()


class Calls:
    """Makes up calls."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311  # no secret depends on it

    def pick(self, *choices: Any) -> Any:
        return self.draw.choice(choices)

    def some(self, members: dict[str, Any], most: int) -> dict[str, Any]:
        return {name: members[name] for name in self.draw.sample(sorted(members), self.draw.randint(0, min(most, len(members))))}

    def number(self, most: int = BEYOND) -> int:
        return self.draw.randint(1, most)

    def word(self) -> str:
        return str(self.pick("In", "Ina", "Rose", "Tulip", "Rose Outa", "Out", "club", "New"))

    def external_id(self, kind: str) -> str:
        return str(self.pick(f"{kind}-In", f"{kind}-Inb", "Rose-Out", "Rose-Outa", "Rose-club", "Tulip-Outa", "in-group", "new-1"))

    def values(self, kind: str) -> dict[str, Any]:
        """Make up members of a body. An external id outside is not given to a node: that it is taken cannot be hidden."""
        by_id = [{"externalId": self.pick("Rose-club", "in-group")}]
        members = {
            "name": self.word(),
            "externalId": f"new-{self.number(4)}",
            "permissions": {"view": self.pick([5], [5, 6], by_id, "*", [])},
            "parentId": self.pick(None, self.number()),
            "parentExternalId": self.external_id(kind),
            "after": self.number(),
            "before": self.number(),
            "copyPermissionsFrom": self.number(),
            "description": self.word(),
            "dryRun": True,
            "nmae": 1,
        }
        return self.some(members, 3)

    def query(self, kind: str) -> dict[str, str]:
        members = {
            "search": self.word(),
            "name": self.word(),
            "parentId": str(self.pick("root", self.number())),
            "under": str(self.number()),
            "ids": "1,2,3,4,5,6,7,8,9",
            "externalIds": f"{self.external_id(kind)},{self.external_id(kind)}",
            "sortBy": self.pick("name", "position", "updatedAt", "nme"),
            "perPage": str(self.number(3)),
            "page": str(self.number(4)),
        }
        return self.some(members, 3)

    def document(self, kind: str) -> dict[str, Any]:
        entry = {"externalId": self.pick(f"{kind}-Ina", f"{kind}-Inb", "new-1"), "name": self.word()}
        entry |= self.some({"permissions": {"view": [self.pick("Rose-club", "in-group")]}}, 1)
        under = self.some({"under": self.pick(f"{kind}-In", f"{kind}-Ina", "Rose-Out")}, 1) if kind in TREES else {}
        options = self.some({"prune": True, "adopt": True, "allowEmpty": True}, 2)
        return {"document": {"format": "trellis/1", "name": "site", kind: [entry], **under}, **options}

    def steps(self, kind: str) -> dict[str, Any]:
        read = {"operation": f"{kind}.get", "id": self.number(), "as": "one"}
        write = {"operation": f"{kind}.update", "id": self.number(), "body": {"name": {"$ref": "one.name"}}}
        return {"operations": [read, write], **self.some({"dryRun": True}, 1)}

    def request(self, kind: str) -> tuple[str, str, dict[str, Any]]:
        path, number = PATHS[kind], self.number()
        matching = {"headers": self.some({"If-Match": self.pick("*", '"0123456789abcdef01234567"')}, 1)}
        deleting = {"params": {"deleteChildrenOrMove": str(self.pick(-1, self.number())), **self.some({"dryRun": "1"}, 1)}}
        parent = self.some({"parentId": self.pick(None, self.number())}, 1)
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", path, {"params": self.query(kind)}),
            ("GET", f"{path}/tree", {"params": self.query(kind)}),
            ("GET", f"{path}/{number}", {}),
            ("GET", f"{path}/external/{self.external_id(kind)}", {}),
            ("POST", path, {"json": {"name": self.word(), **self.values(kind)}}),
            ("POST", f"{path}/{number}", {"json": self.values(kind), **matching}),
            ("PUT", f"{path}/external/{self.pick(f'{kind}-Ina', 'new-2')}", {"json": self.values(kind), **matching}),
            ("POST", f"{path}/{number}/copy", {"json": self.values(kind)}),
            ("POST", f"{path}/order", {"json": {"ids": [self.number(), self.number()], **parent}}),
            ("DELETE", f"{path}/{number}", deleting | matching),
            ("GET", "/core/events", {"params": self.some({"limit": "5", "after": str(self.number(60)), "resource": kind}, 3)}),
            ("GET", "/core/events", {"params": {"order": "newest"}}),
            ("POST", f"/core/events/{self.number(60)}/restore", {"json": self.some({"deleteCreated": True, **parent}, 2)}),
            ("POST", f"/core/changesets/{self.number(8)}/restore", {"json": self.some({"dryRun": True}, 1)}),
            ("GET", "/core/structure", {"params": {"sections": kind, **self.some({"under": self.external_id(kind)}, 1)}}),
            ("POST", "/core/structure/plan", {"json": self.document(kind)}),
            ("POST", "/core/structure/apply", {"json": self.document(kind)}),
            ("GET", "/core/events", {"params": self.about_others(), "headers": self.some({"Accept": "application/x-ndjson"}, 1)}),
            ("GET", "/core/hello", {}),
            ("GET", "/core/webhooks", {}),
            ("POST", f"/core/webhooks/{self.number(3)}", {"json": {"enabled": False}}),
            ("GET", "/core/proposals", {"params": self.some({"state": "open", "keyId": f"{self.number(2)}", "perPage": "2"}, 2)}),
            ("GET", f"/core/proposals/{self.number(3)}", {}),
            ("POST", f"/core/proposals/{self.number(3)}/withdraw", {"json": {}}),
            ("POST", "/core/batch", {"json": self.steps(kind)}),
        ]
        return self.draw.choice(requests)

    def token(self) -> str:
        return f"token-{self.number(3)}"

    def about_others(self) -> dict[str, str]:
        actor = {"actor": self.pick("key:1", "key:2", "key", "terminal"), "since": "2026-01-01", "until": "2030-01-01"}
        return self.some({**actor, "type": "forum.updated", "changeSet": "1", "reason": "Rose", "requestId": "Rose-1"}, 2)

    def message(self, kind: str) -> tuple[str, dict[str, Any]]:
        """Make up what an agent sends."""
        tools = {
            f"{kind}.list": self.query(kind),
            f"{kind}.get": {"id": self.number()},
            "structure.plan": self.document(kind),
            "events.list": {"order": "newest", **self.about_others()},
        }
        name = self.pick(*tools)
        uri = f"trellis://{self.pick('tree/forums', 'tree/categories', 'events')}"
        messages: list[tuple[str, dict[str, Any]]] = [
            *[("tools/call", {"name": name, "arguments": tools[name]})] * 3,
            ("tools/list", {}),
            ("resources/list", {}),
            ("resources/read", {"uri": uri}),
        ]
        return self.draw.choice(messages)

    def of_stranger(self) -> tuple[str, str, dict[str, Any]]:
        """Make up a request of the key without bounds. It stays outside, and sends the Idempotency-Keys that the other may send."""
        kind, target = self.pick(*TREES), self.pick(*OUTSIDE)
        headers = {"Idempotency-Key": self.token(), "X-Audit-Log-Reason": "{}", "X-Request-Id": "{}-1"}
        headers |= self.some({"Change-Set": f"{self.number(4)}"}, 1)
        make = {"name": "{} new", "parentId": self.pick(*OUTSIDE)}
        hook = {"url": "https://{}.example/", "events": ["forum.*", self.pick("category.*", "calendar.*")]}
        steps = [{"operation": f"{kind}.update", "id": target, "body": {"name": "{} batch"}}]
        requests: list[tuple[str, str, dict[str, Any]]] = [
            ("POST", PATHS[kind], {"json": make, "headers": headers}),
            ("POST", f"{PATHS[kind]}/{target}", {"json": {"name": "{} other"}, "headers": headers}),
            ("POST", f"{PATHS['calendars']}/{target}", {"json": {"name": "{} day"}, "headers": headers}),
            ("POST", "/core/batch", {"json": {"operations": steps}, "headers": headers}),
            ("POST", "/core/webhooks", {"json": hook}),
            ("DELETE", f"/core/webhooks/{self.number(3)}", {}),
        ]
        return self.draw.choice(requests)

    def call(self) -> tuple[Any, ...]:
        """Make up a call: by the key, or by somebody else who changes or moves something that stays outside."""
        kind = self.pick(*PATHS)
        door = self.pick("administrator", "agent", "stranger", "dialect", *["rest"] * 10)
        if door == "rest":
            method, path, more = self.request(kind)
            once = {} if method == "GET" else self.some({"Idempotency-Key": self.token(), "Change-Set": f"{self.number(4)}"}, 1)
            door = "rest" if method != "GET" else self.pick("rest", "rest", "both")
            return door, method, path, more | {"headers": more.get("headers", {}) | once}
        if door == "agent":
            return door, *self.message(kind)
        if door == "stranger":
            return door, *self.of_stranger()
        if door == "dialect":
            return door, self.pick("invision", "trellis", "trellis")
        change = self.pick({"name": "{} new"}, {"description": "{} text"}, {"parentId": self.pick(None, OUTSIDE[0])})
        return door, f"{self.pick(*TREES)}.update", self.pick(*OUTSIDE[1:]), change


@contextmanager
def opened(new_settings: NewSettings) -> Iterator[list[Community]]:
    both = [Community(new_settings, outside) for outside in ("Rose", "Tulip")]
    yield both
    for one in both:
        one.close()


@pytest.mark.parametrize("seed", [9])
def test_what_is_outside_makes_no_difference_to_a_key(new_settings: NewSettings, seed: int) -> None:
    calls = Calls(seed)
    with opened(new_settings) as (one, other):
        for _ in range(80):
            call = calls.call()
            assert one.perform(call) == other.perform(call), call


def test_what_happens_outside_ends_no_wait_of_a_key(new_settings: NewSettings) -> None:
    with opened(new_settings) as both:
        told = [
            one.api.do(
                one.wait(
                    (one.stranger["key"], "POST", f"{PATHS['forums']}/{OUTSIDE[0]}", {"name": "{} other"}),
                    (one.stranger["key"], "POST", PATHS["forums"], {"name": "{} new", "parentId": OUTSIDE[0]}),
                    (one.key["key"], "POST", f"{PATHS['forums']}/3", {"description": "inside"}),
                )
            )
            for one in both
        ]
    assert told[0] == told[1]
    (event,) = json.loads(told[0][2])["results"]
    assert event["after"]["description"] == "inside"
