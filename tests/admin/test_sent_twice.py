"""Forms that a browser without scripts sends twice, as on a double click: it shows the second response, after one effect."""

from collections.abc import Callable

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form, read_forms
from tests.community import Community
from tests.fixture_types import Events, Run

Prepare = Callable[[Run, Community], None]


def _make_key(run: Run, _: Community) -> None:
    run("keys.create", name="Importer", grants=["forums.list"])


def _make_paused_key(run: Run, community: Community) -> None:
    _make_key(run, community)
    run("keys.pause", 1)


def _make_agent(run: Run, _: Community) -> None:
    run("keys.create", name="Agent", preset="agent")


def _make_webhook(run: Run, _: Community) -> None:
    run("webhooks.create", url="https://hooks.example/trellis", events=["*"])


def _add_administrator(run: Run, _: Community) -> None:
    run("admins.create", name="Ada Berg", login="ada", password="tortoise battery horse", role="auditor")


def _save_filter(run: Run, _: Community) -> None:
    run("filters.create", name="Refused", list="requests", query="status=4xx", shared=True)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("path", "action", "typed", "prepare", "told"),
    [
        ("/forums/new", "/forums/new", {"name": "Twice", "_action": "save"}, None, "Twice was created."),
        ("/administrators/new", "", {"name": "Ada", "login": "ada"}, None, "shown once"),
        ("/administrators/2", "", {"name": "Twice"}, _add_administrator, "Saved."),
        ("/administrators/2/role", "", {"role": "approver"}, _add_administrator, "as of the next request."),
        ("/keys/new", "", {"name": "Twice"}, None, "shown once"),
        ("/keys/1/revoke", "", {}, _make_key, "The key is revoked permanently."),
        ("/keys/1/pause", "", {}, _make_key, "The key is paused."),
        ("/keys/presets/agent/pause", "", {}, _make_agent, "1 key is paused."),
        ("/keys/1/ungrant", "/keys/1/ungrant", {"operation": "forums.list"}, _make_key, "An unused grant was removed."),
        ("/keys/1/resume", "", {}, _make_paused_key, "The key may be used again."),
        ("/webhooks/new", "", {"url": "https://hooks.example/two", "events": "*"}, None, "shown once"),
        ("/webhooks/1", "/webhooks/1/test", {}, _make_webhook, "A test is being sent."),
        ("/webhooks/1/delete", "", {}, _make_webhook, "deleted"),
        ("/forums/7/delete", "/forums/7/delete", {"_action": "delete"}, None, "deleted"),
        ("/forums/7/move", "/forums/7/move", {"place": "first", "_action": "save"}, None, "Staff"),
        ("/forums/7/copy", "/forums/7/copy", {"_action": "save"}, None, "cop"),
        ("/forums/7", "/forums/7", {"name": "Twice", "_action": "save"}, None, "Saved."),
        ("/forums/7/move", "/forums/7/move", {"parentId": "4", "place": "first", "_action": "save"}, None, "Staff"),
        ("/groups/2", "/groups/2", {"name": "Twice", "_action": "save"}, None, "Saved."),
        ("/blogs/1", "/blogs/1", {"name": "Twice", "_action": "save"}, None, "Saved."),
        ("/calendars/1", "/calendars/1", {"name": "Twice", "_action": "save"}, None, "Saved."),
        ("/categories/1", "/categories/1", {"name": "Twice", "_action": "save"}, None, "Saved."),
        ("/keys/1/edit", "", {"name": "Twice"}, _make_key, "Saved."),
        ("/webhooks/1/edit", "", {"description": "Twice"}, _make_webhook, "Saved."),
        ("/requests?status=4xx", "/filters", {"name": "Twice"}, None, ""),  # leads to the list, in two steps
        ("/filters/1/edit", "/filters/1/delete", {}, _save_filter, "deleted"),
    ],
)
def test_it_takes_effect_once(  # noqa: PLR0917  # a table of forms
    admin: Visitor,
    community: Community,
    run: Run,
    events: Events,
    path: str,
    action: str,
    typed: dict[str, str],
    prepare: Prepare | None,
    told: str,
) -> None:
    if prepare is not None:
        prepare(run, community)
    form = next(one for one in read_forms(admin.get(path)) if one.action.removeprefix("/admin") == action)
    filled = form.filled(**typed)
    before = len(events())
    to = action or path
    first, second = admin.post(to, filled), admin.post(to, filled)
    assert (first.status_code, second.status_code) in {(303, 303), (200, 200)}, page_text(second)
    assert len(events()) == before + 1
    shown = second if second.status_code == 200 else admin.get(second.headers["location"].removeprefix("/admin"))
    assert told in page_text(shown)


