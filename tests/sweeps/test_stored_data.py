"""What one read, page or dry run costs when what is stored is the worst that may be.

There are some hundred nodes with long texts, and what a page or a tree may have together is a part of that here: so whatever reads
without a limit is told from what has one. What the processor does is compared with the same for ordinary texts, in the same run.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import pytest

from tests.admin.conftest import Visitor, _sign_in_once, _signed_in, _template, admin, mira, visitor
from tests.admin.everything import KIND
from tests.conftest import NewSettings, runner
from tests.fixture_types import Clock, Run
from tests.memory_meter import MemoryMeter
from tests.panel_client import PanelClient
from tests.sweeps.worst_texts import ANYWHERE, LONGEST, ORDINARY, SORTS, Stored, Writer, ordinary_name, worst_name, worst_texts
from trellis.admin.app import Panel
from trellis.compose import catalogue_of, compose
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

LONG: Final = LONGEST // 4  # characters: memory grows as texts do, so that the longest would only take longer
COPIES: Final = 400  # nodes of a kind with long texts: 10 MB
ROOM: Final = 3 * 2**20  # bytes: a hundred nodes, of which no page of the panel shows more at once
MOST: Final = 15 * 2**20  # bytes of memory: some hundred nodes, as they are read, as they are, and as they are shown or written
FEW: Final = 40  # nodes of a kind with the longest texts
TIMES: Final = 20  # what an ordinary text costs
FLOOR: Final = 0.01  # seconds of processor time; what costs less is not told from noise
CATALOGUE: Final = catalogue_of(KINDS)
SIZES: Final = frozenset({"PAGE_TOO_LARGE", "TREE_TOO_LARGE"})
_LINK: Final = re.compile(r'(?:href|action)="(/admin[^"#?]*)"')
_NUMBERS: Final = re.compile(r"\d+")
_TOO_LARGE: Final = frozenset({"/admin/structure/export"})  # what says that it has to be asked for in parts
_EMPTY: Final = frozenset({"check.list"})  # what lists nothing here, however much it may list
_FORMATS: Final = {"structure.export": ({"format": "yaml"}, {"under": ANYWHERE, "sections": ["forums"]})}

Read = Callable[[Run, Visitor], Any]
InOrdinary = Callable[[], tuple[Run, Visitor]]
Question = tuple[str, int | None, dict[str, Any]]  # an operation, its target, and what it is given


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", ROOM)
    monkeypatch.setattr(pages, "MOST_BYTES", ROOM // 2)


@pytest.fixture
def _compiled(gate: Gate, settings: Settings, run: Run) -> None:
    """Compile templates, and the many statements of a check, beforehand: it takes three times as long where memory is measured."""
    environment = Panel(gate, settings).view.environment
    for name in environment.list_templates(["html"]):
        environment.get_template(name)
    run("check.list")


@pytest.fixture
def in_ordinary(new_settings: NewSettings, admin: Visitor, clock: Clock) -> Iterator[InOrdinary]:
    """Make a community like the test's with as much of ordinary texts, in which everything has the same number."""
    with ExitStack() as opened:

        def make() -> tuple[Run, Visitor]:
            settings = new_settings()
            gate = compose(settings, clock=clock)
            opened.callback(gate.store.close)
            Writer(gate, run := runner(gate), ordinary_name, lambda _: ORDINARY).store(FEW)
            client = PanelClient(Panel(gate, settings), "http://panel.example", client=("192.0.2.7", 50000))
            client.cookies = admin.client.cookies
            return run, Visitor(opened.enter_context(client))

        yield make


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
    kinds = [kind for kind in stored if len(stored[kind]) == len(SORTS)]
    return [f"/admin/{kinds[n % len(kinds)]}/{stored[kinds[n % len(kinds)]][n]}" for n in range(len(SORTS))]


@pytest.mark.slow
@pytest.mark.usefixtures("community", "_compiled")
def test_nothing_takes_much_memory(gate: Gate, run: Run, admin: Visitor) -> None:
    """Neither a read nor a dry run nor a page: none of them changes what the others find."""
    stored = Writer(gate, run, worst_name, worst_texts(LONG).__getitem__).store(COPIES)
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
    full = run(f"{kind.name}.list", externalIds=[ANYWHERE])["results"]
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
@pytest.mark.usefixtures("community")
def test_no_text_costs_much_more_than_an_ordinary_one(
    engine: str, gate: Gate, run: Run, admin: Visitor, in_ordinary: InOrdinary
) -> None:
    """What costs next to nothing with the worst texts needs no comparison.

    What a page makes of each of them does not depend on the database: on PostgreSQL, it is opened with one.
    """
    reads: dict[str, Read] = {}
    costs: dict[str, float] = {}

    def measure(what: str, read: Read) -> Any:
        answers: list[Any] = []
        reads[what] = read
        costs[what] = _measure(lambda: answers.append(read(run, admin)))
        return answers[0]

    stored = Writer(gate, run, worst_name, worst_texts(LONGEST).__getitem__).store(FEW)
    for question in find_questions(run):
        measure(str(question), partial(_ask, question))
    find_pages(lambda path: measure(path, partial(_open, path)), stored, len(SORTS) if engine == "sqlite" else 1)
    assert len(costs) > (200 if engine == "sqlite" else 150)
    much = [what for what, cost in costs.items() if cost > TIMES * FLOOR]
    ordinary = in_ordinary() if much else (run, admin)
    long: dict[str, str] = {}
    for what in much:
        reads[what](*ordinary)  # the first time takes longer
        usual = max(FLOOR, _measure(partial(reads[what], *ordinary)))
        took = min(costs[what], *_measure_until(partial(reads[what], run, admin), TIMES * usual))
        if took > TIMES * usual:
            long[what] = f"{took:.2f} s, ordinary {usual:.3f} s"
    assert long == {}


def _ask(question: Question, run: Run, _: Visitor) -> str:
    return ask(run, question)


def _open(path: str, _: Run, admin: Visitor) -> Any:
    return admin.get(path.removeprefix("/admin"))


def _measure_until(read: Callable[[], Any], bound: float) -> Iterator[float]:
    """Measure once more what a read costs, up to twice: what is too much must be so each time."""
    for _ in range(2):
        yield (took := _measure(read))
        if took <= bound:
            return


def _measure(read: Callable[[], Any]) -> float:
    """Return how much processor time of this process a read takes."""
    start = time.process_time()
    read()
    return time.process_time() - start
