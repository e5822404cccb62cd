"""Work that would be done again in every test, and changes nothing in what they find."""

import gc
import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from compileall import compile_dir, compile_file
from contextlib import contextmanager
from functools import cache, lru_cache, partialmethod
from importlib import import_module
from pathlib import Path
from ssl import SSLContext
from types import CodeType, ModuleType
from typing import Any, Final

import httpx
import pytest
from _pytest.assertion import rewrite
from hypothesis.errors import HypothesisSideeffectWarning
from hypothesis.internal.constants_ast import constants_from_module
from jinja2 import Environment
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from sqlalchemy import Engine
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache
from starlette.routing import compile_path
from typer.main import get_command
from zxcvbn import zxcvbn

import trellis

_STATEMENTS: Final = 5_000  # that are kept compiled
_ADDRESSES: Final = 1_000  # that are kept taken apart
_COLLECTIONS: Final = (50_000, 20, 50)  # thresholds of the garbage collector; Python's own are for young objects 700 and 10
FOLDER: Final = "SAVINGS_OF_TRELLIS"  # names the folder to the services of the tests; not behind TRELLIS_, where the settings are


class _CompiledTemplates(FileSystemBytecodeCache):
    """What templates were compiled to, for all processes of a test run; it is used again only for the same source."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._loaded: dict[str, CodeType] = {}  # in this process, by name

    def load_bytecode(self, bucket: Bucket) -> None:
        name = self._get_cache_filename(bucket)
        if name in self._loaded:
            bucket.code = self._loaded[name]
            return
        super().load_bytecode(bucket)
        if bucket.code is not None:
            self._loaded[name] = bucket.code

    def _get_cache_filename(self, bucket: Bucket) -> str:
        """Name a template: what the panel and the reference share is compiled for each, since the panel formats values."""
        formats = bucket.environment.finalize is not None
        return str(Path(self.directory) / f"{bucket.key}-{bucket.checksum}-{'formatted' if formats else 'plain'}")


def share_templates(patch: pytest.MonkeyPatch) -> None:
    """Let every template be compiled once in a run: that takes longer than most of the tests of pages do."""
    compiled = _CompiledTemplates(os.environ[FOLDER])
    patch.setattr(Environment, "__init__", partialmethod(Environment.__init__, bytecode_cache=compiled))


def _share_paths(patch: pytest.MonkeyPatch) -> None:
    """Let the path of each page and endpoint be compiled once, and not for each application that a test makes."""
    patch.setattr("starlette.routing.compile_path", cache(compile_path))


def _share_statements(patch: pytest.MonkeyPatch) -> None:
    """Let SQLAlchemy compile a statement once for an engine, SQLite or PostgreSQL, and not for each database.

    All stores set up their dialects alike, so that one of a class is as good as another.
    """
    make, compiled = Engine.__init__, defaultdict[type, LRUCache[Any, Any]](lambda: LRUCache(_STATEMENTS))

    # SQLAlchemy passes those of its options whose names it finds here.
    def create(engine: Engine, pool: Any, dialect: Any, url: Any, hide_parameters: bool = False) -> None:  # noqa: FBT002
        make(engine, pool, dialect, url, hide_parameters=hide_parameters)
        engine._compiled_cache = compiled[type(engine.dialect)]

    patch.setattr(Engine, "__init__", create)
    patch.setattr(DefaultDialect, "__hash__", lambda dialect: hash(type(dialect)))
    patch.setattr(DefaultDialect, "__eq__", lambda dialect, other: type(dialect) is type(other))


def _share_what_servers_say(patch: pytest.MonkeyPatch) -> None:
    """Let SQLAlchemy ask for what it knows of a PostgreSQL server once, and not for each database: seven round trips.

    All databases of the tests are on one server, and are set up alike.
    """
    initialize: Any = PGDialect_psycopg.initialize
    known: dict[str, Any] = {}

    def share(dialect: Any, connection: Any) -> None:
        if not known:
            before = dict(vars(dialect))
            initialize(dialect, connection)
            known.update({name: value for name, value in vars(dialect).items() if name not in before or before[name] != value})
        vars(dialect).update(known)

    patch.setattr(PGDialect_psycopg, "initialize", share)


def _judge_passwords_once(patch: pytest.MonkeyPatch) -> None:
    """Let each password of administrators be judged once for the same words: most tests have the same few."""
    patch.setattr("zxcvbn.zxcvbn", _judge)


def _judge(password: str, user_inputs: Iterable[str]) -> Any:
    return _judge_once(password, tuple(user_inputs))


@lru_cache
def _judge_once(password: str, user_inputs: tuple[str, ...]) -> Any:
    return zxcvbn(password, user_inputs=list(user_inputs))


def _share_commands(patch: pytest.MonkeyPatch) -> None:
    """Let the command line be put together once, and not each time a test runs a command: that takes longer than many commands."""
    patch.setattr("typer.testing._get_command", cache(get_command))


def _share_certificates(patch: pytest.MonkeyPatch) -> None:
    """Let clients that ask for nothing special have one TLS context: each reads all authorities of the world for its own.

    The tests' clients speak to services without TLS, as what delivers webhooks mostly does; those with certificates of their own
    get a context of their own.
    """
    make, named = httpx.create_ssl_context, _read_certificate_names()

    @cache
    def share(trust_env: bool) -> SSLContext:
        return make(trust_env=trust_env)

    def create(*, verify: Any = True, cert: Any = None, trust_env: bool = True) -> SSLContext:
        is_usual = verify is True and cert is None and (not trust_env or _read_certificate_names() == named)
        return share(trust_env) if is_usual else make(verify, cert, trust_env)

    patch.setattr("httpx._transports.default.create_ssl_context", create)
    patch.setattr("httpx.create_ssl_context", create)


def _share_addresses(patch: pytest.MonkeyPatch) -> None:
    """Let a client take an address apart once: it looks at each character of it three times for each request."""
    for package in ("httpx", "httpx2"):
        parse = lru_cache(_ADDRESSES)(import_module(f"{package}._urlparse").urlparse)
        for module in ("_urlparse", "_urls"):
            patch.setattr(f"{package}.{module}.urlparse", parse)


def _read_certificate_names() -> tuple[str | None, ...]:
    """Return where the environment says that certificates are."""
    return os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")


@contextmanager
def known_beforehand(folder: Path) -> Iterator[None]:
    """Find out once what does not change while tests run; a folder keeps it for all processes of the run.

    httpx looks for a package that is not there at each request to a service in this process, in every folder where it could
    be: for the library of the event loop, which is asyncio's. So does httpcore for each lock of a connection.
    """
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        share_templates(patch)
        _share_commands(patch)
        _share_certificates(patch)
        _share_addresses(patch)
        _share_paths(patch)
        _share_statements(patch)
        _share_what_servers_say(patch)
        _judge_passwords_once(patch)
        patch.setattr("httpx._transports.asgi.is_running_trio", lambda: False)
        patch.setattr("httpcore._synchronization.current_async_library", lambda: "asyncio")
        yield


def compile_tests(config: pytest.Config, folder: Path) -> None:
    """Compile what is not compiled as it is, of the package and of a folder of tests, so that not each process does.

    So does each look for the constants in the package, from which Hypothesis makes examples: it keeps them by what a module reads.
    """
    compile_dir(package := Path(trellis.__file__).parent, quiet=1)
    with warnings.catch_warnings(action="ignore", category=HypothesisSideeffectWarning):  # that this takes time, once
        for path in package.rglob("*.py"):
            module = ModuleType(path.stem)
            module.__file__ = str(path)
            constants_from_module(module)
    state, patterns = config.stash[rewrite.assertstate_key], ("conftest.py", *config.getini("python_files"))
    for path in folder.rglob("*.py"):
        if not any(map(path.match, patterns)):
            compile_file(path, quiet=1)
            continue
        compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, compiled) is None:
            compiled.parent.mkdir(exist_ok=True)
            digest, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(state, code, digest, compiled)


def pause_collecting() -> None:
    """Search for no garbage while tests are collected: ten thousand of them stay, and are gone through again and again."""
    gc.disable()


def resume_collecting() -> None:
    """Search for garbage again, less often than by default, and not among what was collected: little of that is garbage."""
    gc.freeze()
    gc.set_threshold(*_COLLECTIONS)
    gc.enable()
