"""The command that serves the community over HTTP."""

import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import typer
import uvicorn

from trellis import __version__
from trellis.admin import PREFIX, first_run_link
from trellis.cli.community import act, community, explaining, list_all
from trellis.cli.demo import load_sample
from trellis.cli.doctor import State, judge_clocks
from trellis.cli.limits import OncePerMinute, limits_of, make_protocol, raise_descriptors
from trellis.cli.loading import uncollected
from trellis.cli.terminal import MISUSED, Failure, refuse_empty, show
from trellis.cli.workers import GaveUp, Workers, run_server
from trellis.core.admins import create_demo_administrator
from trellis.core.gate import Gate
from trellis.http.routes import REFERENCE
from trellis.http.server import ServerHooks
from trellis.logs import configure_logs
from trellis.settings import Settings, variable
from trellis.store.condition import Condition, describe_database, explain_condition, find_condition, find_file
from trellis.store.inspection import inspect
from trellis.store.sqlite import describe_wal_reset_bug

_BACKLOG: Final = 2048  # connections that may wait to be accepted
_DEMO: Final = "Demo"

log = logging.getLogger(__name__)


def serve(
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; 0.0.0.0 means all addresses of this machine.",
            callback=refuse_empty("Give an address; 0.0.0.0 means all addresses of this machine."),
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 means any free port.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that share the work.")] = 1,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Load the sample community into an empty one, and print a key that may do everything."),
    ] = False,
) -> None:
    """Serve the REST API, its reference and the administration panel. A SQLite database is created and brought up to date first."""
    settings = Settings.load()
    configure_logs(settings)
    # From the start, which may take minutes: a supervisor would take the end by this signal for one that was wanted.
    signal.signal(signal.SIGHUP, lambda *_: log.warning("SIGHUP replaces workers, and there are none now; nothing was done."))
    _judge_library(settings, workers)
    with _bound(host, port) as listener, _bound_for_metrics(settings, port) as apart:
        address = _address(host, listener.getsockname()[1])
        settings = _settle_community(settings, address) if demo else settings
        with explaining(settings):
            _bring_up_to_date(settings)
        with community(settings) as gate:
            shown = _demonstrate(gate) if demo else None
            way_in = _way_in(gate, settings, address, demo=demo)
            engine = gate.store.describe_engine()
            _judge_clock(gate)
        _listen(listener, host, port)
        if apart is not None:
            _listen(apart, *_split_listener(settings), variable("metrics_listen"))
        with suppress(Failure):  # the output goes to a full disk, which a service that is running already would not notice either
            _announce(address, settings.public_url or address, shown, way_in)
        _log_start(settings, address, workers, engine)
        if apart is not None:
            log.info("The metrics are at %s/metrics.", _address(*apart.getsockname()[:2]))
        _run(settings, (listener,) if apart is None else (listener, apart), workers)


def _judge_library(settings: Settings, workers: int) -> None:
    """Warn if this SQLite loses writes when two processes write, and refuse to start several workers."""
    if find_file(settings) is None or (bug := describe_wal_reset_bug()) is None:
        return
    if workers > 1:
        raise Failure(f"With this SQLite only one process may use a database: leave --workers at 1. {bug}", MISUSED)
    log.warning("No other process may use the database while this one does. %s", bug)


def _judge_clock(gate: Gate) -> None:
    """Warn if the clock is wrong: expiry and purging depend on it."""
    with gate.store.reading() as tx:
        found = inspect(tx)
    for finding in judge_clocks(found, datetime.fromisoformat(gate.now())):
        if finding.state is not State.GOOD:
            log.warning("%s %s", finding.told, finding.action)


def _bound(host: str, port: int, option: str = "--port") -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, UnicodeError, TypeError) as error:  # the last two: a name with a part that is too long, or not in UTF-8
        listener.close()
        raise Failure(_unbound(host, port, error, option)) from None
    return listener


