"""Second factors as operations: what is accepted, how often, what ends with a change of one, and what the database keeps."""

import base64
import json
import re
from dataclasses import replace
from typing import Any

import pyotp
import pytest
import sqlalchemy as sa

from tests.fixture_types import Clock, Events, Run
from tests.passkey_device import PRESENT, PasskeyDevice
from trellis.compose import compose
from trellis.core.actor import Actor
from trellis.core.admins import find_session
from trellis.core.factors import Owner, find_party, has_second_step, options_of_new_passkey, options_of_passkey, set_up_app
from trellis.core.gate import Gate
from trellis.core.operation import Call, SecondFactorPolicy
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.tables import METADATA

ORIGIN, HOST = "https://panel.example", "panel.example"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, public_url=ORIGIN)


@pytest.fixture
def mira(run: Run) -> int:
    raw = {"name": "Mira Holm", "login": "mira", "password": "correct horse battery", "mustChangePassword": False}
    return int(run("admins.create", **raw)["id"])


def _code(secret: str, clock: Clock, steps: int = 0) -> str:
    return pyotp.TOTP(secret).at(int(clock.at.timestamp()) + 30 * steps)


def _set_up(gate: Gate, run: Run, clock: Clock, admin: int) -> tuple[str, list[str]]:
    """Set up an app; return its secret and the recovery codes."""
    setup = set_up_app(gate, admin, "mira")
    codes: list[str] = run("admins.set_authenticator", admin, salt=setup.salt, code=_code(setup.secret, clock))["recoveryCodes"]
    return setup.secret, codes


def _refuses(run: Run, admin: int, **evidence: str) -> bool:
    try:
        run("admins.sign_in", admin, **evidence)
    except Refused as refused:
        return refused.message == "WRONG_SECOND_FACTOR"
    return False


def _everything(gate: Gate) -> str:
    """Return all that the database holds."""
    with gate.store.reading() as tx:
        return "\n".join(str(row) for table in METADATA.sorted_tables for row in tx.connection.execute(sa.select(table)))


def test_a_code_of_the_app_is_accepted_once_and_half_a_minute_around_its_time(
    gate: Gate, run: Run, clock: Clock, mira: int, events: Events
) -> None:
    secret, _ = _set_up(gate, run, clock, mira)
    assert _refuses(run, mira)  # without one
    assert _refuses(run, mira, code=_code(secret, clock))  # which set it up
    assert _refuses(run, mira, code="000000")
    clock.move(seconds=90)
    assert _refuses(run, mira, code=_code(secret, clock, -2))
    assert _refuses(run, mira, code=_code(secret, clock, 2))
    late, early = _code(secret, clock, -1), _code(secret, clock, 1)
    assert run("admins.sign_in", mira, code=f" {late[:3]} {late[3:]}")["secondFactor"] == "app"
    assert _refuses(run, mira, code=late)
    run("admins.sign_in", mira, code=early)
    assert _refuses(run, mira, code=_code(secret, clock))  # older than one that was accepted
    assert events()[-1]["after"] == {"address": "", "agent": "", "secondFactor": "app", "newBrowser": True}


