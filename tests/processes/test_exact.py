"""Two processes, random edits through every interface: no answer from memory is stale.

TRELLIS_TEST_EDITS says how many edits there are; after every twelfth one of the processes is killed in the middle of an edit.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

import pytest

from tests.api_fixtures import MakeService
from tests.community import Community
from tests.fixture_types import Run
from tests.processes.exact import FORUMS, LISTS, Comparison, Editor, Readers, Truth, kill_during_edit
from trellis.asgi import Application
from trellis.compose import compose
from trellis.settings import Settings

EDITS: Final = int(os.environ.get("TRELLIS_TEST_EDITS", "15"))
URL: Final = "http://api.example"


@pytest.fixture
def truth(settings: Settings) -> Iterator[Truth]:
    gate = compose(settings)
    asked = Truth(Application(replace(settings, answer_cache=0, public_url=URL, request_log_size=0), gate))
    yield asked
    asked.close()
    gate.store.close()


@pytest.mark.slow
@pytest.mark.timeout(max(600, 2 * EDITS))
def test_answers_in_memory_are_those_of_the_database(
    serve: MakeService, truth: Truth, community: Community, run: Run, engine: str
) -> None:
    keys = [
        run("keys.create", name=dialect, grants=["*", "structure.*", "webhooks.*", "events.*"], rateLimit=0, dialect=dialect)["key"]
        for dialect in ("trellis", "invision")
    ]
    run("keys.create", name="Another", grants=["forums.list"])
    services = [serve(rate_limit=0, public_url=URL) for _ in range(2)]
    dice = Random(EDITS)  # noqa: S311  # the same edits every time
    editor, compared = Editor(dice, keys[0], run), Comparison(truth, keys, at_once=engine == "sqlite")
    readers = Readers(keys, EDITS)
    for service in services:
        readers.start(service)
    try:
        for number in range(1, EDITS + 1):
            readers.awake.set()
            editor.edit(dice.choice(services))
            compared.wait(services)
            readers.awake.clear()
            forums = dice.sample(sorted({*range(1, 61), *editor.newest}), 8)  # of which some are gone
            paths = [*dice.sample(LISTS, 8), *(f"{FORUMS}/{forum}" for forum in forums)]
            compared.compare(services, paths)
            assert compared.stale == [], (number, compared.stale)
            if number % 12 == 0:
                at = dice.randrange(2)
                readers.awake.set()
                kill_during_edit(services[at], editor)
                services[at] = serve(rate_limit=0, public_url=URL)
                readers.start(services[at])
    finally:
        readers.end()
    print(f"{compared.answers:,} answers compared, {editor.done} edits, {editor.refused} refused; stale: {len(compared.stale)}")  # noqa: T201
    assert editor.done > EDITS // 3
