"""How the panel writes times and numbers, and lays out its charts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jinja2 import Template
from jinja2.runtime import Context

from tests.admin.conftest import Visitor, page_text
from tests.community import Community
from tests.fixture_types import Run
from trellis.admin.chart import build_chart
from trellis.admin.rendering import build_menu, format_age
from trellis.admin.sections import pages_of
from trellis.compose import catalogue_of
from trellis.core.fields import format_timestamp
from trellis.kinds import KINDS

pytestmark = pytest.mark.either_engine

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (timedelta(days=90), "in 90 days"),
        (timedelta(days=90) - timedelta(seconds=1), "in 90 days"),
        (timedelta(days=75), "in 75 days"),
        (timedelta(days=365), "in 1 year"),
        (timedelta(days=1) - timedelta(seconds=1), "in 24 hours"),
        (timedelta(hours=-30), "1 day ago"),
        (timedelta(days=-90), "3 months ago"),
        (timedelta(seconds=-5), "just now"),
    ],
)
def test_how_far_away_a_time_is(ahead: timedelta, said: str) -> None:
    shown = format_age(format_timestamp(NOW + ahead), format_timestamp(NOW))
    assert shown.striptags() == said


def test_every_section_of_the_pages_is_in_the_menu() -> None:
    menu = {entry.section for _, entries in build_menu(KINDS) for entry in entries}
    sections = {page.section for page in pages_of(catalogue_of(KINDS), KINDS)}
    assert sections - menu == {"", "account"}  # what is open to all, and what is below the menu


def test_a_chart_knows_its_highest_bar() -> None:
    span: dict[str, Any] = {"at": "2026-01-01T00:00:00.000Z", "to": "2026-01-02T00:00:00.000Z"}
    spans = [span | {"2xx": 1}, span | {"2xx": 2, "4xx": 1}, span]
    chart = build_chart(spans, [("a", "A"), ("b", "B"), ("c", "C")])
    assert (chart.most, chart.top) == (3, 5)
    assert chart.scale == (5, 0)


def test_a_chart_has_a_scale_and_an_axis_and_knows_when_each_bar_is() -> None:
    spans = [
        {"at": f"2026-01-{day:02}T00:00:00.000Z", "to": f"2026-01-{day + 1:02}T00:00:00.000Z", "2xx": day} for day in range(1, 31)
    ]
    chart = build_chart(spans, [(f"{day} Jan", f"{day} Jan 2026") for day in range(1, 31)])
    assert chart.scale == (50, 25, 0)
    assert [stack.label for stack in chart.ticks] == ["1 Jan", "6 Jan", "11 Jan", "16 Jan", "21 Jan", "26 Jan"]
    assert chart.stacks[-1].span == {"from": "2026-01-30T00:00:00.000Z", "to": "2026-01-31T00:00:00.000Z"}
    assert build_chart([], []).ticks == ()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_nothing_is_called_by_its_number_or_in_a_wrong_plural(admin: Visitor, community: Community, run: Run) -> None:
    run("webhooks.create", url="https://hooks.example/trellis", events=["*"], description="Search index")
    run("webhooks.test", 1)
    shown = page_text(admin.get("/events"))
    assert "sent a test to webhook Search index" in shown
    assert "webhook 1" not in shown
    run("categories.delete", community.skins, deleteChildrenOrMove=-1)
    assert "Where among 0 download categories" in page_text(admin.get(f"/categories/{community.tools}/move"))
    assert "puted" not in page_text(admin.get("/webhooks/1/edit"))
    for url in ("http://127.0.0.1:9000/", "http://localhost:9000/"):
        refused = admin.post("/webhooks/1/edit", {"url": url, "events": "*"})
        assert "with TRELLIS_WEBHOOK_ALLOW" in page_text(refused)


def test_macros_are_made_once_for_a_page_and_no_row_copies_what_templates_know(
    admin: Visitor, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.get("/forums")
    make, derive = Template.make_module, Context.derived
    made: list[str | None] = []
    copied: list[str | None] = []

    def note_module(template: Template, *given: Any) -> Any:
        made.append(template.name)
        return make(template, *given)

    def note_copy(context: Context, *given: Any) -> Any:
        copied.append(context.name)
        return derive(context, *given)

    monkeypatch.setattr(Template, "make_module", note_module)
    monkeypatch.setattr(Context, "derived", note_copy)
    assert admin.get("/forums").text.count('class="node"') == 4
    assert sorted(map(str, made)) == ["logs.html", "macros.html", "many/bar.html", "nodes/parts.html"]
    assert "nodes/parts.html" not in copied
