"""Sessions and sign-in attempts as the panel uses them: kept as digests, ended everywhere, counted before they are checked."""

import pytest

from tests.fixture_types import Clock, Events, Run
from trellis.core.admins import (
    Credentials,
    begin_session,
    check_password,
    clear_attempts,
    count_attempt,
    create_first_run_token,
    end_other_sessions,
    end_session,
    end_session_of,
    find_session,
    has_administrators,
    is_first_run_token,
    passwords,
    record_session_use,
    remember_browser,
)
from trellis.core.gate import Gate
from trellis.core.passwords import Cost

PASSWORD = "correct horse battery"
HERE = "192.0.2.7"


@pytest.fixture(autouse=True)
def _quick_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "SIGN_IN", Cost(passes=1, memory=8, threads=1))


@pytest.fixture
def mira(run: Run) -> int:
    return int(run("admins.create", name="Mira Holm", login="mira", password=PASSWORD)["id"])


def _begin(gate: Gate, admin: int) -> str:
    return begin_session(gate, admin, HERE, "Firefox/1").result()


def test_a_session_is_found_by_its_cookie_and_leaves_no_event(gate: Gate, mira: int, events: Events) -> None:
    before = events()
    me = find_session(gate, _begin(gate, mira))
    assert me is not None
    assert (me.id, me.name, me.login, me.actor.type) == (mira, "Mira Holm", "mira", "admin")
    assert me.has_confirmed(gate.now())
    assert find_session(gate, "another cookie") is None
    assert events() == before


def test_a_session_whose_use_is_recorded_lasts_and_one_that_is_not_used_ends(gate: Gate, mira: int, clock: Clock) -> None:
    used, unused = _begin(gate, mira), _begin(gate, mira)
    clock.move(hours=7)
    me = find_session(gate, used)
    assert me is not None
    assert not me.use_is_recorded
    record_session_use(gate, me.session, HERE).result()
    clock.move(hours=2)
    assert find_session(gate, used) is not None
    assert find_session(gate, unused) is None


def test_sessions_are_listed_and_ended_by_their_ids(gate: Gate, mira: int, run: Run) -> None:
    cookies = [_begin(gate, mira) for _ in range(3)]
    me = find_session(gate, cookies[0])
    assert me is not None
    listed = run("admins.sessions", mira)
    assert {one["address"] for one in listed} == {HERE}
    other = next(one["id"] for one in listed if one["id"] != me.session_id)
    assert [end_session_of(gate, mira, other).result() for _ in range(2)] == [True, False]
    assert not end_session_of(gate, mira + 1, me.session_id).result()  # nobody else's
    assert end_other_sessions(gate, me).result() == 1
    assert [one["id"] for one in run("admins.sessions", mira)] == [me.session_id]
    end_session(gate, me.session).result()
    assert find_session(gate, cookies[0]) is None


def test_only_the_right_password_of_an_enabled_administrator_fits(gate: Gate, mira: int, run: Run) -> None:
    assert check_password(gate, Credentials("MIRA", PASSWORD, HERE)) == mira
    assert check_password(gate, Credentials("mira", "wrong", HERE)) is None
    assert check_password(gate, Credentials("nobody", PASSWORD, HERE)) is None
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    run("admins.disable", mira)
    assert check_password(gate, Credentials("mira", PASSWORD, HERE)) is None


def test_attempts_cost_a_wait_until_a_correct_password_clears_them(gate: Gate, mira: int) -> None:
    waits = [count_attempt(gate, Credentials("mira", "", f"192.0.2.{number}")).result() for number in range(7)]
    assert waits[:6] == [0] * 6
    assert waits[6] > 0
    clear_attempts(gate, Credentials("mira", PASSWORD, HERE)).result()
    assert count_attempt(gate, Credentials("mira", PASSWORD, HERE)).result() == 0


def test_a_known_browser_has_a_counter_of_its_own(gate: Gate, mira: int) -> None:
    browser = remember_browser(gate, "mira", "").result()
    for number in range(8):
        count_attempt(gate, Credentials("mira", "", f"192.0.2.{number}")).result()
    assert count_attempt(gate, Credentials("mira", "", "198.51.100.1")).result() > 0
    assert count_attempt(gate, Credentials("mira", "", "198.51.100.1", browser)).result() == 0


def test_a_first_run_token_holds_for_an_hour_and_while_there_is_no_administrator(gate: Gate, run: Run, clock: Clock) -> None:
    token, late = create_first_run_token(gate), create_first_run_token(gate)
    assert token is not None
    assert is_first_run_token(gate, token)
    assert not is_first_run_token(gate, "another")
    clock.move(minutes=61)
    assert late is not None
    assert not is_first_run_token(gate, late)
    run("admins.create", name="Mira Holm", login="mira", password=PASSWORD)
    assert has_administrators(gate)
    assert create_first_run_token(gate) is None
