"""Whatever an old community answers, the document is one that can be planned, and nothing is missing from the report."""

from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixture_types import Run
from trellis.core.kind import NodeKind
from trellis.invision import Answers, Options, choose_known, read_present, translate, write_html, write_text
from trellis.kinds import KINDS

KNOWN: Final = choose_known(KINDS)
PATHS: Final = ("core/groups", "forums/forums", "blog/blogs", "calendar/calendar", "downloads/category")
_TEXTS: Final = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["*", "1,2", "3, 99", "redirect", "category", "normal", "Guests", "<b>x</b>", "x" * 3000, "\ud800", "https://a/b"]
    ),
)
_VALUES: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 12), st.floats(allow_nan=False, allow_infinity=False), _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(["id", "name", "perm_view", "perm_2", "perm_7"]), inner, max_size=4),
    ),
    max_leaves=6,
)
_MEMBERS: Final = (
    *("name", "title", "formattedName", "type", "parentId", "permissions", "club", "url", "description"),
    *("owner", "groups", "pinned"),
)
_LISTS: Final = st.dictionaries(st.integers(1, 9), st.dictionaries(st.sampled_from(_MEMBERS), _VALUES, max_size=8), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])  # planning changes nothing
@given(st.tuples(*[_LISTS] * len(PATHS)), st.booleans())
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_document_can_be_planned(run: Run, lists: tuple[dict[int, dict[str, Any]], ...], clubs: bool) -> None:
    pages = {
        path: [[{"id": number, **record} for number, record in records.items()]] for path, records in zip(PATHS, lists, strict=True)
    }
    present = read_present(lambda name, raw: run(name, **raw), KNOWN)
    translation = translate(Answers(pages=dict(pages)), "saved", present, KNOWN, Options(KNOWN, clubs=clubs))
    translation.write()
    run("structure.plan", document=translation.document, allowEmpty=True)
    assert [len(section.rows) for section in translation.report.sections] == [len(records) for records in lists]
    assert write_text(translation.report).count("\n") >= sum(map(len, lists))
    assert write_html(translation.report).count("<tr") >= sum(map(len, lists))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_many_groups_are_matched_without_comparing_each_with_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[int] = []

    def name_external(kind: NodeKind, number: int) -> str:
        named.append(number)
        return f"invision:{kind.singular}:{number}"

    monkeypatch.setattr("trellis.invision.groups.name_external", name_external)
    present = read_present(lambda name, raw: run(name, **raw), KNOWN)
    groups = [{"id": number, "name": f"Group {number}"} for number in range(10, 510)]
    translation = translate(Answers(pages={"core/groups": [groups]}), "saved", present, KNOWN, Options(KNOWN))
    assert translation.report.sections[0].written == 500
    assert len(named) < 10 * 500


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_report_does_not_repeat_long_paths_with_each_node(run: Run) -> None:
    forums = [{"id": number, "name": f"F{number:03} {'x' * 200}", "parentId": number - 1} for number in range(1, 91)]
    present = read_present(lambda name, raw: run(name, **raw), KNOWN)
    answers = Answers(pages={"core/groups": [[{"id": 3, "name": "Members"}]], "forums/forums": [forums]})
    report = translate(answers, "saved", present, KNOWN, Options(KNOWN)).report
    text, page = write_text(report), write_html(report)
    assert "F001 > F002 > F003\n" in (short := text.replace(f" {'x' * 200}", ""))
    assert "F001 > … > F087 > F088 > F089 > F090\n" in short
    assert len(text) + len(page) < 300_000