def test_each_recovery_code_stands_in_once_and_new_ones_take_their_place(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    _, codes = _set_up(gate, run, clock, mira)
    assert len(set(codes)) == 10
    assert run("admins.sign_in", mira, code=codes[0].upper().replace("-", " "))["secondFactor"] == "recovery code"
    assert _refuses(run, mira, code=codes[0])
    assert run("admins.factors", mira)["recoveryCodes"] == 9
    renewed = run("admins.renew_recovery_codes", mira)["recoveryCodes"]
    assert _refuses(run, mira, code=codes[1])
    run("admins.sign_in", mira, code=renewed[1])
    run("admins.remove_authenticator", mira)
    assert run("admins.factors", mira) == {"passkeys": [], "app": None, "recoveryCodes": 0}


def test_database_and_events_hold_no_secret(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    secret, codes = _set_up(gate, run, clock, mira)
    clock.move(minutes=1)
    code = _code(secret, clock)
    run("admins.sign_in", mira, code=code)
    run("admins.sign_in", mira, code=codes[0])
    held = _everything(gate)
    raw = base64.b32decode(secret)
    for text in (secret, raw.hex(), repr(raw), base64.b64encode(raw).decode(), *codes, codes[1].replace("-", "")):
        assert text not in held
    assert not re.search(rf"\b{code}\b", held)


def test_with_a_key_of_the_operator_the_database_alone_makes_no_codes(
    gate: Gate, settings: Settings, run: Run, clock: Clock, mira: int
) -> None:
    keyed = compose(replace(settings, second_factor_key="a key of the operator"), clock=clock)
    setup = set_up_app(keyed, mira, "mira")
    given = {"salt": setup.salt, "code": _code(setup.secret, clock)}
    codes = keyed.run(Call("admins.set_authenticator", Actor("terminal", None, "terminal"), given, mira)).value["recoveryCodes"]
    keyed.store.close()
    clock.move(minutes=1)
    assert run("admins.factors", mira)["app"]["isUsable"] is False  # without the key
    assert _refuses(run, mira, code=_code(setup.secret, clock))
    run("admins.sign_in", mira, code=codes[0])
    _, again = _set_up(gate, run, clock, mira)
    assert (again, run("admins.factors", mira)["app"]["isUsable"]) == ([], True)  # the recovery codes stay


def test_a_first_or_another_factor_and_one_that_is_removed_end_all_other_sessions(
    gate: Gate, run: Run, clock: Clock, mira: int
) -> None:
    def sessions() -> list[str]:
        return [run("admins.sign_in", mira, **evidence)["token"] for _ in range(2)]

    evidence: dict[str, str] = {}
    mine, other = sessions()
    me = find_session(gate, mine)
    assert me is not None
    setup = set_up_app(gate, mira, "mira")
    given = {"salt": setup.salt, "code": _code(setup.secret, clock), "session": me.session_id}
    codes = run("admins.set_authenticator", mira, **given)["recoveryCodes"]
    assert (find_session(gate, mine) is not None, find_session(gate, other)) == (True, None)
    other = run("admins.sign_in", mira, code=codes[0])["token"]
    device = PasskeyDevice(ORIGIN, HOST)
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", "mira"), "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here", session=me.session_id)
    assert find_session(gate, other) is not None  # it has signed in with a second factor
    number = run("admins.factors", mira)["passkeys"][0]["id"]
    run("admins.remove_passkey", mira, passkey=number, session=me.session_id)
    assert (find_session(gate, mine) is not None, find_session(gate, other)) == (True, None)


def test_a_passkey_is_accepted_for_its_challenge_its_browser_and_its_address_once(
    gate: Gate, run: Run, clock: Clock, mira: int, events: Events
) -> None:
    device, owner = PasskeyDevice(ORIGIN, HOST), Owner(mira, "Mira Holm", "mira")
    made = device.create(options_of_new_passkey(gate, owner, "here"))
    with pytest.raises(Refused, match=r"^WRONG_SECOND_FACTOR"):
        run("admins.add_passkey", mira, name="Key", passkey=made, binding="elsewhere")
    added = run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")
    assert (added["name"], len(added["recoveryCodes"])) == ("Key", 10)
    assert events()[-1]["after"] == {"name": "Key"}

    def answer(binding: str = "here", admin: int | None = mira) -> dict[str, str]:
        return {"passkey": device.use(options_of_passkey(gate, admin, binding)), "binding": "here"}

    assert _refuses(run, mira, **answer("elsewhere"))
    assert _refuses(run, mira, passkey=made, binding="here")
    assert _refuses(run, mira, passkey="[]", binding="here")
    assert _refuses(run, mira, passkey=r'{"id": "a\u0000b"}', binding="here")
    assert _refuses(run, mira, passkey=json.dumps({"id": 5, "response": {"clientDataJSON": "e30"}}), binding="here")
    device.flags = PRESENT  # nobody has entered a PIN
    assert _refuses(run, mira, **answer())
    device = PasskeyDevice("https://panel.example.evil.example", HOST)
    assert _refuses(run, mira, **answer())


def test_what_a_passkey_has_answered_is_not_accepted_again_nor_what_is_older(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    device, owner = PasskeyDevice(ORIGIN, HOST), Owner(mira, "Mira Holm", "mira")
    made = device.create(options_of_new_passkey(gate, owner, "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")
    again = device.create(options_of_new_passkey(gate, owner, "here"))
    assert run("admins.add_passkey", mira, name="Another", passkey=again, binding="here") == {"name": "Key", "recoveryCodes": []}
    old = options_of_passkey(gate, None, "here")
    clock.move(seconds=1)
    good = {"passkey": device.use(options_of_passkey(gate, None, "here")), "binding": "here"}
    assert run("admins.sign_in", mira, **good)["secondFactor"] == "passkey"
    assert _refuses(run, mira, **good)
    device.counter = 100
    assert _refuses(run, mira, passkey=device.use(old), binding="here")
    stolen = device.use(options_of_passkey(gate, None, "here"))
    device.counter = 0  # a copy of the device, which has been used less
    assert _refuses(run, mira, passkey=device.use(options_of_passkey(gate, None, "here")), binding="here")
    clock.move(minutes=6)
    assert _refuses(run, mira, passkey=stolen, binding="here")
    ada = run("admins.create", name="Ada", login="ada", password="another long password")["id"]
    with pytest.raises(Refused, match="already been added"):
        run(
            "admins.add_passkey",
            ada,
            name="Key",
            passkey=device.create(options_of_new_passkey(gate, Owner(ada, "Ada", "ada"), "here")),
            binding="here",
        )
    other = device.use(options_of_passkey(gate, None, "here"))
    assert _refuses(run, ada, passkey=other, binding="here")  # which is Mira's


def test_a_clock_that_is_set_back_shuts_nobody_out_who_has_a_second_factor(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    secret, _ = _set_up(gate, run, clock, mira)
    device, owner = PasskeyDevice(ORIGIN, HOST), Owner(mira, "Mira Holm", "mira")
    made = device.create(options_of_new_passkey(gate, owner, "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")

    def answer() -> dict[str, str]:
        return {"passkey": device.use(options_of_passkey(gate, None, "here")), "binding": "here"}

    clock.move(hours=2)  # it is ahead
    run("admins.sign_in", mira, **answer())
    run("admins.sign_in", mira, code=_code(secret, clock))
    clock.move(hours=-2, minutes=1)
    for evidence in (answer(), {"code": _code(secret, clock)}):
        assert run("admins.sign_in", mira, **evidence)["token"]
        assert _refuses(run, mira, **evidence)  # once, as ever


def test_after_a_reset_a_passkey_does_no_longer_alone(gate: Gate, run: Run, mira: int) -> None:
    device = PasskeyDevice(ORIGIN, HOST)
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", "mira"), "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")

    def sign_in(*, alone: bool) -> Any:
        answer = device.use(options_of_passkey(gate, None, "here"))
        return run("admins.sign_in", mira, passkey=answer, binding="here", alone=alone)["token"]

    assert sign_in(alone=True)
    assert run("admins.set_password", mira, password="another long password")["secondFactors"] == ["passkey"]
    with pytest.raises(Refused, match=r"^NO_PERMISSION: Somebody else set this password"):
        sign_in(alone=True)
    assert sign_in(alone=False)
    me = Actor("admin", mira, "Mira Holm")
    gate.run(Call("admins.set_password", me, {"password": "a password of her own"}, mira))
    assert sign_in(alone=True)


def test_logins_that_nobody_has_are_asked_as_often_as_others_where_one_is_required(
    gate: Gate, run: Run, clock: Clock, mira: int
) -> None:
    object.__setattr__(gate.environment, "second_factors", SecondFactorPolicy(required=True))
    run("admins.create", name="Ada", login="ada", password="another long password")
    _set_up(gate, run, clock, mira)
    assert (has_second_step(gate, "mira"), has_second_step(gate, "ada")) == (True, False)
    assert {has_second_step(gate, f"nobody {number}") for number in range(64)} == {True, False}


def test_only_its_owner_and_the_terminal_change_a_second_factor(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    ada = run("admins.create", name="Ada", login="ada", password="another long password")["id"]
    _, codes = _set_up(gate, run, clock, mira)
    for operation in ("admins.reset_second_factor", "admins.renew_recovery_codes", "admins.remove_authenticator"):
        with pytest.raises(Refused, match=r"^NO_PERMISSION"):
            gate.run(Call(operation, Actor("admin", ada, "Ada"), {}, mira))
    token = run("admins.sign_in", mira, code=codes[0])["token"]
    assert run("admins.reset_second_factor", mira) == {"name": "Mira Holm", "wasReset": True}
    assert find_session(gate, token) is None
    assert run("admins.sign_in", mira)["token"]
    assert run("admins.reset_second_factor", mira)["wasReset"] is False


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_where_one_is_required_a_session_without_says_so(gate: Gate, run: Run, clock: Clock, mira: int) -> None:
    object.__setattr__(gate.environment, "second_factors", SecondFactorPolicy(required=True))
    token = run("admins.sign_in", mira)["token"]
    me = find_session(gate, token)
    assert me is not None
    assert me.must_add_factor
    setup = set_up_app(gate, mira, "mira")
    run("admins.set_authenticator", mira, salt=setup.salt, code=_code(setup.secret, clock), session=me.session_id)
    me = find_session(gate, token)
    assert me is not None
    assert not me.must_add_factor


@pytest.mark.parametrize(
    ("public_url", "party"),
    [
        ("https://panel.example", ("panel.example", "https://panel.example")),
        ("https://PANEL.example:443/below", ("panel.example", "https://panel.example")),
        ("https://panel.example:8443", ("panel.example", "https://panel.example:8443")),
        ("http://localhost:8000", ("localhost", "http://localhost:8000")),
        ("http://panel.example", None),
        ("https://192.0.2.1", None),
        ("https://[2001:db8::1]", None),
        (None, None),
    ],
)
def test_passkeys_are_made_for_an_address_that_browsers_take(public_url: str | None, party: tuple[str, str] | None) -> None:
    assert find_party(public_url) == party
