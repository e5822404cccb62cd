"""Forms that a browser without scripts sends twice, as on a double click: it shows the second response, after one effect."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.admin.authenticator_app import add_app
from tests.admin.conftest import LOGIN, PASSWORD, Visitor, page_text, unreachable_after_writing
from tests.admin.everything import KIND
from tests.admin.html_forms import find_form, read_forms
from tests.admin.webhooks.rows import insert_delivery
from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.admin.app import Panel
from trellis.admin.many.actions import ACTIONS
from trellis.admin.submitted import CSRF
from trellis.core.gate import Gate
from trellis.settings import Settings

Prepare = Callable[[Run, Gate], None]


def _make_key(run: Run, _: Gate) -> None:
    run("keys.create", name="Importer", grants=["forums.list"])


def _make_paused_key(run: Run, gate: Gate) -> None:
    _make_key(run, gate)
    run("keys.pause", 1)


def _make_agent(run: Run, _: Gate) -> None:
    run("keys.create", name="Agent", preset="agent")


def _make_webhook(run: Run, _: Gate) -> None:
    run("webhooks.create", url="https://hooks.example/trellis", events=["*"])


def _add_administrator(run: Run, _: Gate) -> None:
    run("admins.create", name="Ada Berg", login="ada", password="tortoise battery horse", role="auditor")


def _save_filter(run: Run, _: Gate) -> None:
    run("filters.create", name="Refused", list="requests", query="status=4xx", shared=True)


def _disable_administrator(run: Run, gate: Gate) -> None:
    _add_administrator(run, gate)
    run("admins.disable", 2)


def _invite(run: Run, _: Gate) -> None:
    run("admins.invite", name="Ada Berg", login="ada", role="auditor")


def _set_up_app(run: Run, gate: Gate) -> None:
    (session,) = run("admins.sessions", 1)
    add_app(run, gate, 1, LOGIN, session=session["id"])


def _make_webhook_off(run: Run, gate: Gate) -> None:
    _make_webhook(run, gate)
    run("webhooks.update", 1, enabled=False)


def _make_delivery(run: Run, gate: Gate) -> None:
    _make_webhook(run, gate)
    insert_delivery(gate, {}, state="failed")


def _delete_forum(run: Run, _: Gate) -> None:
    run("forums.delete", 7)


def _change_forum(run: Run, _: Gate) -> None:
    run("forums.update", 7, name="Crew")


def _move_forum(run: Run, _: Gate) -> None:
    run("forums.update", 7, parentId=4)


def _change_key(run: Run, gate: Gate) -> None:
    _make_key(run, gate)
    run("keys.update", 1, name="Exporter")


CASES: Final[tuple[tuple[str, str, dict[str, str], Prepare | None, str], ...]] = (
    ("/forums/new", "/forums/new", {"name": "Twice", "_action": "save"}, None, "Twice was created."),
    ("/administrators/new", "", {"name": "Ada", "login": "ada"}, None, "shown once"),
    ("/administrators/2", "", {"name": "Twice"}, _add_administrator, "Saved."),
    ("/administrators/2/role", "", {"role": "approver"}, _add_administrator, "as of the next request."),
    ("/keys/new", "", {"name": "Twice"}, None, "shown once"),
    ("/keys/1/revoke", "", {}, _make_key, "The key is revoked permanently."),
    ("/keys/1/pause", "", {}, _make_key, "The key is paused."),
    ("/keys/presets/agent/pause", "", {}, _make_agent, "1 key is paused."),
    ("/keys/1/resume", "", {}, _make_paused_key, "The key may be used again."),
    ("/webhooks/new", "", {"url": "https://hooks.example/two", "events": "*"}, None, "shown once"),
    ("/webhooks/1", "/webhooks/1/test", {}, _make_webhook, "A test is being sent."),
    ("/webhooks/1/delete", "", {}, _make_webhook, "deleted"),
    ("/forums/4/delete", "/forums/4/delete", {"_action": "delete"}, None, "deleted"),
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
    ("/filters/1/edit", "/filters/1/edit", {"name": "Twice"}, _save_filter, ""),
    ("/administrators/2", "/administrators/2/invitation", {}, _invite, "The link was shown once"),
    ("/administrators/2/withdraw-invitation", "", {}, _invite, "Its link no longer works."),
    (
        "/administrators/2",
        "/administrators/2/password",
        {"password": "camel orbit lantern"},
        _add_administrator,
        "signed out everywhere",
    ),
    ("/administrators/2/disable", "", {}, _add_administrator, ""),
    ("/administrators/2", "/administrators/2/enable", {}, _disable_administrator, "can sign in again."),
    ("/account/second-factor", "/account/second-factor/recovery-codes", {}, _set_up_app, "generate new ones"),
    ("/account/second-factor", "/account/second-factor/app/remove", {}, _set_up_app, "Your authenticator app was removed"),
    ("/confirm-password", "/confirm-password", {"password": PASSWORD}, None, ""),
    (
        "/account",
        "/account/password",
        {"currentPassword": PASSWORD, "password": "camel orbit lantern"},
        None,
        "Your password was changed",
    ),
    ("/keys/try", "", {"grants": "forums.list"}, None, "shown once"),
    ("/deliveries/1", "/deliveries/1/again", {}, _make_delivery, "The message is being sent again."),
    ("/webhooks/1/redeliver", "/webhooks/1/redeliver", {}, _make_delivery, "1 message is being sent again."),
    ("/webhooks/1", "/webhooks/1/off", {}, _make_webhook, "The webhook was switched off."),
    ("/webhooks/1/on", "", {}, _make_webhook_off, "The webhook was switched on."),
    ("/webhooks/1/rotate", "", {}, _make_webhook, "shown once"),
    ("/keys/1/rotate", "", {}, _make_key, "shown once"),
    ("/events/{last}/undo", "/events/{last}/undo", {"_action": "undo"}, _delete_forum, "Event {last} was undone."),
    ("/events/{last}/undo", "/events/{last}/undo", {"_action": "undo"}, _change_forum, "Event {last} was undone."),
    ("/events/{last}/undo", "/events/{last}/undo", {"_action": "undo"}, _move_forum, "Event {last} was undone."),
    ("/events/{last}/undo", "/events/{last}/undo", {}, _change_key, "Event {last} was undone."),
)
_ENDS = "ends nothing that has ended"
_SIGNS_IN = "its first response may begin another session"
_LINK = "a link works once, and its page tells whoever has just used it to sign in"
_QUIET = "leaves no event"
OTHERWISE: Final = {  # why a form is none of the cases, or the tests that send it twice
    "/check": "only reads",
    "/check/repair": "repairs what is still broken",
    "/structure": "structure/test_pages.py",
    "/account/second-factor/passkeys/new": "needs scripts, with which a form is sent once",
    "/account/second-factor/passkeys/{id:int}": "gives it the name that it has",
    "/account/second-factor/passkeys/{id:int}/remove": "factors/test_pages.py",
    "/account/second-factor/app": "factors/test_pages.py",
    "/change-sets/{id:int}/undo": "undo/test_change_sets.py",
    "/keys/{id:int}/undo": "undo/test_change_sets.py",
    "/administrators/{id:int}/sessions/{session}": _ENDS,
    "/administrators/{id:int}/sign-out": _ENDS,
    "/account/sessions/others": _ENDS,
    "/account/sessions/{session}": _ENDS,
    "/administrators/{id:int}/unlink": _ENDS,
    "/account/sign-on/unlink": _ENDS,
    "/first-run/{link}": _LINK,
    "/invitation/{link}": _LINK,
    "/invitation/{link}/sign-on": _LINK,
    "/new-password": "test_sessions.py",
    "/sign-in": "factors/test_pages.py",
    "/sign-in/code": "factors/test_pages.py",
    "/sign-in/passkey": _SIGNS_IN,
    "/sign-on/code": "admins/test_sign_on.py",
    "/sign-on/resume": "shows a form again",
    "/sign-out": _ENDS,
    "/account/sign-on": "leads to the provider",
    "/account/mail": "saves what is saved",
    "/account/view": _QUIET,
    "/account/zone": _QUIET,
    "/language": _QUIET,
    "/alarms/read": _QUIET,
    "/proposals": "proposals/test_pages.py",
    "/proposals/{id:int}": "proposals/test_pages.py",
    "/keys/describe": "only reads",
    "/keys/{id:int}/ungrant": "keys/test_key.py",
    **dict.fromkeys(("/keys/many/grants", "/keys/many/revoke"), "many/test_selection.py"),
    **{f"/{{kind}}/many/{action.name}": "many/test_selection.py" for action in ACTIONS},
    "/{kind}/many/drag": "many/test_dragging.py",
    "/{kind}/{id:int}/below": "many/test_below.py",
    "/{kind}/{id:int}/access": "many/test_access.py",
}


class FilledIn(NamedTuple):
    """A form that is ready to be sent: where to, with what, what its effect is told by, and what it shows at first."""

    to: str
    values: dict[str, list[str]]
    told: str
    shown: dict[str, list[str]]


@pytest.fixture(params=CASES, ids=lambda case: case[1] or case[0])
def filled_in(
    request: pytest.FixtureRequest, admin: Visitor, community: Community, gate: Gate, run: Run, events: Events
) -> FilledIn:
    del community
    path, action, typed, prepare, told = request.param
    if prepare is not None:
        prepare(run, gate)
    path, action, told = (text.format(last=events()[-1]["seq"]) for text in (path, action, told))
    forms = (one for one in read_forms(admin.get(path)) if one.action.removeprefix("/admin") == action)
    form = next(one for one in forms if CSRF in dict(one.pairs))
    return FilledIn(action or path, form.filled(**typed), told, form.filled())


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_it_takes_effect_once(admin: Visitor, events: Events, filled_in: FilledIn) -> None:
    before = len(events())
    first, second = (admin.post(filled_in.to, filled_in.values) for _ in range(2))
    assert {first.status_code, second.status_code} <= {200, 303}, page_text(second)
    assert len(events()) == before + 1
    shown = second if second.status_code == 200 else admin.get(second.headers["location"].removeprefix("/admin"))
    assert filled_in.told in page_text(shown)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_its_effect_is_told_even_if_nothing_can_be_read_afterwards(admin: Visitor, events: Events, filled_in: FilledIn) -> None:
    """A page that only says that the database cannot be reached would be taken for one after which nothing has changed."""
    before = len(events())
    with unreachable_after_writing():
        response = admin.post(filled_in.to, filled_in.values)
    assert response.status_code in {200, 303}, page_text(response)
    assert len(events()) == before + 1


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_it_puts_nothing_back_that_was_changed_since_it_was_opened(filled_in: FilledIn) -> None:
    """A form that shows values says which version, unless it takes effect only once: it creates something, for example."""
    shown = [name for name, values in filled_in.shown.items() if not name.startswith("_") and any(values)]
    assert set(shown) <= {"login", "replay"} or not {"_version", "_plan", "_submission"}.isdisjoint(filled_in.shown), shown


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_form_of_the_panel_is_sent_twice(gate: Gate, settings: Settings) -> None:
    forms = {KIND.sub("/{kind}", page.path) for page in Panel(gate, settings).pages if page.method == "POST"}
    verbs = {operation.verb for operation in gate.catalogue.values() if operation.verb is not None and operation.verb.button}
    by_button = {"/{kind}" + verb.tail.replace("{id}", "{id:int}") for verb in verbs}  # they have one form, which copies
    tried = [KIND.sub("/{kind}", (case[1] or case[0]).partition("?")[0]) for case in CASES]
    known = {form for form in forms if any(re.fullmatch(_as_pattern(form), path) for path in tried)}
    assert sorted(forms - known - by_button) == sorted(OTHERWISE)
    assert by_button & known
    assert all((Path(__file__).parent / why).exists() for why in OTHERWISE.values() if why.endswith(".py"))


def _as_pattern(path: str) -> str:
    numbers = path.replace("{id:int}", r"(\d+|\{last\})")
    return re.sub(r"\{(?!kind\})\w+\}", "[^/]+", numbers).replace("{kind}", r"\{kind\}")


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
@pytest.mark.parametrize(
    ("path", "action", "prepare"),
    [("/forums/new", "/forums/new", None), ("/keys/new", "", None), ("/webhooks/1", "/webhooks/1/test", _make_webhook)],
)
def test_a_token_that_is_none_is_refused(
    admin: Visitor, gate: Gate, run: Run, events: Events, path: str, action: str, prepare: Prepare | None
) -> None:
    if prepare is not None:
        prepare(run, gate)
    form = next(one for one in read_forms(admin.get(path)) if one.action.removeprefix("/admin") == action)
    before = len(events())
    for token in ("\x00", "a\x00b", "a\nb"):
        response = admin.post(action or path, form.filled(name="Twice", _action="save", _submission=token))
        assert response.status_code == 400, page_text(response)
    assert len(events()) == before
