"""The steps of the database: the same that Alembic finds."""

from alembic.config import Config
from alembic.script import ScriptDirectory

from trellis.store.steps import is_known, newest


def test_the_steps_are_those_that_alembic_runs() -> None:
    config = Config()
    config.set_main_option("script_location", "trellis.store:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert newest() == scripts.get_current_head()
    assert all(is_known(script.revision) for script in scripts.walk_revisions())


def test_a_step_of_a_newer_version_is_not_known() -> None:
    assert not is_known("9999")
