"""What one read, page or dry run costs when what is stored is the worst that may be.

There are some hundred nodes with the longest texts, and what a page or a tree may have together is a part of that here: so whatever
reads without a limit is told from what has one. What the processor does is compared with the same for ordinary texts, in the same
run.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

from tests.admin.conftest import Visitor, _sign_in_once, _signed_in, _template, admin, mira, visitor
from tests.admin.everything import KIND
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.memory_meter import MemoryMeter
from tests.sweeps.worst_texts import ANYWHERE, ORDINARY, WORST, Stored, Writer, ordinary_name, worst_name
from trellis.admin.app import Panel
from trellis.compose import catalogue_of
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind
from trellis.core.operation import Operation
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.rest.docs.examples import given_of
from trellis.settings import Settings
from trellis.store.events import pages
from trellis.store.nodes import bounded

__all__ = ["_sign_in_once", "_signed_in", "_template", "admin", "mira", "visitor"]  # fixtures

COPIES: Final = 400  # nodes of a kind with the longest texts: 40 MB
ROOM: Final = 12 * 2**20  # bytes: a hundred nodes, of which no page of the panel shows more at once
MOST: Final = 60 * 2**20  # bytes of memory: some hundred nodes, as they are read, as they are, and as they are shown or written
TIMES: Final = 20  # what an ordinary text costs
FLOOR: Final = 0.01  # seconds of processor time; what costs less is not told from noise
CATALOGUE: Final = catalogue_of(KINDS)
SIZES: Final = frozenset({"PAGE_TOO_LARGE", "TREE_TOO_LARGE"})
_LINK: Final = re.compile(r'(?:href|action)="(/admin[^"#?]*)"')
_NUMBERS: Final = re.compile(r"\d+")
_TOO_LARGE: Final = frozenset({"/admin/structure/export"})  # what says that it has to be asked for in parts
_EMPTY: Final = frozenset({"check.list"})  # what lists nothing here, however much it may list
_FORMATS: Final = {"structure.export": ({"format": "yaml"}, {"under": f"{ANYWHERE}-worst", "sections": ["forums"]})}

Write = Callable[[int], Stored]
Question = tuple[str, int | None, dict[str, Any]]  # an operation, its target, and what it is given


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", ROOM)
    monkeypatch.setattr(pages, "MOST_BYTES", ROOM // 2)


@pytest.fixture
def _templates_compiled(gate: Gate, settings: Settings) -> None:
    """Compile what pages are made from beforehand; see savings.py. It takes three times as long where memory is measured."""
    environment = Panel(gate, settings).view.environment
    for name in environment.list_templates(["html"]):
        environment.get_template(name)


@pytest.fixture
def write_worst(gate: Gate, run: Run, key: MakeKey, community: Community) -> Write:
    """Store the worst, with so many copies of a node with the longest text."""
    return lambda copies: Writer(gate, run, key, worst_name, WORST.__getitem__).store("worst", copies)


@pytest.fixture
def write_ordinary(gate: Gate, run: Run, key: MakeKey, community: Community) -> Write:
    """Store as much of ordinary texts."""
    return lambda copies: Writer(gate, run, key, ordinary_name, lambda _: ORDINARY).store("ordinary", copies)


def find_questions(run: Run) -> list[Question]:
    """Return what can be read: of everything the usual, the most of it, and in the orders that need sorting."""
    found: list[Question] = []
    for name in CATALOGUE:
        operation = CATALOGUE[name]
        if not operation.writes and "externalId" not in {field.name for field in operation.fields}:
            target = _find_target(run, operation)
            found += ((name, target, asked) for asked in _list_questions(operation))
    return found


def _list_questions(operation: Operation) -> Iterator[dict[str, Any]]:
    fields = {field.name: field for field in operation.fields}
    given = {name: value for name, value in given_of(operation).items() if fields[name].required}
    most = {name: fields[name].type.schema()["maximum"] for name in ("perPage", "limit") if name in fields}
    yield given
    if most and operation.name not in _EMPTY:
        yield given | most
    yield from (given | {"sortBy": order} | most for order in ("name", "position", "updatedAt") if "sortBy" in fields)
    yield from (given | more for more in _FORMATS.get(operation.name, ()))


def _find_target(run: Run, operation: Operation) -> int | None:
    """Return the newest record that a read is about: one that was stored last."""
    if not operation.has_target:
        return None
    if operation.kind is not None:
        return int(run(f"{operation.kind.name}.list", sortDir="desc", perPage=1)["results"][0]["id"])
    if operation.resource == "events":
        return int(run("events.list", resource="forums", order="newest", limit=1)["results"][0]["seq"])
    return 1


def ask(run: Run, question: Question) -> str:
    """Run a read; return the message of its refusal, "" for none."""
    name, target, given = question
    try:
        run(name, target, **given)
    except Refused as refused:
        return refused.message
    return ""


def find_pages(open_page: Callable[[str], Any], stored: Stored, most_alike: int = 1) -> list[str]:
    """Follow all links of the panel, and open each address once.

    Of addresses that differ only in their numbers one is opened for each kind of nodes, and so many for all kinds together, since
    one function makes their pages. The first are those of the nodes that were stored, with another text on each.
    """
    waiting, seen, shapes, alike = [*_spread_texts(stored), "/admin"], dict[str, None](), set[str](), Counter[str]()
    while waiting:
        path = waiting.pop(0)
        shape = _NUMBERS.sub("0", path.removeprefix("/admin"))
        function = KIND.sub("/", shape)
        if path in seen or path.endswith("/sign-out") or (shape in shapes and alike[function] >= most_alike):
            continue
        shapes.add(shape)
        alike[function] += 1
        seen[path] = None
        page = open_page(path)
        if path not in _TOO_LARGE:
            assert page.status_code in {200, 303, 404, 405}, f"{path}: {page.status_code}"  # 404, 405: of forms that are sent
        if page.status_code == 200 and "text/html" in page.headers["content-type"]:
            waiting += _LINK.findall(page.text)
    return list(seen)


def _spread_texts(stored: Stored) -> list[str]:
    """Return the pages of nodes with all texts, each of another kind than the one before."""
    kinds = [kind for kind in stored if len(stored[kind]) == len(WORST)]
    return [f"/admin/{kinds[n % len(kinds)]}/{stored[kinds[n % len(kinds)]][n]}" for n in range(len(WORST))]


@pytest.mark.slow
@pytest.mark.usefixtures("_templates_compiled")
def test_nothing_takes_much_memory(run: Run, admin: Visitor, write_worst: Write) -> None:
    """Neither a read nor a dry run nor a page: none of them changes what the others find."""
    stored = write_worst(COPIES)
    peaks = _measure_reads(run) | _measure_dry_runs(run) | _measure_pages(admin, stored)
    assert {what: peak for what, peak in peaks.items() if peak > MOST} == {}


def _measure_reads(run: Run) -> dict[str, int]:
    peaks: dict[str, int] = {}
    refused: dict[str, set[str]] = {}
    for question in find_questions(run):
        with MemoryMeter() as meter:
            message = ask(run, question)
        refused.setdefault(message, set()).add(question[0])
        peaks[str(question)] = meter.peak
    assert len(peaks) > 80
    assert refused.keys() <= {"", "INVALID_ID", *SIZES}, refused
    assert {"forums.list", "categories.level"} <= refused["PAGE_TOO_LARGE"]
    assert {"forums.tree", "structure.export"} <= refused["TREE_TOO_LARGE"]
    return peaks


def _measure_dry_runs(run: Run) -> dict[str, int]:
    peaks: dict[str, int] = {}
    done = 0
    for name in (name for name in CATALOGUE if CATALOGUE[name].writes):
        operation = CATALOGUE[name]
        names = {field.name for field in operation.fields}
        target = _find_full(run, operation.kind) if operation.has_target and operation.kind else _find_target(run, operation)
        for more in ({}, {"withChildren": True}, {"deleteChildrenOrMove": -1}, {"deleteCreated": True}):
            if not more.keys() <= names:
                continue
            with MemoryMeter(of_write=True) as meter:
                done += not ask(run, (name, target, {**given_of(operation), **more, "dryRun": True}))
            peaks[f"{name} {more}"] = meter.peak
    assert done > 40
    return peaks


def _find_full(run: Run, kind: NodeKind) -> int:
    """Return the node below which the others of its kind were stored; of a kind without a tree, the last one."""
    full = run(f"{kind.name}.list", externalIds=[f"{ANYWHERE}-worst"])["results"]
    return int((full or run(f"{kind.name}.list", sortDir="desc", perPage=1)["results"])[0]["id"])


def _measure_pages(admin: Visitor, stored: Stored) -> dict[str, int]:
    peaks: dict[str, int] = {}

    def open_page(path: str) -> Any:
        with MemoryMeter(of_write=True) as meter:  # some try what they ask about
            page = admin.get(path.removeprefix("/admin"))
        peaks[path] = meter.peak
        return page

    assert len(find_pages(open_page, stored)) > 90
    return peaks


@pytest.mark.slow
def test_no_text_costs_much_more_than_an_ordinary_one(run: Run, admin: Visitor, write_worst: Write, write_ordinary: Write) -> None:
    def open_page(path: str) -> Any:
        return admin.get(path.removeprefix("/admin"))

    stored = write_ordinary(40)
    ordinary: dict[str, float] = {}
    for what, read in _list_reads(run, open_page, stored):
        shape = _NUMBERS.sub("0", what)
        ordinary[shape] = max(ordinary.get(shape, FLOOR), _measure(read))
    stored = write_worst(40)
    long: dict[str, str] = {}

    def compare(what: str, read: Callable[[], Any]) -> Any:
        usual = ordinary.get(_NUMBERS.sub("0", what), FLOOR)
        answers: list[Any] = []
        took = min(_measure_until(lambda: answers.append(read()), TIMES * usual))
        if took > TIMES * usual:
            long[what] = f"{took:.2f} s, ordinary {usual:.3f} s"
        return answers[-1]

    for question in find_questions(run):
        compare(str(question), partial(ask, run, question))
    find_pages(lambda path: compare(path, partial(open_page, path)), stored, len(WORST))
    assert long == {}
    assert len(ordinary) > 120


def _list_reads(run: Run, open_page: Callable[[str], Any], stored: Stored) -> list[tuple[str, Callable[[], Any]]]:
    """Return all reads and pages, each done once before."""
    reads: list[tuple[str, Callable[[], Any]]] = [(str(question), partial(ask, run, question)) for question in find_questions(run)]
    for _, read in reads:
        read()
    return reads + [(path, partial(open_page, path)) for path in find_pages(open_page, stored)]


def _measure_until(read: Callable[[], Any], bound: float) -> Iterator[float]:
    """Measure what a read costs, up to three times: what is too much must be so each time."""
    for _ in range(3):
        yield (took := _measure(read))
        if took <= bound:
            return


def _measure(read: Callable[[], Any]) -> float:
    """Return how much processor time of this process a read takes."""
    start = time.process_time()
    read()
    return time.process_time() - start
