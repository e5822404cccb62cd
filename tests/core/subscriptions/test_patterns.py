"""The patterns of subscriptions: which there are, and which events each covers."""

from tests.community import CATALOGUE
from trellis.core.events import event_types
from trellis.core.subscriptions import event_patterns, is_subscribed


def test_a_pattern_covers_its_event_those_of_its_resource_or_all() -> None:
    assert is_subscribed(["*"], "forum.moved")
    assert is_subscribed(["forum.*"], "forum.moved")
    assert is_subscribed(["blog.deleted", "forum.moved"], "forum.moved")
    assert not is_subscribed(["forum.created", "category.*"], "forum.moved")


def test_the_patterns_begin_with_those_that_cover_most() -> None:
    assert event_patterns(event_types(CATALOGUE.values()))[:2] == ("*", "group.*")
