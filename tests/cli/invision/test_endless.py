"""What `trellis import invision` does about a community that would keep it busy for ever, or fill this machine."""

from http.server import BaseHTTPRequestHandler
from itertools import count

import pytest
from typer import testing

from tests.cli.invision.conftest import Import
from tests.old_community import Interruption, OldCommunity
from trellis.invision.live import client

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # none of this is about the database


def refused(result: testing.Result) -> str:
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


def test_it_gives_up_where_it_is_put_off_again_and_again(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    old.interruptions = [Interruption(429, {"retry-after": "1"})] * 50
    assert "Nothing was written; begin again later." in refused(bring())
    assert (len(old.requests), waits) == (11, [1] * 10)
