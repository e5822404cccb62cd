"""What a structure document may hold: everything that is wrong with one is told at once, with its line, and nothing is done."""

from difflib import get_close_matches
from typing import Any

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import Run
from tests.memory_meter import MemoryMeter
from trellis.core.fields import suggestions
from trellis.core.structure import Unreadable, read_document, write_yaml
from trellis.core.structure.text import lined
from trellis.errors import Refused

HEAD = "format: trellis/1\nname: site\n"


def refuse(run: Run, document: Any, **more: Any) -> list[str]:
    with pytest.raises(Refused) as refused:
        run("structure.plan", document=document, **more)
    assert refused.value.message == "INVALID_DOCUMENT"
    return [fault.detail for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a: &x [1]\nb: *x", 1, "Anchors"),
        ("a: 1\nb: *x", 2, "Anchors"),
        ("a: !!python/object:os.system 1", 1, "Tags"),
        ("%TAG !a! tag:a\n---\na: !a!b 1", 1, "Tags such as %TAG"),
        *((f"a: 1\n...{line_break}%TAG !a! tag:a\n---\nb: 2", 3, "Tags") for line_break in ("\r", "\x85", "\u2028")),
        ("# 50,000 tags\n" + "".join(f"%TAG !a{at}! tag:a\n" for at in range(50_000)) + "---\na: 1", 2, "Tags"),
        ("a: 1\nb: 2\na: 3", 3, "line 1"),
        ("a:\n\t- b", 2, "tab"),
        ("a: [1", 2, "not YAML"),
        ("[" * 100_000, 1, "deep"),
        ("a: 1\n---\nb: 2", 2, "second document"),
        ("a: \x07", 1, "character"),
        ("a: 1\n? [x]\n: 2", 2, "name must be text"),
        ("a: 1\n2: b", 2, "name must be text"),
        ("a: " + "9" * 5_000, 1, "digits"),
        ("a: '" + "x" * (9 * 2**20) + "'", 1, "8 MiB"),
        ("a: b: c", 1, "not YAML"),
        ('{"a": 1,\n "a": 2}', 2, "line 1"),
        ('{"a": 1,\n "b": "\\ud83d"}', 2, "surrogate"),
        ('{"a": "\\ud83d\\ude00",\n\n "b"}', 3, "expected ':', not '}'"),
        ('{"a": "\\ud83d\\ude00",\n "b": "x', 2, "a string does not end on its line"),
        ('{"a": "\\ud83d\\ude00"}\n[]', 2, "expected nothing more, not '['"),
        ('{"a": [1, 2', 1, "expected ',' or ']', not the end of the text"),
        ('{"a": ' + "9" * 5_000 + "}", 1, "digits"),
        ('{"a":\n' * 251, 251, "deep"),
        ("{a: b,\n c: [}", 2, "not YAML"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int, told: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        read_document(text)
    assert unreadable.value.line == line
    assert told in unreadable.value.detail


def test_more_values_than_there_is_room_for_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lined.MOST_VALUES == 1_000_000
    monkeypatch.setattr(lined, "MOST_VALUES", 1_000)
    assert read_document("[" + "1,\n" * 998 + "1]")
    with pytest.raises(Unreadable, match="more than 1,000 values") as unreadable:
        read_document("[" + "1,\n" * 1_000 + "1]")
    assert unreadable.value.line == 1_000


@pytest.mark.parametrize("text", ["[" + "{},\n" * 10_000 + "1]", "- {}\n" * 10_001], ids=["JSON", "YAML"])
def test_more_mappings_than_there_is_room_for_are_not_read(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a hundred times as much memory as its text."""
    monkeypatch.setattr(lined, "MOST_MAPPINGS", 1_000)
    with MemoryMeter() as meter, pytest.raises(Unreadable, match="more than 1,000 mappings") as unreadable:
        read_document(text)
    assert unreadable.value.line == 1_001
    assert meter.peak < 1_500_000


@pytest.mark.parametrize("text", ['{"forums": [' + "{},\n" * 4 + "?", "forums:\n" + "- {}\n" * 4 + "?!"], ids=["JSON", "YAML"])
def test_a_text_with_too_many_entries_is_not_read_to_its_end(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lined.MOST_ENTRIES == 10_000
    monkeypatch.setattr(lined, "MOST_ENTRIES", 3)
    with pytest.raises(Unreadable, match=r"more than 3 nodes and keys.*with an under of its own"):
        read_document(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes", "yes"),
        ("a: 1:30", "1:30"),
        ("a: 2026-11-22", "2026-11-22"),
        ("a: 0o17", "0o17"),
        ("a: 0x1F", "0x1F"),
        ("a: .inf", ".inf"),
        ("a: .NaN", ".NaN"),
        ("a: 12", 12),
        ("a: '12'", "12"),
        ("a: true", True),
        ("a: ~", None),
        ("a:", None),
        ("a: .5", 0.5),
        ('{"a": [1, "b", null]}', [1, "b", None]),
        ("a: <<", "<<"),
        ("{a: b}", "b"),
    ],
)
def test_values_are_those_of_the_core_schema_with_decimal_numbers(text: str, value: Any) -> None:
    assert read_document(text) == {"a": value}


@pytest.mark.parametrize(
    "text", ["-" + "9" * 40, "+" + "9" * 40, "0." + "9" * 39, "-." + "9" * 40, "-1." + "9" * 30 + "e+" + "1" * 9]
)
@pytest.mark.parametrize("document", ["a: {number}", '{{"b": "\\ud83d\\ude00", "a": {number}}}'], ids=["YAML", "JSON"])
def test_of_a_number_digits_are_counted(document: str, text: str) -> None:
    if document.startswith("{") and text.startswith(("+", "-.")):
        pytest.skip("not a number in JSON")
    assert float(read_document(document.format(number=text))["a"]) == float(text)
    with pytest.raises(Unreadable, match="This number has more than 40 digits"):
        read_document(document.format(number=text + "1"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "\N{GRINNING FACE}"),
        (r'"a\/b\u0041\n\""', 'a/bA\n"'),
        ('"\x7f"', "\x7f"),
        ("[0, -1, 1.5, 2e3, true, false, null, {}, []]", [0, -1, 1.5, 2000.0, True, False, None, {}, []]),
        ('{"' + "k" * 2_000 + '": 1}', {"k" * 2_000: 1}),
        ('"yes"', "yes"),
        ('"12"', "12"),
    ],
)
def test_json_is_read_as_json(text: str, value: Any) -> None:
    assert read_document(f' \n{{"a":\t{text}}}\n') == {"a": value}


def test_what_json_has_is_known_with_its_line() -> None:
    found = read_document('{"a": 1,\n "b": [\n  {"c": "\\ud83d\\ude00",\n   "d": 1}]}')
    assert (found.lines, found["b"][0].line, found["b"][0].lines) == ({"a": 1, "b": 2}, 3, {"c": 3, "d": 4})


def test_a_document_of_json_is_refused_with_its_lines(run: Run, database: DatabaseState) -> None:
    text = (
        '{"format": "trellis/1", "name": "site",\n "forums": [\n  {"externalId": "a", "name": "\\ud83d\\ude00",\n   "colour": 1}]}'
    )
    with database.unchanged():
        assert refuse(run, text) == ["line 4: A forum has no 'colour'."]


def test_what_is_written_is_read_as_it_was() -> None:
    texts = [
        "yes",
        "null",
        "1",
        "1.5",
        "08",
        "1e5",
        "-.5",
        "",
        " a ",
        "a: b",
        "# c",
        "*",
        "&x",
        "!t",
        "a\nb\n",
        "é\N{GRINNING FACE}",
        "-",
        "'",
        '"',
        "\\",
    ]
    document = {"text": texts, "below": [{"a": None, "b": [True, 1, "x"], "c": {}, "d": []}]}
    assert read_document(write_yaml(document, ["A comment"])) == document


def test_all_that_is_wrong_is_told_at_once_with_file_and_line(run: Run, database: DatabaseState) -> None:
    text = (
        HEAD
        + """
groups:
- externalId: mods
  name: Moderators
- externalId: mods
  name: Others
forums:
- name: Without an id
- externalId: 12
  name: A number
- externalId: news
  name: News
  colour: red
  permissions:
    view: [mods, helpers]
    write: "*"
    read: everybody
- externalId: two words
  name: ''
- just text
calendars: {}
forum: []
"""
    )
    with database.unchanged():
        told = refuse(run, {"file": "site.yaml", "content": text})
    for expected in (
        "site.yaml, line 7: 'mods' is already the externalId of another group: site.yaml, line 5.",
        "site.yaml, line 10: externalId is needed",
        "site.yaml, line 11: externalId must be text of 1 to 255 visible characters without spaces, not 12. Put it in quotes.",
        "site.yaml, line 15: A forum has no 'colour'.",
        "site.yaml, line 18: There is no option 'write'",
        "site.yaml, line 19: permissions.read must be",
        "site.yaml, line 20: externalId must be",
        "site.yaml, line 21: name is needed",
        "site.yaml, line 9: A forum must have members",
        "site.yaml, line 23: calendars must be a list",
        "site.yaml, line 24: There is no section 'forum'. Did you mean forums?",
    ):
        assert any(one.startswith(expected) for one in told), (expected, told)


def test_unknown_groups_are_told_with_their_lines(run: Run, database: DatabaseState) -> None:
    text = (
        HEAD
        + """forums:
- externalId: a
  name: A
  permissions: {view: [guests, nobody]}
- externalId: b
  name: B
  permissions:
    read: [gone]
"""
    )
    advice = "Give this id to a group, or put the group into the section groups."
    with database.unchanged():
        assert refuse(run, text) == [
            f"line 6: There is no group with the external id 'nobody'. {advice}",
            f"line 9: There is no group with the external id 'gone'. {advice}",
        ]


def test_values_that_an_operation_refuses_are_told_with_their_lines(run: Run, database: DatabaseState) -> None:
    text = HEAD + "calendars:\n- externalId: a\n  name: A\n  color: pink\n- externalId: b\n  name: B\n  approveEvents: perhaps\n"
    with database.unchanged():
        told = refuse(run, text)
    assert [one.partition(":")[0] for one in told] == ["line 6", "line 9"]


NO_DOCUMENTS: tuple[tuple[Any, str], ...] = (
    ("", "A document begins with"),
    ("[]", "A document begins with"),
    ("name: x\nforums: []", "format must be trellis/1"),
    ("format: trellis/2\nname: x\nforums: []", "format must be trellis/1"),
    ("format: trellis/1\nforums: []", "name must be text"),
    (HEAD + "under: a\nforums: []\ncalendars: []", "under needs exactly one section"),
    (HEAD + "under: a\ncalendars: []", "under needs exactly one section"),
    (HEAD + "under: nowhere\nforums:\n- {externalId: a, name: A}", "there is no forum with the external id 'nowhere'"),
    ([HEAD + "forums: []", "format: trellis/1\nname: other\ncalendars: []"], "must have the same name"),
    ([HEAD + "forums: []", HEAD + "forums: []"], "already in another of the documents"),
)


def test_what_is_no_document(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        for document, told in NO_DOCUMENTS:
            assert any(told in one for one in refuse(run, document)), document


def test_a_node_below_itself_is_refused(run: Run, database: DatabaseState) -> None:
    top = run("forums.create", name="Top", externalId="top")["id"]
    run("forums.create", name="Below", externalId="below", parentId=top)
    with database.unchanged():
        told = refuse(run, HEAD + "under: below\nforums:\n- {externalId: top, name: Top}")
        assert any("cannot be moved under" in one for one in told)
        assert "under names it" in refuse(run, HEAD + "under: top\nforums:\n- {externalId: top, name: Top}")[0]


@pytest.mark.slow
def test_more_than_ten_thousand_nodes_are_refused(run: Run) -> None:
    entries = [{"externalId": f"f{number}", "name": "F"} for number in range(10_001)]
    assert "10,000" in refuse(run, {"format": "trellis/1", "name": "site", "forums": entries})[0]


def test_keys_count_as_nodes_do(run: Run) -> None:
    nodes, keys = ([{"externalId": "f", "name": "F"}], [{"name": f"Key {number}"} for number in range(10_000)])
    (told,) = refuse(run, {"format": "trellis/1", "name": "site", "forums": nodes, "keys": keys})
    assert told.startswith("keys: There are more than 10,000 nodes and keys. Write several documents")


def test_a_name_of_a_key_is_in_one_of_the_documents_only(run: Run, database: DatabaseState) -> None:
    text = HEAD + "keys:\n- {name: Sync}\n"
    with database.unchanged():
        told = refuse(run, [{"file": file, "content": text} for file in ("a.yaml", "b.yaml")])
    assert told == ["b.yaml, line 4: 'Sync' is already the name of another key: a.yaml, line 4."]


def test_very_many_documents_are_refused_without_reading_them(run: Run, database: DatabaseState) -> None:
    assert run("structure.plan", document=["format: trellis/1\nname: site"] * 250, allowEmpty=True)["changes"] == []
    with database.unchanged():
        told = refuse(run, ["a"] * 300_000)
    assert told == ["document has 300,000 documents; at most 250 are allowed."]


@pytest.mark.parametrize("more", [{}, {"allowEmpty": True, "prune": True}])
def test_an_empty_list_of_documents_is_no_document(run: Run, database: DatabaseState, more: dict[str, Any]) -> None:
    with database.unchanged():
        (told,) = refuse(run, [], **more)
    assert "begins with the line 'format: trellis/1'" in told


def test_of_very_many_faults_two_hundred_are_told(run: Run) -> None:
    text = HEAD + "forums:\n" + "- {name: F}\n" * 1000
    with pytest.raises(Refused) as refused:
        run("structure.plan", document=text)
    assert (len(refused.value.faults), refused.value.more_faults) == (200, 800)


def test_passwords_from_the_environment_are_read_by_the_command_line_only(run: Run) -> None:
    text = HEAD + "forums:\n- externalId: a\n  name: A\n  password: {env: SECRET}\n"
    assert refuse(run, text) == ["line 6: Only `trellis plan` and `trellis apply` read password from the environment."]


def test_a_very_long_name_is_not_sent_back(run: Run) -> None:
    entry = {"externalId": "a", "name": "A", "x" * 100_000: 1}
    with pytest.raises(Refused) as refused:
        run("structure.plan", document={"format": "trellis/1", "name": "site", "y" * 100_000: 1, "forums": [entry]})
    assert [len(fault.field) for fault in refused.value.faults] == [100, len("forums[0].") + 100]
    assert len(refused.value.detail) < 1000


@pytest.mark.parametrize("expires", ["90d", "1000d", "2000h "])
def test_a_key_does_not_expire_a_while_after_each_apply(run: Run, expires: str) -> None:
    keys = [{"name": "Sync", "expires": expires}]
    (told,) = refuse(run, {"format": "trellis/1", "name": "site", "keys": keys})
    assert "a duration would start again with each apply" in told


def test_a_grant_does_not_end_a_while_after_each_apply(run: Run) -> None:
    keys = [{"name": "Sync", "grants": ["forums.list"], "bounds": {"forums.list": {"until": "7d"}}}]
    (told,) = refuse(run, {"format": "trellis/1", "name": "site", "keys": keys})
    assert "until of 'forums.list' must be a timestamp or null: a duration would start again with each apply" in told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a\tb", "line 4: name must not contain control characters; there is U+0009 at offset 1."),
        ("x" * 101, "line 4: name is 101 characters long; at most 100 are allowed."),
        (" ", "line 4: name must not be empty: it needs 1 to 100 characters."),
    ],
)
def test_a_name_that_no_key_can_have_is_told_with_its_line(run: Run, database: DatabaseState, name: str, told: str) -> None:
    with database.unchanged():
        assert refuse(run, write_yaml({"format": "trellis/1", "name": "site", "keys": [{"name": name}]}, [])) == [told]


def test_all_that_is_wrong_with_keys_is_told_with_its_lines(run: Run, database: DatabaseState) -> None:
    run("keys.create", name="Twice")
    run("keys.create", name="Twice")
    text = HEAD + "keys:\n- {name: Twice}\n- name: A\n  rateLimit: -1\n  addresses: [x]\n- name: Good\n- name: B\n  perDay: -1\n"
    with database.unchanged():
        told = refuse(run, text)
    assert told == [
        "line 4: There are 2 unrevoked keys with this name. Rename all but one.",
        "line 7: addresses must be addresses or networks such as 192.0.2.0/24, not 'x'.",
        "line 6: rateLimit must be a whole number from 0 to 10000000, or null, not -1.",
        "line 10: perDay must be a whole number from 0 to 1000000000, or null, not -1.",
    ]


def test_a_few_of_the_unknown_members_of_all_entries_are_compared(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing those of each entry would take ten seconds of processor time for a document of 1 MiB."""
    compared: list[str] = []

    def compare(name: str, known: Any, most: int) -> list[str]:
        compared.append(name)
        return get_close_matches(name, known, most)

    monkeypatch.setattr(suggestions, "get_close_matches", compare)
    entries = [{"externalId": f"forum-{number}", "name": "News", f"nmae{number}": "x"} for number in range(300)]
    documents = [{"format": "trellis/1", "name": "site", "forums": entries[at : at + 100], "forum": []} for at in (0, 100, 200)]
    told = refuse(run, documents)
    assert sorted(compared) == ["forum"] * 3 + [f"nmae{number}" for number in range(5)]
    assert any("A forum has no 'nmae0'. Did you mean name?" in one for one in told)