@contextmanager
def _bound_for_metrics(settings: Settings, port: int) -> Iterator[socket.socket | None]:
    """Bind the port of the metrics, if they have one of their own."""
    if settings.metrics_listen is None:
        yield None
        return
    name = variable("metrics_listen")
    if not settings.has_metrics:
        both = f"{variable('metrics_token')} or {variable('metrics_allow')}"
        raise Failure(f"{name} is set, but nobody may read the metrics: set {both} too.", MISUSED)
    host, own = _split_listener(settings)
    if own == port != 0:
        raise Failure(f"{name} and --port are both {port}: the metrics need a port that nothing else has.", MISUSED)
    with _bound(host, own, name) as listener:
        yield listener


def _split_listener(settings: Settings) -> tuple[str, int]:
    host, _, port = (settings.metrics_listen or "").rpartition(":")
    return host.strip("[]"), int(port)


def _listen(listener: socket.socket, host: str, port: int, option: str = "--port") -> None:
    """Start listening: from here on, callers who come before the service is ready wait, and nobody is turned away."""
    try:
        listener.listen(_BACKLOG)
    except OSError as error:  # another program was bound to the port as well, and was quicker
        raise Failure(_unbound(host, port, error, option)) from None


def _unbound(host: str, port: int, error: OSError | UnicodeError | TypeError, option: str = "--port") -> str:
    if isinstance(error, socket.gaierror | UnicodeError | TypeError):
        return f"The host '{host}' is not an address of this machine."
    if isinstance(error, PermissionError):
        return f"Port {port} is only for privileged users. Choose another with {option}, above 1023."
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use by another program. Stop that one, or choose another with {option}."
    return f"The service cannot listen on {host}, port {port}: {error.strerror or error}."


def _bring_up_to_date(settings: Settings) -> None:
    at = find_condition(settings)
    if at is Condition.READY:
        return
    if at in {Condition.NEWER, Condition.FOREIGN} or find_file(settings) is None:
        raise Failure(explain_condition(settings, at))
    from trellis.store.migrate import migrate  # noqa: PLC0415  # start-up time: Alembic is rarely needed

    made = at is not Condition.OLDER
    if not made:
        log.info("Bringing the database %s up to date. With a long request log this may take minutes.", describe_database(settings))
    migrate(settings)
    log.info("Created a new database: %s" if made else "Brought the database %s up to date.", describe_database(settings))


def _settle_community(settings: Settings, address: str) -> Settings:
    """Use the address of this service as the community's, if that is not set, so that the addresses of records lead somewhere.

    This is only done in a demonstration: otherwise records, and so their ETags, must be the same in all processes, which may listen
    on several ports.
    """
    if settings.community_url == Settings().community_url:
        os.environ[variable("community_url")] = settings.public_url or address  # for workers too
    return Settings.load()


def _demonstrate(gate: Gate) -> tuple[str, str]:
    """Ensure that there are a sample community and a key that may do everything; return the key, and what to say about it."""
    load_sample(gate)
    mine = [key["id"] for key in list_all(gate, "keys.list") if key["name"] == _DEMO and key["state"] == "active"]
    if not mine:
        return str(act(gate, "keys.create", {"name": _DEMO, "grants": ["*"]}).value["key"]), "may do everything"
    act(gate, "keys.update", {"grants": ["*"]}, mine[-1])
    renewed = str(act(gate, "keys.rotate", {"overlapDays": 1}, mine[-1]).value["key"])
    return renewed, "may do everything; the one before it is valid for another day"


def _address(host: str, port: int) -> str:
    if host in {"0.0.0.0", "::"}:  # noqa: S104  # what was asked for; a browser needs an address
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _way_in(gate: Gate, settings: Settings, address: str, *, demo: bool) -> tuple[str, ...]:
    """Return lines on how to enter the panel: as the demonstration's administrator, or by a one-time link on the first run."""
    made = create_demo_administrator(gate) if demo else None
    link = first_run_link(gate, settings.public_url or address)
    if made is not None:
        login, password = made
        return (f"Sign in as: {login}", f"Password:   {password}  (generated just now, and shown only once)")
    if link is not None:
        return ("", "There is no administrator yet. Create the first one here, within an hour:", f"  {link}")
    return ()


