"""Whatever the tree, the bounds and the calls are: a key sees and changes what is inside of its bounds, and nothing else.

Hypothesis makes up a tree, a part of it, and calls by a key that is granted everything within that part. What it is told is
compared with what an unlimited caller is told, and what has changed with what was inside before and is inside after. A call that
names a node outside is answered as if it named one that does not exist.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api_client import ApiClient
from tests.conftest import NewSettings, runner
from tests.fixture_types import Clock
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.http.routes import Route, build_routes
from trellis.settings import Settings

GRANTS = [f"forums.{verb}" for verb in ("list", "get", "create", "update", "delete", "copy", "restore")]
BOGUS = 50_000  # more than any id: a node that does not exist has the id of one that does, and this
picks = st.integers(0, 30)
Ids = list[int]
Raw = dict[str, Any]
Write = tuple[str, int | None, Raw]


class Answer(NamedTuple):
    """What a caller is told: the value, or the refusal with its facts."""

    refused: str
    told: Any


class Community:
    """A tree, a key whose grants are for a part of it, and the doors through which that key calls."""

    def __init__(self, gate: Gate, settings: Settings, clock: Clock, parents: list[int], roots: list[int], door: str) -> None:
        self.clock = clock
        self.gate, self.run, self.door = gate, runner(gate), door
        made: Ids = []
        for number, pick in enumerate(parents):
            parent = made[pick % len(made)] if made and pick % 4 else None
            body = {"name": f"Node {number}", "externalId": f"x{number}", "parentId": parent, "position": pick % 3}
            made.append(self.run("forums.create", **body)["id"])
        self.roots = [made[pick % len(made)] for pick in roots]
        under = {"under": [f"forums:{root}" for root in self.roots]}
        grants = [*GRANTS, "events.list", "calendars.list"]
        text = self.run("keys.create", name="Bot", grants=grants, bounds=dict.fromkeys(grants[:-1], under))["key"]
        self.actor: Actor = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
        self.application = Application(settings, gate)
        self.api = ApiClient(self.application, text)
        self.routes: Mapping[str, Route] = {route.operation.name: route for route in build_routes(gate.catalogue)}

    def close(self) -> None:
        self.api.close()
        self.gate.store.close()

    def records(self) -> dict[int, dict[str, Any]]:
        return {one["id"]: one for one in self.run("forums.list", perPage=1000)["results"]}

    def inside(self, records: Mapping[int, dict[str, Any]]) -> set[int]:
        def leads_inside(node: int | None) -> bool:
            return node is not None and node in records and (node in self.roots or leads_inside(records[node]["parentId"]))

        return {node for node in records if leads_inside(node)}

    def call(self, operation: str, target: int | None = None, /, **raw: Any) -> Answer:
        if self.door == "rest":
            return self._request(operation, target, raw)
        step = {"operation": operation, "id": target, "body": {n: v for n, v in raw.items() if n != "dryRun"}}
        batchable = self.door == "batch" and operation.partition(".")[2] not in {"list", "tree", "put_external", "restore"}
        try:
            if batchable and operation != "events.list":
                body = {"operations": [step], "dryRun": bool(raw.get("dryRun"))}
                value = self.gate.run(Call("core.batch", self.actor, body)).value["results"][0]["result"]
            else:
                value = self.gate.run(Call(operation, self.actor, raw, target)).value
        except Refused as refused:
            inner = refused.facts.get("problem", refused)
            return Answer(inner.message, [inner.detail, dict(inner.facts)])
        return Answer("", value)

    def _request(self, operation: str, target: int | None, raw: dict[str, Any]) -> Answer:
        route = self.routes[operation if not operation.endswith("restore") else "events.restore"]
        path = route.path.replace("{id}", str(target)).replace("{externalId}", str(raw.get("externalId")))
        body = {name: value for name, value in raw.items() if "{externalId}" not in route.path or name != "externalId"}
        if route.method in {"GET", "DELETE"}:
            sent = {n: ",".join(map(str, v)) if isinstance(v, list) else str(v) for n, v in body.items()}
            answers = [self.api(route.method, path, params=sent) for _ in range(2 if route.method == "GET" else 1)]
            assert len({answer.content for answer in answers if answer.status_code == 200}) <= 1  # from memory as from the database
        else:
            answers = [self.api(route.method, path, json=body)]
        told = answers[-1].json()
        if answers[-1].status_code < 400:
            return Answer("", told)
        facts = {n: v for n, v in told.items() if n not in {"requestId", "instance", "type", "title", "status", "errorCode"}}
        return Answer(told["errorMessage"], [facts.pop("detail"), facts])


# --- the calls ----------------------------------------------------------------------------------------------------


places: st.SearchStrategy[Raw] = st.one_of(
    st.sampled_from([{}, {"position": 0}, {"position": 9}]),
    st.tuples(st.sampled_from(["before", "after"]), picks).map(lambda drawn: {drawn[0]: f"#{drawn[1]}"}),
)
names: st.SearchStrategy[Raw] = st.sampled_from([{}, {"name": "New"}, {"externalId": "x3"}, {"externalId": "x9"}])
parents_of: st.SearchStrategy[Raw] = st.one_of(
    st.sampled_from([{}, {}, {"parentId": None}, {"parentExternalId": "x1"}, {"parentExternalId": "x4"}]),
    picks.map(lambda pick: {"parentId": f"#{pick}"}),
)
fates: st.SearchStrategy[Raw] = st.one_of(
    st.sampled_from([{}, {"deleteChildrenOrMove": -1}]), picks.map(lambda pick: {"deleteChildrenOrMove": f"#{pick}"})
)
copied_from: st.SearchStrategy[Raw] = st.one_of(st.just({}), picks.map(lambda pick: {"copyPermissionsFrom": f"#{pick}"}))


@st.composite
def writes(draw: st.DrawFn) -> Write:
    """Draw a write; `#7` in it is the id of some node or of none."""
    place, parent, copied, name, fate = draw(places), draw(parents_of), draw(copied_from), draw(names), draw(fates)
    target, external_id = draw(picks), f"x{draw(st.integers(0, 14))}"
    choices: list[Write] = [
        ("forums.create", None, {"name": "Made", **name, **parent, **place, **copied}),
        ("forums.update", target, {**name, **parent, **place, **copied}),
        ("forums.update", target, {**parent, **place}),
        ("forums.delete", target, fate),
        ("forums.copy", target, {**parent, **place, "withChildren": True}),
        ("forums.order", None, {**parent, "ids": [f"#{draw(picks)}", f"#{draw(picks)}"]}),
        ("forums.put_external", None, {"externalId": external_id, "name": "Put", **parent}),
        ("forums.delete_external", None, {"externalId": external_id, **fate}),
        ("forums.restore", target, {"deleteCreated": True}),
    ]
    return draw(st.sampled_from(choices))


def resolve(value: Any, ids: Ids) -> Any:
    if isinstance(value, list):
        return list(dict.fromkeys(resolve(one, ids) for one in value))
    if isinstance(value, str) and value.startswith("#"):
        return ids[int(value[1:]) % len(ids)]
    return value


def disguise(value: Any, outside: set[int]) -> Any:
    """Put nodes that do not exist in place of those outside."""
    if isinstance(value, list):
        return [disguise(one, outside) for one in value]
    return value + BOGUS if isinstance(value, int) and not isinstance(value, bool) and value in outside else value


def _shown(told: Any) -> str:
    return json.dumps(told, sort_keys=True, default=str)


def check_write(community: Community, write: Write, events: Ids) -> None:
    operation, pick, raw = write
    before = community.records()
    inside, ids = community.inside(before), [*before, 77]
    is_undo = operation.endswith("restore")
    target = None if pick is None else events[pick % len(events)] if is_undo else ids[pick % len(ids)]
    raw = {name: resolve(value, ids) for name, value in raw.items()}
    tried = community.call(operation, target, **raw, dryRun=True)
    assert community.records() == before
    outside = before.keys() - inside
    sent_id = raw["externalId"] if operation.endswith("put_external") else None
    by_external_id = (node for node, record in before.items() if sent_id is not None and record["externalId"] == sent_id)
    changed = next(by_external_id, target)
    own_parent = changed in before and raw.get("parentId") == before[changed or 0]["parentId"]
    if not is_undo and not own_parent:
        hidden = {name: disguise(value, outside) for name, value in raw.items()}
        other = community.call(operation, disguise(target, outside), **hidden, dryRun=True)
        said = _shown(other)
        for node in outside:
            said = said.replace(str(node + BOGUS), str(node))
        if target not in outside or tried.refused:
            assert _shown(tried) == said, (operation, target, raw, community.roots)
    done = community.call(operation, target, **raw)
    after = community.records()
    assert bool(done.refused) == bool(tried.refused)
    if done.refused:
        assert after == before
        return
    now_inside = community.inside(after)
    for node in before.keys() | after.keys():
        then, now = before.get(node), after.get(node)
        if then is None:
            assert node in now_inside
        elif now is None:
            assert node in inside
        elif node not in inside or node not in now_inside:
            assert node not in inside, "moved out"
            assert node not in now_inside, "moved in"
            assert {**then, "position": 0} == {**now, "position": 0}


def check_reads(community: Community) -> None:
    records = community.records()
    inside = community.inside(records)
    for node in [*records, 77]:
        answer = community.call("forums.get", node)
        assert answer.refused == ("" if node in inside else "INVALID_ID")
        if node in inside:
            assert answer.told == records[node]
            external_id = records[node]["externalId"]
            assert external_id is None or community.call("forums.get_external", externalId=external_id).told == records[node]
        elif node in records:
            assert _shown(answer) == _shown(community.call("forums.get", node + BOGUS)).replace(str(node + BOGUS), str(node))
            if records[node]["externalId"]:
                assert community.call("forums.get_external", externalId=records[node]["externalId"]).refused == "INVALID_ID"
    tree = community.call("forums.tree").told
    assert sorted(_walk(tree["children"])) == sorted(inside)
    assert tree["total"] == len(inside)
    for node in records:
        below = community.call("forums.tree", root=node)
        assert below.refused == ("" if node in inside else "INVALID_ID")


def _walk(children: list[dict[str, Any]]) -> Iterator[int]:
    for child in children:
        yield child["id"]
        yield from _walk(child["children"])


def check_list(community: Community, query: dict[str, Any]) -> None:
    records = community.records()
    inside = community.inside(records)
    query = {name: resolve(value, [*records, 77]) for name, value in query.items()}
    is_below = {query.get(name, "root") for name in ("parentId", "under")} <= inside | {"root"}  # not below what is outside
    found = community.run("forums.list", **query, perPage=1000)["results"] if is_below else []
    expected = [one["id"] for one in found if one["id"] in inside]
    for page in range(1, len(expected) // 2 + 3):
        listed = community.call("forums.list", **query, page=page, perPage=2).told
        assert [one["id"] for one in listed["results"]] == expected[2 * page - 2 : 2 * page], (query, community.roots)
        assert listed["totalResults"] == len(expected)


def check_feed(community: Community) -> None:
    records = community.records()
    inside = community.inside(records)
    everything = community.run("events.list", limit=1000)["results"]
    told = community.call("events.list", limit=1000).told["results"]
    shown = {event["seq"] for event in told}
    for event in everything:
        if event["resource"] != "forums" or event["resourceId"] in records.keys() - inside:
            assert event["seq"] not in shown
        elif event["resourceId"] in inside:
            assert event["seq"] in shown
    for event in told:
        assert not {one["id"] for one in event["touched"]} & (records.keys() - inside)
        for side in (event["before"], event["after"]):
            is_below = side is not None and event["resourceId"] not in community.roots
            assert not is_below or side["parentId"] not in records or side["parentId"] in inside


queries = st.fixed_dictionaries(
    {},
    optional={
        "sortBy": st.sampled_from(["id", "name", "position", "createdAt", "updatedAt"]),
        "sortDir": st.sampled_from(["asc", "desc"]),
        "search": st.sampled_from(["1", "node", "zzz"]),
        "parentId": st.sampled_from(["root", "#1", "#2", "#3"]),
        "under": st.sampled_from(["#1", "#2", "#4"]),
        "ids": st.just(["#0", "#1", "#2", "#3", "#4"]),
        "type": st.just("discussions"),
        "externalIds": st.just(["x0", "x1", "x2", "x3"]),
        "name": st.sampled_from(["Node 1", "Node 3"]),
    },
)


@contextmanager
def opened(new_settings: NewSettings, parents: list[int], roots: list[int], door: str) -> Iterator[Community]:
    settings, clock = new_settings(), Clock()
    community = Community(compose(settings, clock=clock), settings, clock, parents, roots, door)
    try:
        yield community
    finally:
        community.close()
        new_settings.drop(settings)


@pytest.mark.slow
def test_a_key_sees_and_changes_what_is_inside_and_nothing_else(new_settings: NewSettings) -> None:
    @settings(max_examples=settings().max_examples // 3)
    @given(
        parents=st.lists(picks, min_size=2, max_size=9),
        roots=st.lists(picks, min_size=1, max_size=2),
        door=st.sampled_from(["gate", "rest", "batch"]),
        steps=st.lists(st.tuples(writes(), st.booleans(), queries), min_size=1, max_size=6),
    )
    def check(parents: list[int], roots: list[int], door: str, steps: list[Any]) -> None:
        with opened(new_settings, parents, roots, door) as community:
            for write, by_others, query in steps:
                community.clock.move(seconds=1)
                if by_others:  # moved and deleted by somebody else, who is not limited
                    ids = [*community.records(), 77]
                    operation, pick, raw = write
                    with suppress(Refused):
                        if not operation.endswith("restore"):
                            target = None if pick is None else ids[pick % len(ids)]
                            community.run(operation, target, **{name: resolve(value, ids) for name, value in raw.items()})
                else:
                    seqs = [event["seq"] for event in community.run("events.list", resource="forums", limit=1000)["results"]]
                    check_write(community, write, seqs)
                check_list(community, query)
            check_reads(community)
            check_feed(community)

    check()
