"""Which nodes of an event are inside a part of the community, or were when they were deleted."""

from tests.fixture_types import Run
from trellis.core.gate import Gate
from trellis.store import events


def test_an_event_may_have_touched_more_nodes_than_a_statement_has_parameters(gate: Gate, run: Run) -> None:
    top, outside = run("forums.create", name="Top")["id"], run("forums.create", name="Outside")["id"]
    inner = [run("forums.create", name=f"Forum {number}", parentId=top)["id"] for number in range(2)]
    run("forums.delete", inner[0])
    run("forums.delete", outside)
    with gate.store.reading() as tx:
        assert events.find_inside_or_deleted(tx, "forums", [top], range(70_000)) == {top, *inner}
