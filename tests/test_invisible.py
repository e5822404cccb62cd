"""Characters that nobody can see: refused in names and logins, or kept from turning what is around them."""

import pytest

from tests.fixture_types import Events, Run
from trellis.core.fields import Invalid, Text, escape_unsafe, isolate
from trellis.errors import Refused
from trellis.invisible import remove_invisible

_NAME = Text(255, 1, visible=True)


@pytest.mark.parametrize(
    "text",
    [
        *("ad\u200bmin", "ad\u200cmin", "ad\u200dmin", "ad\u00admin", "ad\u2060min", "ad\ufeffmin", "ad\u034fmin"),
        *(
            "\u3164",
            "\uffa0",
            "\u115f",
            "\u2800",
            "News\u2800",
            "\u2800\u280b",
            "News\ufe0f",
            "1\ufe0f2",
            "News\U000e0041",
            "\u200dNews",
            "News\u200d",
            "\U0001f468\u200dx",
            "l\ufe0f",
            "News\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e0041\U000e007f",
        ),
    ],
)
def test_what_takes_no_room_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="invisible characters; there is U\\+"):
        _NAME.parse(text)
    assert Text(255, 1).parse(text) == text  # a description may hold it


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Ünïcödé",
            "掲示板",
            "العربية",
            "עברית",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467",
            "\u2764\ufe0f",
            "\u2764\ufe0f\u200d\U0001f525",
        ),
        *("\u2139\ufe0f Help", "\u203c\ufe0f", "\u2194\ufe0f Trade", "\u2714\ufe0e", "\U0001f642\u200d\u2194\ufe0f"),
        *(
            "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
            "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f Football",
        ),
        *(
            "1\ufe0f\u20e3",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0915\u094d\u200d\u0937",
            "\u2813\u280a\u2800\u2801",
        ),
    ],
)
def test_joiners_and_blanks_are_taken_where_scripts_and_emoji_need_them(text: str) -> None:
    assert _NAME.parse(text) == text


@pytest.mark.parametrize(
    ("operation", "raw", "field"),
    [
        ("forums.create", {"name": "Ne\u200bws"}, "name"),
        ("keys.create", {"name": "Plug\u2060in"}, "name"),
        ("admins.create", {"name": "Mi\u200dra", "login": "mira", "password": "kept in a tin box"}, "name"),
        ("admins.create", {"name": "Mira", "login": "mi\ufeffra", "password": "kept in a tin box"}, "login"),
        ("blogs.create", {"name": "Notes", "owner": "Mi\u200bra"}, "owner"),
    ],
)
def test_names_and_logins_refuse_them(run: Run, events: Events, operation: str, raw: dict[str, str], field: str) -> None:
    with pytest.raises(Refused) as refused:
        run(operation, **raw)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert events() == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("News", "News"),
        ("עברית", "עברית"),
        ("\u202egnp.exe", "\u2068\u202egnp.exe\u2069"),
        ("a\u2069\u202eb", "\u2068a\u202eb\u2069"),  # the end of an isolation that it has not begun
        ("a\u2067b", "\u2068a\u2067b\u2069\u2069"),
        ("a\u2067b\u2069c", "\u2068a\u2067b\u2069c\u2069"),
    ],
)
def test_a_name_is_isolated_where_it_would_turn_what_is_around_it(text: str, shown: str) -> None:
    assert isolate(text) == shown


def test_a_terminal_is_neither_steered_nor_turned() -> None:
    assert escape_unsafe("a\u202eb\x1b[2Jc\rd\tε\n") == "a\\u202eb\\u001b[2Jc\\u000dd\tε\n"
    assert escape_unsafe(b"k\xf6pie".decode(errors="surrogateescape")) == "k\\udcf6pie"


def test_what_cannot_be_seen_is_taken_out_and_what_has_a_use_stays() -> None:
    assert remove_invisible("\u200bNe\u200bws\ufeff \u2060") == "News"
    assert remove_invisible("\u200b\u200d") == ""
    family = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
    assert remove_invisible(f"{family} \u2764\ufe0f") == f"{family} \u2764\ufe0f"
