"""`trellis migrate`."""

from tests.cli.conftest import Environment, Trellis
from trellis.settings import Settings
from trellis.store.steps import find_newest_step, find_step


def test_it_brings_an_empty_database_to_the_newest_step_and_then_does_nothing(
    cli: Trellis, nowhere: Environment, empty_database: Settings
) -> None:
    nowhere(database_url=empty_database.database_url)

    first, second = cli("migrate"), cli("migrate")

    assert first.exit_code == second.exit_code == 0
    assert first.stdout.startswith("Ran step 0001.\n")
    assert first.stdout.endswith(" is ready.\n")
    assert second.stdout.startswith("Nothing to do: ")
    assert second.stdout.count("\n") == 1
    assert find_step(empty_database) == find_newest_step()


def test_it_leaves_what_is_there(trellis: Trellis) -> None:
    trellis("run", "forums.create", "name=News")

    assert trellis("migrate").exit_code == 0
    assert '"name": "News"' in trellis("run", "forums.get", "id=1").stdout
