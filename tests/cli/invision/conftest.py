"""The old community, and the command that reads it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer import testing

from tests.cli.conftest import Trellis
from tests.old_community import KEY, OldCommunity
from trellis.core.structure import read_document
from trellis.invision.live import client

Import = Callable[..., testing.Result]
Document = dict[str, Any]


@pytest.fixture
def old() -> Iterator[OldCommunity]:
    """Return an old community that listens."""
    with OldCommunity() as community:
        yield community


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that the client made, none of which takes any time; those that keep its rate are left out."""
    pauses: list[float] = []
    monkeypatch.setattr(client, "_sleep", lambda seconds: pauses.append(seconds) if seconds >= 1 else None)
    return pauses


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """Write the key of the old community into a file."""
    file = tmp_path / "old.key"
    file.write_text(f"{KEY}\n", encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.fixture
def bring(trellis: Trellis, old: OldCommunity, key_file: Path, waits: list[float]) -> Import:
    """Run `trellis import invision` over the old community."""
    return lambda *options: trellis("import", "invision", old.url, "--key-file", key_file, "--rate", "1000", *options)


@pytest.fixture
def read() -> Callable[..., Document]:
    """Read a document that was written where the command line runs."""

    def read_text(name: str = "invision.yaml") -> Document:
        document: Document = read_document(Path(name).read_text(encoding="utf-8"))
        return document

    return read_text
