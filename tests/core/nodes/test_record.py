"""A node as callers see it: its address and its path."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.community import COMMUNITY_URL, Community
from tests.fixture_types import Run
from trellis.core.nodes.record import slug


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("News", "news"),
        ("Frühe Hilfe!", "fruhe-hilfe"),
        ("  C++ & C#  ", "c-c"),
        ("Café — crème", "cafe-creme"),
        ("ﬁne ½", "fine-12"),
        ("新聞", ""),
        ("!!!", ""),
        ("x" * 300, "x" * 80),
        ("y" * 79 + " z", "y" * 79),
    ],
)
def test_a_name_is_written_for_an_address(name: str, written: str) -> None:
    assert slug(name) == written


@given(st.text(max_size=300))
def test_whatever_the_name_its_slug_needs_no_escaping(name: str) -> None:
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,78}[a-z0-9])?|", slug(name))


@pytest.mark.parametrize(
    ("kind", "who", "tail"),
    [
        ("forums", "betas", "forums/3-betas/"),
        ("groups", "moderators", "groups/5-moderators/"),
        ("categories", "dark_skins", "categories/2-dark-skins/"),
        ("calendars", "holidays", "calendars/2-holidays/"),
        ("blogs", "notebook", "blogs/1-notebook/"),
    ],
)
def test_an_address_begins_with_the_communitys_own(run: Run, community: Community, kind: str, who: str, tail: str) -> None:
    assert run(f"{kind}.get", getattr(community, who))["url"] == f"{COMMUNITY_URL}/{tail}"


def test_a_path_names_everything_above(run: Run, community: Community) -> None:
    paths = {forum["name"]: forum["path"] for forum in run("forums.list")["results"]}
    assert paths["Betas"] == "News > Releases > Betas"
    assert paths["Interviews"] == "News > Interviews"
    assert paths["Help"] == "Help"


def test_equal_names_on_one_path_are_no_trouble(run: Run) -> None:
    top = run("forums.create", name="A > B")["id"]
    below = run("forums.create", name="A > B", parentId=top)["id"]
    assert run("forums.get", below)["path"] == "A > B > A > B"
