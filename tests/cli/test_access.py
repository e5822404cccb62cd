"""`trellis may`: a sentence for people, a status for pipelines."""

import orjson

from tests.cli.conftest import Environment, Trellis
from tests.fixture_types import Run


def test_it_says_yes_or_no_and_why(trellis: Trellis, run: Run) -> None:
    run("forums.create", name="News")
    run("forums.create", name="Help")
    trellis("keys", "create", "Calendar sync", "--grant", "forums.delete", "--under", "forums:1")

    yes = trellis("may", "Calendar sync", "forums.delete", 1)
    assert (yes.exit_code, yes.stdout[:5]) == (0, "Yes: ")
    no = trellis("may", "Calendar sync", "forums.delete", 2)
    assert (no.exit_code, no.stdout) == (1, "No: the grant is only for forums:1, and forum 2 is outside.\n")
    told = trellis("may", "1", "forums.list", "--json")
    assert told.exit_code == 1
    assert orjson.loads(told.stdout)["condition"] == "grant"


def test_it_answers_for_groups(trellis: Trellis, run: Run) -> None:
    staff = run("groups.create", name="Staff")["id"]
    run("forums.create", name="News", permissions={"view": "*", "read": [staff]})
    assert trellis("may", f"group:{staff}", "forums.read", 1).stdout == "Yes: by name.\n"
    assert trellis("may", f"group:{staff}", "forums.reply", 1).exit_code == 1


def test_what_cannot_be_answered_is_not_a_no(trellis: Trellis, run: Run) -> None:
    run("forums.create", name="News")
    trellis("keys", "create", "Sync", "--grant", "forums.delete")
    unknown = trellis("may", "Nobody", "forums.list")
    assert (unknown.exit_code, unknown.stderr) == (
        2,
        "INVALID_ID: There is no key 'Nobody'. `trellis keys list` lists all keys; a revoked one is found only by its id.\n",
    )
    for asked in (
        ("group:999", "forums.read", 1),
        ("Sync",),
        ("Sync", "forums.deleet", 1),
        ("Sync", "forums.delete", 99),
        ("Sync", "forums.delete", 1, "--at", "tomorrow"),
        ("Sync", "forums.delete", 1, "--at", ""),  # as a shell variable that is not set gives
        ("Sync", "forums.delete", 1, "--address", ""),
    ):
        assert trellis("may", *asked).exit_code == 2


def test_a_database_that_cannot_answer_is_not_a_no(cli: Trellis, nowhere: Environment) -> None:
    nowhere(database_url="sqlite:///missing.db")
    result = cli("may", "Sync", "forums.delete")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "There is no database missing.db. To create it, run: trellis migrate\n"
