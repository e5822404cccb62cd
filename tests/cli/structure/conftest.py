"""Documents in files, in the folder in which the command line runs."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.conftest import Trellis

HEAD = "format: trellis/1\nname: site\n"
FORUMS = f"""{HEAD}forums:
- externalId: news
  name: News
  children:
  - externalId: betas
    name: Betas
- externalId: help
  name: Help
"""


class Screen(StringIO):
    """A terminal that keeps what it is shown."""

    def isatty(self) -> bool:
        return True


Write = Callable[..., Path]


@pytest.fixture
def write(trellis: Trellis) -> Write:
    """Write a document into a file where the command line runs; give its path."""
    del trellis  # which stands in its folder

    def write_text(text: str, name: str = "site.yaml") -> Path:
        file = Path(name)
        file.write_text(text, encoding="utf-8")
        return file

    return write_text


@pytest.fixture
def site(write: Write, trellis: Trellis) -> Path:
    """Apply a document with three forums; give its file."""
    file = write(FORUMS)
    assert trellis("apply", file, "--yes").exit_code == 0
    return file
