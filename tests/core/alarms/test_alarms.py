"""Which events raise an alarm, who sees it, and that it is written with its event."""

from typing import Any, Final

import pyotp
import pytest

from tests.fixture_types import Clock, Run
from trellis.core.actor import Actor
from trellis.core.alarms import ALARMS, count_unread, mark_read
from trellis.core.catalogue import Catalogue
from trellis.core.factors import set_up_app
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

PASSWORD: Final = "correct horse battery"
HOOK: Final = "https://hooks.example/in"


@pytest.fixture
def owner(gate: Gate, run: Run) -> Actor:
    made = run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)
    return Actor.administrator(made["id"], "Mira Holm", None)


def view(gate: Gate, actor: Actor, **raw: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = gate.run(Call("alarms.view", actor, raw)).value["results"]
    return found


def test_the_table_names_operations_that_there_are(gate: Gate) -> None:
    catalogue: Catalogue = gate.catalogue
    assert len({rule.name for rule in ALARMS}) == len(ALARMS)
    for rule in ALARMS:
        for pattern in rule.operations:
            assert pattern.endswith(".*") or pattern in catalogue, pattern


def test_what_somebody_should_look_at_is_told_and_nothing_else(gate: Gate, owner: Actor, run: Run) -> None:
    key = gate.run(Call("keys.create", owner, {"name": "Plugin", "grants": ["forums.list"]})).value["id"]
    run("keys.update", key, note="For the plugin.")
    run("keys.update", key, grant=["forums.get"])
    run("keys.update", key, ungrant=["forums.get"])
    run("keys.update", key, rateLimit=60)
    run("keys.update", key, rateLimit=90)
    run("keys.update", key, rateLimit=0)
    run("keys.update", key, rateLimit=None)
    run("keys.pause", key)
    run("keys.resume", key)
    webhook = run("webhooks.create", url=HOOK, events=["forum.*"])["id"]
    run("webhooks.update", webhook, description="Search index")
    run("webhooks.update", webhook, events=["*"])
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, role="structure-editor", kinds=["forums"])["id"]
    run("admins.set_role", ada, role="structure-editor", kinds=["forums", "calendars"])
    run("admins.set_role", ada, role="structure-editor", kinds=["calendars"])
    run("admins.set_role", ada, role="owner")
    run("admins.set_role", ada, role="auditor")
    run("admins.set_password", ada, password="another horse battery")
    run("admins.sign_in", ada, address="192.0.2.7", agent="Firefox/1")
    run("admins.disable", ada)
    run("admins.enable", ada)
    run("forums.create", name="News")
    with pytest.raises(Refused):
        run("keys.create", name="")
    run("keys.create", name="Tried", grants=["forums.list"], dryRun=True)
    told = [alarm["sentence"].translate({0x2068: None, 0x2069: None}) for alarm in view(gate, owner)]
    assert list(reversed(told)) == [
        "The terminal made Mira Holm an administrator.",
        "Mira Holm created the API key Plugin.",
        *["The terminal allowed the API key Plugin to do more."] * 4,  # a grant, twice another rate, and after a pause
        f"The terminal created a webhook that sends to {HOOK}.",
        f"The terminal changed what a webhook sends, or where: {HOOK}.",
        "The terminal made Ada Berg an administrator.",
        "The terminal gave Ada Berg another role.",
        "The terminal gave Ada Berg another role.",
        "The terminal set a password for Ada Berg.",
        "The terminal signed in from a new browser.",
        "The terminal allowed Ada Berg to sign in again.",
    ]


def test_a_role_sees_what_it_may_read_and_what_is_about_oneself(gate: Gate, owner: Actor, run: Run) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    run("webhooks.create", url=HOOK, events=["*"])
    seen: dict[str, list[str]] = {}
    for role in ("key-manager", "structure-editor", "auditor"):
        number = run("admins.create", name=role, login=role, password=PASSWORD, role=role)["id"]
        actor = Actor.administrator(number, role, gate.environment.permits.find(role))
        gate.run(Call("admins.sign_in", actor, {}, number))
        seen[role] = [alarm["name"] for alarm in view(gate, actor) if alarm["name"] != "new-administrator"]
        assert count_unread(gate, actor) == len(view(gate, actor, unread=True))
    assert seen["key-manager"] == ["new-browser", "new-webhook", "new-key"]
    assert seen["structure-editor"] == ["new-browser"]
    assert seen["auditor"] == ["new-browser", "new-browser", "new-browser", "new-webhook", "new-key"]