def test_what_a_form_sends_after_it_took_effect_once_is_done_when_it_is_sent_again(
    admin: Visitor, community: Community, events: Events
) -> None:
    """As after the back button, where a browser keeps the page: the form has been used, and somebody wants something else."""
    path = f"/forums/{community.help}/copy"
    form = find_form(admin.get(path), "/copy")
    assert admin.post(path, form.filled(_action="save", name="One")).status_code == 303
    refused = admin.post(path, form.filled(_action="save", name="Two"))
    assert refused.status_code == 409
    assert "This form was already sent with other values" in page_text(refused)
    assert admin.post(path, find_form(refused, "/copy").filled(_action="save")).status_code == 303
    assert [event["after"]["name"] for event in events()[-2:]] == ["One", "Two"]


@pytest.mark.parametrize(
    ("path", "button"), [("/forums/new", {"_action": "save"}), ("/forums/7/copy", {"_action": "save"}), ("/webhooks/new", {})]
)
def test_what_was_created_and_deleted_is_created_again(
    admin: Visitor, community: Community, run: Run, events: Events, path: str, button: dict[str, str]
) -> None:
    """As after the back button: the refusal that programs get, with advice on the key in their headers, is of no use to people."""
    assert community.staff == 7
    typed = {"name": "Twice", "url": "https://hooks.example/two", "events": "*", **button}
    drawn = next(one for one in read_forms(admin.get(path)) if "_submission" in dict(one.filled()))
    filled = drawn.filled(**{name: value for name, value in typed.items() if name in {"_action", *dict(drawn.filled())}})
    assert admin.post(path, filled).status_code in {200, 303}
    made = events()[-1]
    run(f"{made['resource']}.delete", made["resourceId"])
    before = len(events())
    refused = admin.post(path, filled)
    assert refused.status_code == 409
    assert "What it created has been deleted since." in page_text(refused)
    assert "Idempotency-Key" not in page_text(refused)
    assert len(events()) == before
    again = next(one for one in read_forms(refused) if "_submission" in dict(one.filled()))
    assert admin.post(path, again.filled(**button)).status_code in {200, 303}
    assert events()[-1]["type"] == made["type"]


def test_a_plan_made_with_a_form_that_took_effect_once_is_carried_out(admin: Visitor, community: Community, events: Events) -> None:
    path, moving = "/forums/many/move", {"ids": str(community.staff), "_action": "plan"}
    admin.get("/forums")
    first = find_form(admin.post(path, {**moving, "to": str(community.news)}), "/move")
    assert admin.post(path, first.filled(_action="do")).status_code == 303
    other = find_form(admin.post(path, first.filled(_action="plan", to=str(community.help))), "/move")
    refused = admin.post(path, other.filled(_action="do"))
    assert refused.status_code == 409
    assert "This form was already sent with other values" in page_text(refused)
    assert admin.post(path, find_form(refused, "/move").filled(_action="do")).status_code == 303
    assert [event["after"]["parentId"] for event in events()[-2:]] == [community.news, community.help]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"], indirect=True)
@pytest.mark.parametrize("token", ["\x00", "a\x00b", "a\nb"])
@pytest.mark.parametrize(
    ("path", "action", "prepare"),
    [("/forums/new", "/forums/new", None), ("/keys/new", "", None), ("/webhooks/1", "/webhooks/1/test", _make_webhook)],
)
def test_a_token_that_is_none_is_refused(  # noqa: PLR0917  # a table of forms
    admin: Visitor, community: Community, run: Run, events: Events, path: str, action: str, prepare: Prepare | None, token: str
) -> None:
    if prepare is not None:
        prepare(run, community)
    form = next(one for one in read_forms(admin.get(path)) if one.action.removeprefix("/admin") == action)
    before = len(events())
    response = admin.post(action or path, form.filled(name="Twice", _action="save", _submission=token))
    assert response.status_code == 400, page_text(response)
    assert len(events()) == before
