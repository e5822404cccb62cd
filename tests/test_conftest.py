"""The tests' own promises: they stay on this machine, and each begins with a database of its own."""

import socket

import pytest

from tests.community import Community
from tests.conftest import NewSettings
from tests.fixture_types import Run
from trellis.settings import Settings


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.com"])
def test_a_connection_that_would_leave_this_machine_is_refused(address: str) -> None:
    with pytest.raises(RuntimeError, match="Tests stay on this machine"):
        socket.create_connection((address, 80), timeout=1)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost"])
def test_a_connection_within_this_machine_is_made(address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection((address, server.getsockname()[1]), timeout=60):
        pass


@pytest.mark.parametrize("time", ["first", "second"])
def test_what_one_test_writes_no_other_finds(run: Run, time: str) -> None:
    assert run("forums.create", name=time)["id"] == 1


def test_a_test_may_have_several_databases(new_settings: NewSettings, settings: Settings) -> None:
    assert len({settings.database_url, new_settings().database_url, new_settings().database_url}) == 3


def test_the_cast_is_as_it_is_written_down(run: Run, community: Community) -> None:
    paths = [forum["path"] for forum in run("forums.list", sortBy="id")["results"]]
    assert paths == ["News", "News > Releases", "News > Releases > Betas", "News > Interviews", "Help", "Wiki", "Staff"]
    assert run("groups.get", community.moderators)["name"] == "Moderators"
