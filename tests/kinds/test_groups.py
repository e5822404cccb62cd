"""What is a group's own: the three that are built in, and a formatted name that is safe to show."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.community import ADMINISTRATORS, GUESTS, MEMBERS
from tests.fixture_types import Events, Run
from trellis.core.fields import Text
from trellis.errors import Refused
from trellis.kinds.groups import GROUPS


def formatted(name: str, prefix: str, suffix: str) -> str:
    fields = GROUPS.prepare({"prefix": prefix, "suffix": suffix, "builtIn": False})
    (derived,) = GROUPS.derived
    return str(derived.compute(name, fields))


class Seen(HTMLParser):
    """What a browser would make of a text: its words, elements and attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_guests_members_and_administrators_are_built_in(run: Run) -> None:
    listed = run("groups.list")["results"]
    assert [(group["id"], group["name"]) for group in listed] == [(2, "Guests"), (3, "Members"), (4, "Administrators")]
    assert [group["builtIn"] for group in listed] == [True] * 3


@pytest.mark.parametrize("group", [GUESTS, MEMBERS, ADMINISTRATORS])
def test_a_built_in_group_cannot_be_deleted(run: Run, group: int, events: Events) -> None:
    with pytest.raises(Refused, match=r"^CANNOT_DELETE: .* is built in and cannot be deleted") as refused:
        run("groups.delete", group)
    assert refused.value.code == "2C358/3"
    assert run("groups.get", group)["id"] == group
    assert events() == []


def test_a_built_in_group_can_be_renamed(run: Run) -> None:
    assert run("groups.update", GUESTS, name="Visitors")["builtIn"] is True


def test_nobody_makes_a_group_built_in(run: Run) -> None:
    made = run("groups.create", name="Moderators", builtIn=True)
    assert made["builtIn"] is False
    run("groups.delete", made["id"])


def test_the_first_group_of_ones_own_comes_after_the_built_in_ones(run: Run) -> None:
    assert run("groups.create", name="Moderators")["id"] == 5


def test_a_formatted_name_is_the_name_between_its_affixes(run: Run) -> None:
    made = run("groups.create", name="Mods & <friends>", prefix='<b><span title="Team">', suffix="</span></b>")
    assert made["formattedName"] == '<b><span title="Team">Mods &amp; &lt;friends&gt;</span></b>'
    assert (made["prefix"], made["suffix"]) == ('<b><span title="Team">', "</span></b>")


def test_a_formatted_name_without_affixes_is_the_escaped_name(run: Run) -> None:
    assert run("groups.get", MEMBERS)["formattedName"] == "Members"
    assert run("groups.create", name='<img src=x onerror="alert(1)">')["formattedName"].startswith("&lt;img ")


def test_a_formatted_name_follows_the_name(run: Run) -> None:
    made = run("groups.create", name="Mods", prefix="<i>", suffix="</i>")
    assert run("groups.update", made["id"], name="Moderators")["formattedName"] == "<i>Moderators</i>"


def test_an_affix_that_is_left_open_is_closed() -> None:
    assert formatted("Mods", "<b>", "") == "<b>Mods</b>"


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("<script>", "</script>"),
        ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>"),
        ("<style>", "</style>"),
        ("<!--", "-->"),
        ("<textarea>", "</textarea>"),
        ('<b title="', '">'),
        ("<b ", ">"),
        ("<a href='", "'>x</a>"),
        ('<a href="javascript:alert(1)">', "</a>"),
        ('<a href="java&#1;script:alert(1)">', "</a>"),
        ('<a href="javascript&#x2028;:alert(1)">', "</a>"),
        ('<b onmouseover="alert(1)">', "</b>"),
        ('<span style="position:fixed">', "</span>"),
        ("<svg><style>", "</style></svg>"),
        ("<math><mtext><table><mglyph><style>", "</style>"),
        ("\N{OBJECT REPLACEMENT CHARACTER}", "&#xFFFC;"),
        ("<b>\N{OBJECT REPLACEMENT CHARACTER}</b>", ""),
        ("&", ";"),
        ("&#60;script&#62;", ""),
    ],
)
def test_a_hostile_affix_does_no_harm_and_hides_no_name(prefix: str, suffix: str) -> None:
    seen = Seen(formatted("Mods", prefix, suffix))
    assert "Mods" in seen.words
    for tag, attributes in seen.elements:
        assert tag in {"a", "b", "span"}
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
        assert not str(attributes.get("href", "")).startswith("javascript:")


affixes = st.text(st.sampled_from("<>/\"'=&;#! -abiscrpt\N{OBJECT REPLACEMENT CHARACTER}"), max_size=30).map(Text().parse)


@given(affixes, affixes)
@example("&#xFFFC;", "")
@example("<b>", "</b>&#13;")
@example("<script></script> x", "x <script></script>")
@example("<a>", "<button><select><a>")
def test_what_is_kept_of_an_affix_stays_as_it_is(prefix: str, suffix: str) -> None:
    once = GROUPS.prepare({"prefix": prefix, "suffix": suffix})
    assert GROUPS.prepare(once) == once
    assert {name: Text(4000).parse(value) for name, value in once.items()} == once, "it cannot be sent back unchanged"


@given(st.text(max_size=20), affixes, affixes)
def test_a_name_is_shown_as_it_is_whatever_stands_around_it(name: str, prefix: str, suffix: str) -> None:
    html = formatted(f"({name})", prefix, suffix)
    assert f"({name})" in Seen(html.replace("\r", "&#13;")).words


def test_the_longest_formatted_name_is_as_long_as_the_reference_says(run: Run) -> None:
    made = run("groups.create", name='"' * 255, prefix="x" * 1000, suffix="x" * 1000)
    assert len(made["formattedName"]) == GROUPS.derived[0].type.schema()["maxLength"]


def test_an_affix_that_is_too_long_once_it_is_sanitised_is_refused(run: Run) -> None:
    with pytest.raises(Refused) as refused:
        run("groups.create", name="Ampersands", prefix="&" * 1000)
    assert [fault.field for fault in refused.value.faults] == ["prefix"]
    assert "5,000 characters" in refused.value.detail