def _announce(address: str, public: str, demo: tuple[str, str] | None, way_in: tuple[str, ...]) -> None:
    """Print where everything is. Browsers need the public address: sessions and passkeys are bound to it."""
    show(f"Base URL:   {address}/api")
    show(f"Reference:  {address}{REFERENCE}")
    show(f"Panel:      {public}{PREFIX}")
    for line in way_in:
        show(line)
    if demo is not None:
        key, about = demo
        show(f"Demo key:   {key}  ({about})")
        show()
        show("Try it, in another terminal:")
        show(f"  API={address}/api")
        show(f"  API_KEY={key}")
        show('  curl -H "Authorization: Bearer $API_KEY" "$API/forums/forums?perPage=3&pretty"')
    sys.stdout.flush()


def _log_start(settings: Settings, address: str, workers: int, engine: str) -> None:
    told = ", ".join(f"{name}={value}" for name, value in settings.changed.items()) or "all at their defaults"
    processes = "1 process" if workers == 1 else f"{workers} processes"
    database = f"{engine}, {describe_database(settings)}"
    log.info("Trellis %s listens on %s, in %s. The database: %s.", __version__, address, processes, database)
    log.info("Settings: %s.", told)


def _run(settings: Settings, listeners: Sequence[socket.socket], workers: int) -> None:
    """Serve; the second listener, if there is one, is for the metrics."""
    metrics_port = listeners[1].getsockname()[1] if len(listeners) > 1 else None
    config = partial(_config, settings, raise_descriptors(), metrics_port)
    try:
        if workers == 1:
            run_server(config(), listeners)
            return
        with _make_shared_folder() as shared:
            Workers(partial(config, Path(shared)), listeners, workers).run()
    except GaveUp as error:
        raise Failure(str(error)) from None
    finally:
        log.info("Trellis has stopped.")


def _make_shared_folder() -> TemporaryDirectory[str]:
    """Make the folder in which workers share their metrics. Raises Failure."""
    try:
        return TemporaryDirectory(prefix="trellis-")
    except OSError as error:
        raise Failure(
            f"The workers need a folder in which they share their metrics, and it cannot be created: {error.strerror or error}. "
            "Free some space, or set TMPDIR to a folder that this process may write to."
        ) from None


def _load_application(settings: Settings, shared: Path | None, metrics_port: int | None, hooks: ServerHooks) -> Any:
    """Load and create the application, in the process that serves, with the settings of the first start.

    The file of settings may have changed since, and a worker must not serve another database than its siblings.
    """
    with uncollected():
        return import_module("trellis.asgi").create(settings, shared, metrics_port, hooks)


def _config(settings: Settings, descriptors: int, metrics_port: int | None, shared: Path | None = None) -> uvicorn.Config:
    """Configure the server and its log, in the process that serves. `shared` is a folder that all workers share."""
    configure_logs(settings)
    logging.getLogger("uvicorn.error").addFilter(OncePerMinute())  # the parser warns there of requests that it cannot read
    hooks, limits = ServerHooks(), limits_of(settings, descriptors)
    return uvicorn.Config(
        partial(_load_application, settings, shared, metrics_port, hooks),
        factory=True,
        loop="uvloop",
        http=make_protocol(limits, hooks, metrics_port),
        ws="none",
        interface="asgi3",
        lifespan="on",
        access_log=False,  # the request log has them
        server_header=False,
        date_header=True,
        proxy_headers=bool(limits.proxies),
        forwarded_allow_ips=list(limits.proxies),
        backlog=_BACKLOG,
        timeout_graceful_shutdown=30,
        log_level="warning",
        log_config=None,
    )
