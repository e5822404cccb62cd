"""Documents and trees of nodes with very long texts: refused before more is read than there is room for."""

from itertools import product
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Events, Run
from tests.memory_meter import MemoryMeter
from trellis.errors import Refused
from trellis.store.nodes import bounded

LONGEST = "x" * 25_000
ROOM = 2**20  # bytes
WHOLE = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "news", "name": "News"}]}
PART = WHOLE | {"under": "top"}
PARTS = [WHOLE | {"under": under} for under in ("a", "b", "c")]


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", ROOM)
    monkeypatch.setattr(bounded, "AT_ONCE", 10)


@pytest.fixture
def top(run: Run, community: Community) -> int:
    """A forum with 3 MB of descriptions below it."""
    top = int(run("forums.create", name="Top", externalId="top")["id"])
    part = int(run("forums.create", name="Part", parentId=top, description=LONGEST)["id"])
    for _ in range(7):
        run("forums.copy", part, withChildren=True, parentId=part)
    return top


def refuse(run: Run, operation: str, advice: str, **given: Any) -> None:
    """See that a call is refused with an advice, before it has taken much more memory than there is room for."""
    with MemoryMeter() as meter, pytest.raises(Refused) as refusal:
        run(operation, **given)
    assert refusal.value.message == "TREE_TOO_LARGE"
    assert "more than 1 MiB of text" in refusal.value.detail
    assert advice in refusal.value.detail
    assert meter.peak < 3 * ROOM


def test_a_tree_of_very_long_texts_asks_for_a_part(run: Run, top: int) -> None:
    refuse(run, "forums.tree", "Send a smaller depth")
    refuse(run, "forums.tree", "Send a smaller depth", root=top)
    assert run("forums.tree", root=top, depth=2)["total"] == 8


def test_an_export_of_very_long_texts_asks_for_a_part(run: Run, top: int) -> None:
    for written in ("json", "yaml"):
        refuse(run, "structure.export", "send under (--under)", format=written)
        refuse(run, "structure.export", "send under (--under)", format=written, sections=["forums"], under="top")


def test_a_document_about_very_long_texts_asks_for_parts(run: Run, top: int, events: Events) -> None:
    before = len(events())
    for operation, document in product(("structure.plan", "structure.apply"), (WHOLE, PART)):
        refuse(run, operation, "Divide it into parts", document=document)
    assert len(events()) == before


def test_the_parts_of_a_document_share_the_room(run: Run, community: Community) -> None:
    """They may be below one another, and have the same nodes."""
    parent = None
    for name in ("a", "b", "c"):
        parent = run("forums.create", name=name, externalId=name, parentId=parent)["id"]
    for _ in range(15):
        run("forums.create", name="Leaf", parentId=parent, description=LONGEST)
    assert run("structure.plan", document=PARTS[0])["counts"]["create"] == 1
    documents = [part | {"forums": [{"externalId": f"new-{part['under']}", "name": "New"}]} for part in PARTS]
    refuse(run, "structure.plan", "Divide it into parts", document=documents)


@pytest.mark.slow
def test_entries_that_come_from_elsewhere_take_room_too(run: Run, top: int) -> None:
    run("forums.create", name="Empty", externalId="empty")
    for number in range(60):
        run("forums.create", name="F", externalId=f"f-{number}", description=LONGEST)
    entries = [{"externalId": f"f-{number}", "name": "F"} for number in range(60)]
    document = {"format": "trellis/1", "name": "site", "under": "empty", "forums": entries}
    refuse(run, "structure.plan", "Divide it into parts", document=document)