def test_what_was_read_is_read_and_what_was_before_oneself_is_no_news(gate: Gate, owner: Actor, run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    assert count_unread(gate, owner) == 2, "oneself, and the key"
    newest = view(gate, owner)[0]["event"]
    run("keys.create", name="Newer", grants=["forums.list"])
    assert owner.id is not None
    mark_read(gate, owner.id, newest).result()
    assert count_unread(gate, owner) == 1
    assert [alarm["isRead"] for alarm in view(gate, owner)] == [False, True, True]
    assert len(view(gate, owner, unread=True)) == 1
    mark_read(gate, owner.id, 1).result()
    assert count_unread(gate, owner) == 1, "reading an older list again makes nothing unread"
    later = run("admins.create", name="Ada", login="ada", password=PASSWORD)["id"]
    assert count_unread(gate, Actor.administrator(later, "Ada", None)) == 1, "that she was made"
    first = gate.run(Call("alarms.view", owner, {"limit": 2})).value
    rest = gate.run(Call("alarms.view", owner, {"limit": 2, "before": first["next"]})).value
    assert [len(first["results"]), len(rest["results"]), rest["next"]] == [2, 2, None]


def test_nobody_has_read_what_is_still_to_come(gate: Gate, owner: Actor, run: Run) -> None:
    mark_read(gate, owner.id or 0, 2**40).result()
    assert count_unread(gate, owner) == 0
    run("keys.create", name="Plugin")
    assert [alarm["isRead"] for alarm in view(gate, owner, limit=1)] == [False]
    assert count_unread(gate, owner) == len(view(gate, owner, unread=True)) == 1


def test_what_is_unread_is_listed_page_by_page(gate: Gate, owner: Actor, run: Run) -> None:
    mark_read(gate, owner.id or 0, 2**40).result()
    for number in range(3):
        run("keys.create", name=f"Plugin {number}")
    first = gate.run(Call("alarms.view", owner, {"unread": True, "limit": 2})).value
    rest = gate.run(Call("alarms.view", owner, {"unread": True, "limit": 2, "before": first["next"]})).value
    assert (len(first["results"]), len(rest["results"]), rest["next"]) == (2, 1, None)


def test_another_link_for_somebody_who_is_invited_is_told(gate: Gate, owner: Actor, run: Run) -> None:
    ada = run("admins.invite", name="Ada Berg", login="ada", role="auditor")["id"]
    run("admins.renew_invitation", ada)
    assert [alarm["name"] for alarm in view(gate, owner, limit=2)] == ["renewed-invitation", "new-administrator"]


def test_another_secret_of_a_key_is_told_to_all_but_whoever_asked_for_it(gate: Gate, owner: Actor, run: Run) -> None:
    made = run("keys.create", name="Plugin", grants=["forums.list"])["id"]
    mark_read(gate, owner.id or 0, 2**40).result()
    gate.run(Call("keys.rotate", owner, {}, made))
    assert count_unread(gate, owner) == 0
    run("keys.rotate", made)
    told = view(gate, owner, limit=2)
    assert [(alarm["name"], alarm["isRead"]) for alarm in told] == [("rotated-key", False), ("rotated-key", True)]
    assert told[0]["sentence"] == "The terminal gave the API key Plugin a new secret."


def test_another_secret_of_a_webhook_is_told(gate: Gate, owner: Actor, run: Run) -> None:
    """Whoever has it can send messages that look like ours."""
    run("webhooks.rotate", run("webhooks.create", url=HOOK, events=["*"])["id"])
    told = view(gate, owner, limit=1)[0]
    assert (told["name"], told["sentence"]) == (
        "rotated-webhook",
        f"The terminal gave the webhook that sends to {HOOK} a new secret.",
    )


def test_an_alarm_names_a_service_by_what_it_does(gate: Gate, owner: Actor, run: Run) -> None:
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, role="auditor")["id"]
    gate.run(Call("admins.set_role", Actor("service", None, "single sign-on"), {"role": "owner"}, ada))
    assert view(gate, owner, limit=1)[0]["sentence"] == "Single sign-on gave Ada Berg another role."


def test_a_second_factor_that_is_set_up_or_removed_is_news_to_its_owner_too(gate: Gate, owner: Actor, clock: Clock) -> None:
    """An impostor would add one of their own."""
    me = owner.id or 0
    setup = set_up_app(gate, me, "mira")
    app = {"salt": setup.salt, "code": pyotp.TOTP(setup.secret).at(clock.at)}
    for name, raw in {"set_authenticator": app, "renew_recovery_codes": {}, "remove_authenticator": {}}.items():
        gate.run(Call(f"admins.{name}", owner, raw, me))
    told = [(alarm["name"], alarm["isRead"]) for alarm in view(gate, owner, limit=3)]
    assert told == [("removed-second-factor", False), ("new-second-factor", False), ("new-second-factor", False)]


def test_ones_own_new_password_is_news_to_its_owner_too(gate: Gate, owner: Actor, run: Run) -> None:
    """An impostor would choose one, and sign in with it from then on."""
    gate.run(Call("admins.set_password", owner, {"password": "another tin box"}, owner.id))
    run("admins.set_password", owner.id or 0, password="a third tin box")
    told = [(alarm["name"], alarm["sentence"], alarm["isRead"]) for alarm in view(gate, owner, limit=2)]
    assert told == [
        ("password-set", "The terminal set a password for Mira Holm.", False),
        ("changed-password", "Mira Holm changed their own password, or chose a first one.", False),
    ]
