"""A group's page: what it can see and do, node by node."""

import re

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.community import GUESTS, Community
from tests.fixture_types import Events, Run


def _listed(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*>([^<]*)<', text)


def test_it_shows_every_node_in_which_the_group_may_do_something(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    page = admin.get(f"/groups/{community.patrons}/access?kind=forums")
    assert _listed(page.text) == ["News", "Releases", "Betas", "Interviews", "Help"]
    said = page_text(page)
    assert "The group has rights in 5 of 7 forums." in said
    assert "View 5" in said
    assert 'aria-label="Betas: Read" checked' in page.text
    assert "Yes, everyone" in said
    assert events() == before


def test_by_kind_and_option(admin: Visitor, community: Community) -> None:
    for query, names in (
        ("kind=forums&option=read", ["News", "Betas", "Releases", "Interviews", "Help"]),
        ("kind=forums&option=add", ["Help"]),
        ("kind=categories&option=download", ["Skins", "Dark skins"]),
        ("kind=blogs", ["Notebook"]),
        ("kind=blogs&option=groups", ["Notebook"]),
        ("kind=calendars&option=rsvp", []),
    ):
        assert sorted(_listed(admin.get(f"/groups/{community.patrons}/access?{query}").text)) == sorted(names), query


@pytest.mark.either_engine
def test_an_address_without_sense_shows_something_sensible(admin: Visitor, community: Community) -> None:
    for query in ("kind=nonsense", "kind=forums&option=nonsense", "page=-3", "page=zzz", "kind=groups"):
        assert admin.get(f"/groups/{community.patrons}/access?{query}").status_code == 200, query


def test_many_come_in_pages(admin: Visitor, run: Run) -> None:
    for number in range(53):
        run("calendars.create", name=f"C{number}", permissions={"view": "*"} if number % 2 else {"view": [GUESTS]})
    first = admin.get(f"/groups/{GUESTS}/access?kind=calendars&option=view")
    assert "Page 1 of 2" in page_text(first)
    assert _listed(admin.get(f"/groups/{GUESTS}/access?kind=calendars&option=view&page=2").text) == ["C50", "C51", "C52"]


def test_a_group_that_is_gone(admin: Visitor, community: Community, run: Run) -> None:
    run("groups.delete", community.patrons)
    page = admin.get(f"/groups/{community.patrons}/access")
    assert page.status_code == 404
    assert "Patrons" in page_text(page)
