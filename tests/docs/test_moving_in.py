"""The run in docs/moving-in.md: what is typed there prints what is printed there."""

import re
import shlex
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.cli.conftest import Trellis, cli, nowhere, trellis
from tests.old_community import KEY, OldCommunity, calendar, category, forum, group

PAGE: Final = Path(__file__).parents[2] / "docs" / "moving-in.md"
ADDRESS: Final = "https://old.example/"
__all__ = ["cli", "nowhere", "trellis"]  # fixtures
_BLOCKS: Final = re.compile(r"<!-- run -->\n```console\n(.*?)```", re.DOTALL)
_COMMAND: Final = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def make_lists() -> dict[str, list[dict[str, object]]]:
    return {
        "core/groups": [
            group(2, "Guests"),
            group(3, "Members"),
            group(6, "Moderators", "<span style='color:#c00'>Moderators</span>"),
            group(9, "Administrators"),
        ],
        "forums/forums": [
            forum(3, "News", 20),
            forum(7, "Shop", kind="redirect"),
            forum(11, "Walkers", club=4),
            forum(20, "Projects", kind="category"),
        ],
        "calendar/calendars": [calendar(1, "Meetings", who=("*", "*", "3"))],
        "downloads/categories": [category(1, "Plans")],
        "blog/blogs": [],
    }


def run(trellis: Trellis, old: OldCommunity, block: str) -> None:
    """Run the commands of a block; see that each prints what is printed."""
    for line, printed in _COMMAND.findall(block):
        command, _, file = line.replace(ADDRESS, old.url).partition(" > ")
        result = trellis(*shlex.split(command)[1:])
        assert result.exit_code == (2 if " plan " in command else 0), result.output
        if file:
            Path(file).write_text(result.stdout, encoding="utf-8")
        else:
            assert result.stdout.replace(old.url, ADDRESS) == printed


def test_it_runs_as_printed(trellis: Trellis) -> None:
    first, again, leaving = _BLOCKS.findall(PAGE.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8").count("```console") == 3
    Path("old.key").write_text(KEY, encoding="utf-8")
    Path("old.key").chmod(0o600)
    with OldCommunity(make_lists()) as old:
        run(trellis, old, first)
        old.lists["forums/forums"][0]["name"] = "Announcements"
        run(trellis, old, again)
        assert orjson.loads(Path("applied.json").read_bytes())["counts"]["create"] == 6
        run(trellis, old, leaving)


def test_it_tells_of_every_option(trellis: Trellis) -> None:
    told = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", trellis("import", "invision", "--help").stdout))
    assert options >= {"--help", "--key-file", "--report"}
    assert [option for option in options - {"--help"} if option not in told] == []
