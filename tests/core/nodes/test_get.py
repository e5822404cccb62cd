"""Reading one node: the record as it is now, and a refusal for an id that names nothing."""

from collections.abc import Iterator

import pytest

from tests.community import Community
from tests.conftest import runner
from tests.fixture_types import Clock, Events, Run
from trellis.compose import compose
from trellis.errors import Refused
from trellis.settings import Settings


@pytest.fixture
def elsewhere(settings: Settings, clock: Clock) -> Iterator[Run]:
    """Operations run by another process on the same database."""
    gate = compose(settings, clock=clock)
    yield runner(gate)
    gate.store.close()


@pytest.mark.parametrize(
    ("kind", "code"),
    [("groups", "1C358/1"), ("forums", "1F363/1"), ("blogs", "1B366/1"), ("calendars", "1L364/1"), ("categories", "1D365/1")],
)
def test_an_id_that_names_nothing_is_refused_with_the_kinds_code(run: Run, kind: str, code: str) -> None:
    for target in (999, 2**63 - 1, 0, -1, None):
        with pytest.raises(Refused, match=r"^INVALID_ID: There is no .* with the id") as refused:
            run(f"{kind}.get", target)
        assert refused.value.code == code, target


def test_an_id_of_another_kind_names_nothing_here(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=rf"^INVALID_ID: There is no calendar with the id {community.staff}\."):
        run("calendars.get", community.staff)


def test_a_parameter_is_refused_by_name(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'expand'"):
        run("forums.get", community.news, expand=1)


def test_reading_leaves_no_event(run: Run, community: Community, events: Events) -> None:
    known = len(events())
    run("forums.get", community.news)
    run("forums.list")
    assert len(events()) == known


def test_a_record_is_as_the_last_write_left_it_in_every_process(run: Run, elsewhere: Run, community: Community) -> None:
    for minimum in range(1, 6):
        answered = elsewhere("forums.update", community.betas, minContent=minimum)
        assert run("forums.get", community.betas) == elsewhere("forums.get", community.betas) == answered
    run("forums.update", community.news, name="Bulletin")
    assert elsewhere("forums.get", community.betas)["path"] == "Bulletin > Releases > Betas"
