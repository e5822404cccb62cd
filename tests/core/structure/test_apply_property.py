"""Whatever two communities are: applying the document of the one to the other makes it so, and undoing that brings it back.

Hypothesis makes up both. The external ids, names and groups of the two overlap, so that documents create, change, move, adopt and
delete, under parents that turn up, go away or change places with their children.
"""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import NewSettings, runner
from tests.fixture_types import Run
from tests.node_rows import read_rows, timeless
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.structure import applier, write_yaml
from trellis.core.structure.operations import APPLY
from trellis.errors import Refused

ALL: dict[str, Any] = {"prune": True, "maxDeletes": 1000, "allowEmpty": True}
SECTIONS = ["groups", "forums", "calendars", "categories", "blogs"]
picks = st.integers(0, 7)
nodes = st.tuples(
    st.sampled_from([*SECTIONS, "forums", "forums", "calendars"]),
    st.sampled_from(["News", "Café", "yes", "1", "A: b"]),
    st.sampled_from([None, "a", "b", "c", "d", "null", "e"]),
    picks,
    st.sampled_from(["*", "none", "groups"]),
    st.sampled_from(["discussions", "category", "redirect"]),
)
communities = st.lists(nodes, max_size=9)


def build(run: Run, community: list[tuple[Any, ...]]) -> None:
    """Make a community, node by node; what is refused (an external id that is taken, a child of a redirect) is left out."""
    for kind, name, external_id, pick, who, type_ in community:
        own = [node["id"] for node in run(f"{kind}.list", perPage=100)["results"]]
        groups = [node["id"] for node in run("groups.list", perPage=100)["results"]]
        named = {"*": "*", "none": [], "groups": groups[pick % len(groups) :]}[who]
        body: dict[str, Any] = {"name": name, "externalId": external_id}
        if kind in {"forums", "categories", "calendars"}:
            body["permissions"] = {"view": named, "add": [3]}
            body["position"] = pick
        if kind in {"forums", "categories"}:
            body["parentId"] = own[pick % len(own)] if own and pick % 3 else None
        if kind == "forums":
            body |= {"type": type_, "theme": pick + 1, "redirectUrl": "https://example.org/"}
        if kind == "blogs":
            body["groups"] = named
        with suppress(Refused):
            run(f"{kind}.create", **body)


def sections(run: Run, **more: Any) -> dict[str, Any]:
    exported: dict[str, Any] = run("structure.export", sections=SECTIONS, **more)
    return {name: exported[name] for name in SECTIONS}


def apply(gate: Gate, document: Any, **options: Any) -> Any:
    return gate.run(Call(f"structure.{APPLY.name}", TERMINAL, {"document": document, **ALL, **options}))


def without_times(value: Any) -> Any:
    """Leave out what tells one run from another."""
    return {name: below for name, below in value.items() if name not in {"plan", "revision", "dryRun"}}


@pytest.mark.slow
def test_applying_makes_it_so_and_undoing_brings_it_back(new_settings: NewSettings) -> None:
    @settings(max_examples=settings().max_examples // 5)
    @given(communities, communities, st.booleans(), st.booleans(), st.booleans())
    def check(ours: list[Any], theirs: list[Any], adopt: bool, as_text: bool, managed: bool) -> None:
        databases = new_settings(), new_settings()
        one, other = map(compose, databases)
        try:
            compare(one, other, ours, theirs, adopt=adopt, as_text=as_text, managed=managed)
        finally:
            for gate, database in zip((one, other), databases, strict=True):
                gate.store.close()
                new_settings.drop(database)

    check()


def compare(one: Gate, other: Gate, ours: list[Any], theirs: list[Any], *, adopt: bool, as_text: bool, managed: bool) -> None:
    run, run_other = runner(one), runner(other)
    build(run, ours)
    build(run_other, theirs)
    if managed:
        own = {"format": "trellis/1", "name": "b", **sections(run)}
        apply(one, own, adopt=True)
    before, shown_before = timeless(read_rows(one)), run("structure.export")
    wanted = {"format": "trellis/1", "name": "b", **sections(run_other)}
    document = write_yaml(wanted, []) if as_text else wanted
    plan = run("structure.plan", document=document, adopt=adopt, **ALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(applier, "run_together", lambda _context, _calls, _final: None)
        singly = run("structure.plan", document=document, adopt=adopt, **ALL)
    assert without_times(singly) == without_times(plan)
    assert timeless(read_rows(one)) == before
    done = apply(one, document, adopt=adopt, plan=plan["plan"])
    assert without_times(done.value) == without_times(plan)
    assert sections(run, externalIds="fail") == {name: wanted[name] for name in SECTIONS}
    again = run("structure.plan", document=document, adopt=adopt, **ALL)
    assert (again["changes"], again["kept"], again["deletes"]) == ([], [], 0)
    nothing = apply(one, document, adopt=adopt)
    assert (nothing.event, nothing.change_set, nothing.value["changes"]) == (None, None, [])
    if done.change_set is not None:
        run("changesets.restore", done.change_set)
    assert timeless(read_rows(one)) == before
    assert run("structure.export") == shown_before
