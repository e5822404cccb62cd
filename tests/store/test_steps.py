"""The steps of the database: the same that Alembic finds."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from trellis.store.steps import find_newest_step, is_known_step


def test_the_steps_are_those_that_alembic_runs() -> None:
    config = Config()
    config.set_main_option("script_location", "trellis.store:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert find_newest_step() == scripts.get_current_head()
    assert all(is_known_step(script.revision) for script in scripts.walk_revisions())


def test_a_step_of_a_newer_version_is_not_known() -> None:
    assert not is_known_step("9999")
