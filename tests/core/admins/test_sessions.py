"""Sessions and sign-in attempts as the panel uses them: kept as digests, ended everywhere, counted before they are checked."""

import itertools

import pytest
import sqlalchemy as sa

from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.admins import (
    Credentials,
    Proven,
    check_password,
    clear_attempts,
    count_attempt,
    count_failed_sign_on,
    count_failure,
    create_first_run_token,
    find_failed_sign_ins,
    find_session,
    has_administrators,
    is_first_run_token,
    passwords,
    record_session_use,
    remember_browser,
    sign_in,
)
from trellis.core.admins.tokens import hash_token
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords.digests import Cost
from trellis.errors import Refused
from trellis.store.admins import administrators, attempts
from trellis.store.tables import sign_in_attempts

PASSWORD = "correct horse battery"
HERE = "192.0.2.7"


@pytest.fixture
def mira(run: Run) -> int:
    return int(run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)["id"])


def _begin(gate: Gate, admin: int) -> str:
    return str(gate.run(Call("admins.sign_in", TERMINAL, {"address": HERE, "agent": "Firefox/1"}, admin)).value["token"])


def test_a_session_is_found_by_its_cookie(gate: Gate, mira: int) -> None:
    me = find_session(gate, _begin(gate, mira))
    assert me is not None
    assert (me.id, me.name, me.login, me.actor.type) == (mira, "Mira Holm", "mira", "admin")
    assert me.has_confirmed(gate.now())
    assert find_session(gate, "another cookie") is None


def test_signing_in_and_out_leave_an_event_each_and_no_secret(gate: Gate, mira: int, run: Run, events: Events) -> None:
    before = len(events())
    token = run("admins.sign_in", mira, address=HERE, agent="Firefox/1")["token"]
    me = find_session(gate, token)
    assert me is not None
    assert run("admins.sign_out", mira, sessions=[me.session_id, "0" * 16])["ended"] == 1
    assert run("admins.sign_out", mira, sessions=[me.session_id])["ended"] == 0  # which leaves none
    assert find_session(gate, token) is None
    signed_in, signed_out = events()[before:]
    assert (signed_in["type"], signed_in["resourceId"]) == ("admin.signed_in", mira)
    assert signed_in["after"] == {"address": HERE, "agent": "Firefox/1", "newBrowser": True}
    assert (signed_out["type"], signed_out["before"]) == ("admin.signed_out", {"sessions": [f"{HERE} Firefox/1"]})
    assert token not in str(events())


def test_nobody_who_is_disabled_or_not_there_signs_in(gate: Gate, mira: int, run: Run, events: Events) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    run("admins.disable", mira)
    before = events()
    for admin in (mira, 99):
        with pytest.raises(Refused, match=r"^INVALID_ID") as refused:
            run("admins.sign_in", admin)
        assert refused.value.code == "1T106/9"  # of no other refusal
    assert events() == before


def test_a_confirmed_session_has_another_cookie_and_the_old_one_is_worth_nothing(
    gate: Gate, mira: int, clock: Clock, run: Run, events: Events
) -> None:
    old = _begin(gate, mira)
    clock.move(minutes=16)
    me = find_session(gate, old)
    assert me is not None
    before = len(events())
    renewed = run("admins.confirm_password", mira, session=me.session_id, address=HERE, agent="Firefox/1")["token"]
    (event,) = events()[before:]
    assert (event["type"], event["resourceId"]) == ("admin.confirmed_password", mira)
    assert event["after"] == {"address": HERE, "agent": "Firefox/1"}
    assert renewed not in str(events())
    assert find_session(gate, old) is None
    again = find_session(gate, renewed)
    assert again is not None
    assert again.has_confirmed(gate.now())
    with pytest.raises(Refused, match=r"^INVALID_ID"):  # it has ended
        run("admins.confirm_password", mira, session=me.session_id)
    clock.move(days=7, minutes=-17)
    record_session_use(gate, again.session, HERE).result()
    clock.move(minutes=2)
    assert find_session(gate, renewed) is None  # seven days after signing in, not after confirming


def test_ones_own_new_password_ends_all_sessions_and_one_goes_on_with_another_cookie(
    gate: Gate, mira: int, run: Run, events: Events
) -> None:
    old, other = _begin(gate, mira), _begin(gate, mira)
    me = find_session(gate, old)
    assert me is not None
    raw = {"password": "another long password", "session": me.session_id}
    token = gate.run(Call("admins.set_password", me.actor, raw, mira)).value["token"]
    again = find_session(gate, token)
    assert again is not None
    assert (again.has_confirmed(gate.now()), again.must_change_password) == (True, False)
    assert [find_session(gate, cookie) for cookie in (old, other)] == [None, None]
    assert [(one["address"], one["agent"]) for one in run("admins.sessions", mira)] == [(HERE, "Firefox/1")]
    assert token not in str(events())
    with pytest.raises(Refused, match=r"^INVALID_ID"):  # it has ended
        gate.run(Call("admins.set_password", Actor("admin", mira, "Mira Holm"), {**raw, "password": "a third long password"}, mira))
    assert check_password(gate, Credentials("mira", "another long password", HERE)) is not None


def test_nobody_else_gets_the_cookie_of_the_session_that_goes_on(gate: Gate, mira: int, run: Run) -> None:
    me = find_session(gate, _begin(gate, mira))
    assert me is not None
    assert "token" not in run("admins.set_password", mira, password="another long password", session=me.session_id)
    assert run("admins.sessions", mira) == []


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


def test_a_session_from_when_the_clock_was_ahead_ends_when_it_is_put_right(gate: Gate, mira: int, run: Run, clock: Clock) -> None:
    clock.move(days=90)
    token = _begin(gate, mira)
    clock.move(days=-90)
    assert find_session(gate, token) is None
    assert run("admins.sessions", mira) == []
    assert find_session(gate, _begin(gate, mira)) is not None


def test_signing_out_everywhere_ends_sessions_that_seem_idle_because_the_clock_is_ahead(
    gate: Gate, mira: int, run: Run, clock: Clock
) -> None:
    stolen = _begin(gate, mira)
    clock.move(hours=9)
    own = find_session(gate, _begin(gate, mira))
    assert own is not None
    assert run("admins.sign_out", mira, everywhere=True, but=own.session_id)["ended"] == 0
    clock.move(hours=-9)
    assert find_session(gate, stolen) is None


def test_sessions_are_listed_and_ended_by_their_ids(gate: Gate, mira: int, run: Run) -> None:
    cookies = [_begin(gate, mira) for _ in range(3)]
    me = find_session(gate, cookies[0])
    assert me is not None
    listed = run("admins.sessions", mira)
    assert {one["address"] for one in listed} == {HERE}
    others = [one["id"] for one in listed if one["id"] != me.session_id]
    assert run("admins.sign_out", mira + 1, sessions=[me.session_id])["ended"] == 0  # nobody else's
    assert run("admins.sign_out", mira, sessions=others)["ended"] == 2
    assert [one["id"] for one in run("admins.sessions", mira)] == [me.session_id]


def test_whoever_signs_somebody_out_says_from_where(run: Run, mira: int) -> None:
    with pytest.raises(Refused, match="sessions is needed"):
        run("admins.sign_out", mira)
    with pytest.raises(Refused) as refused:
        run("admins.sign_out", mira, but=7)
    assert [fault.field for fault in refused.value.faults] == ["sessions", "but"]


def test_only_the_right_password_of_an_enabled_administrator_fits(gate: Gate, mira: int, run: Run) -> None:
    proven = check_password(gate, Credentials("MIRA", PASSWORD, HERE))
    assert proven is not None
    assert proven.admin == mira
    assert check_password(gate, Credentials("mira", "wrong", HERE)) is None
    assert check_password(gate, Credentials("nobody", PASSWORD, HERE)) is None
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    run("admins.disable", mira)
    assert check_password(gate, Credentials("mira", PASSWORD, HERE)) is None


def test_a_digest_of_before_is_replaced_at_the_next_right_password(
    gate: Gate, mira: int, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest() -> str:
        gate.store.try_to_write().result()  # what was handed in before is done by then
        [row] = DatabaseState(gate).rows()["administrators"]
        return str(row["digest"])

    before, told = digest(), len(events())
    monkeypatch.setattr(passwords, "SIGN_IN", Cost(passes=2, memory=16, threads=1))
    assert check_password(gate, Credentials("mira", "wrong", HERE)) is None
    assert digest() == before
    proven = check_password(gate, Credentials("mira", PASSWORD, HERE))
    assert proven is not None
    after = digest()
    assert "m=8,t=1" in before
    assert "m=16,t=2" in after
    assert check_password(gate, Credentials("mira", PASSWORD, HERE)) == proven
    assert digest() == after, "it is made as digests are made now"
    assert len(events()) == told

    monkeypatch.setattr(passwords, "SIGN_IN", Cost(passes=1, memory=8, threads=1))
    gate.store.write(lambda tx: administrators.renew_digest(tx, mira, before, "another"), quiet=True).result()
    assert digest() == after, "the password was changed meanwhile"


def test_two_who_sign_in_at_once_both_can_where_digests_are_made_otherwise_than_before(
    gate: Gate, mira: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[Proven | None] = []

    def renew(digest: str, password: str) -> str | None:
        if not first:
            first.append(None)
            first[0] = check_password(gate, Credentials("mira", PASSWORD, HERE))
        return passwords.renew_digest(digest, password)

    monkeypatch.setattr(sign_in, "renew_digest", renew)
    monkeypatch.setattr(passwords, "SIGN_IN", Cost(passes=2, memory=16, threads=1))
    second = check_password(gate, Credentials("mira", PASSWORD, HERE))
    assert second is not None
    assert second == first[0]
    run("admins.sign_in", mira, passwordMark=second.mark)


def test_a_password_that_is_changed_after_it_was_checked_signs_nobody_in(gate: Gate, mira: int, run: Run) -> None:
    proven = check_password(gate, Credentials("mira", PASSWORD, HERE))
    assert proven is not None
    run("admins.sign_in", mira, passwordMark=proven.mark)
    run("admins.set_password", mira, password="another long password")
    with pytest.raises(Refused, match=r"^NO_PERMISSION: The password was changed"):
        run("admins.sign_in", mira, passwordMark=proven.mark)
    assert run("admins.sessions", mira) == []


def test_attempts_cost_a_wait_until_a_correct_password_clears_them(gate: Gate, mira: int) -> None:
    waits = [count_attempt(gate, Credentials("mira", "", f"192.0.2.{number}")).result() for number in range(7)]
    assert waits[:5] == [0] * 5
    assert min(waits[5:]) > 0
    clear_attempts(gate, Credentials("mira", PASSWORD, HERE)).result()
    assert count_attempt(gate, Credentials("mira", PASSWORD, HERE)).result() == 0


# --- behind a proxy, everybody has one address ---------------------------------------------------------------------


def test_twelve_wrong_passwords_from_an_address_lock_nobody_else_out(gate: Gate, mira: int, run: Run) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    browser = remember_browser(gate, "mira", "").result()
    for login in ("mira", "nobody"):
        for _ in range(12):
            count_attempt(gate, Credentials(login, "", HERE)).result()
    assert count_attempt(gate, Credentials("mira", "", HERE)).result() > 0  # the guesser
    assert count_attempt(gate, Credentials("mira", PASSWORD, HERE, browser)).result() == 0  # the owner, with a known browser
    assert count_attempt(gate, Credentials("ada", PASSWORD, HERE)).result() == 0  # another owner, with a new one


def test_guesses_at_one_account_from_one_address_wait_longer_and_longer(gate: Gate, mira: int, clock: Clock) -> None:
    waits = []
    for _ in range(30):
        if wait := count_attempt(gate, Credentials("mira", "", HERE)).result():
            waits.append(wait)
            clock.move(seconds=wait)
    assert waits == sorted(waits)
    assert 60 < waits[-1] <= 901


def test_guesses_at_logins_that_nobody_has_do_not_tell_whether_somebody_has_another_one(
    gate: Gate, mira: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each login there are made-up ones whose plain digest is alike: whoever guesses at these learns nothing of that one."""
    monkeypatch.setattr(sign_in, "_LOGIN_SIZE", 16)  # so that no two are counted together by chance

    def count(login: str) -> int:
        return count_attempt(gate, Credentials(login, "", HERE)).result()

    def shorten(login: str) -> int:
        return int(hash_token(login), 16) % 1024

    for login in ("mira", "nobody"):
        alike = (other for other in map(str, itertools.count()) if shorten(other) == shorten(login))
        for other in itertools.islice(alike, 12):
            count(other)
        assert [count(login) for _ in range(6)] == [0, 0, 0, 0, 0, 3], login


def test_made_up_logins_and_addresses_leave_a_bounded_number_of_rows(
    gate: Gate, mira: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_MOST_SUBJECTS", 40)
    browser = remember_browser(gate, "mira", "").result()
    for number in range(60):
        count_attempt(gate, Credentials(f"login {number}", "", f"192.0.2.{number}")).result()
    with gate.store.reading() as tx:
        rows = tx.connection.execute(sa.select(sign_in_attempts.c.subject)).scalars().all()
    assert len(rows) <= 40
    assert count_attempt(gate, Credentials("mira", "", HERE, browser)).result() == 0
    assert any(subject.startswith("browser/") for subject in rows)


# --- the events of those that failed -------------------------------------------------------------------------------


def _tell(gate: Gate) -> int:
    calls = find_failed_sign_ins(gate)
    for call in calls:
        gate.run(call)
    return len(calls)


def test_failures_are_told_by_address_and_minute_once_the_minute_is_over(
    gate: Gate, mira: int, clock: Clock, events: Events
) -> None:
    before = len(events())
    for _ in range(7):
        count_failure(gate, Credentials("mira", "", HERE)).result()
    count_failure(gate, Credentials("mistyped password", "", HERE)).result()
    assert _tell(gate) == 0  # the minute is not over
    clock.move(minutes=1)
    assert (_tell(gate), _tell(gate)) == (2, 0)
    unknown, known = events()[before:]
    assert known["type"] == "admin.refused_sign_in"
    assert (known["resourceId"], known["actor"]["name"]) == (mira, "sign-in")
    assert known["after"] == {"address": HERE, "minute": "2026-01-31T09:30", "attempts": 7}
    assert (unknown["resourceId"], unknown["after"]["attempts"]) == (None, 1)
    assert "mistyped" not in str(events())


def test_failures_from_when_the_clock_was_ahead_are_told_when_it_is_put_right(gate: Gate, mira: int, clock: Clock) -> None:
    clock.move(days=30)
    count_failure(gate, Credentials("mira", "", HERE)).result()
    clock.move(days=-30)
    count_failure(gate, Credentials("mira", "", HERE)).result()
    assert _tell(gate) == 1
    clock.move(minutes=1)
    assert _tell(gate) == 1


def test_however_many_addresses_fail_a_minute_has_a_bounded_number_of_events(gate: Gate, mira: int, clock: Clock) -> None:
    for number in range(60):
        count_failure(gate, Credentials("mira", "", f"192.0.2.{number}")).result()
    clock.move(minutes=1)
    told = [call.raw for call in find_failed_sign_ins(gate)]
    assert len(told) == 21
    assert any(raw["address"] == "other addresses" for raw in told)


@pytest.mark.parametrize("sent", ["x" * 101, "a\x85b", "\xa0x", " 192.0.2.7", ""], ids=ascii)
def test_what_a_proxy_passes_on_in_place_of_an_address_does_not_keep_failures_from_being_told(
    gate: Gate, mira: int, clock: Clock, events: Events, sent: str
) -> None:
    count_failure(gate, Credentials("mira", "", sent)).result()
    count_failed_sign_on(gate, sent, "").result()
    clock.move(minutes=1)
    count_failure(gate, Credentials("mira", "", HERE)).result()
    clock.move(minutes=1)
    assert (_tell(gate), _tell(gate)) == (3, 0)
    assert [event["after"]["address"] for event in events()[-3:]] == ["unreadable address", "unreadable address", HERE]


def test_failures_that_an_earlier_release_counted_by_no_address_are_told(
    gate: Gate, mira: int, clock: Clock, events: Events
) -> None:
    gate.store.write(lambda tx: attempts.count_failed(tx, gate.now()[:16], "x" * 101 + "\x85 ", mira)).result()
    clock.move(minutes=1)
    assert (_tell(gate), _tell(gate)) == (1, 0)
    assert events()[-1]["after"]["address"] == "unreadable address"


def test_attempts_that_must_wait_are_failures_too(gate: Gate, mira: int, clock: Clock) -> None:
    for _ in range(9):
        count_attempt(gate, Credentials("mira", "", HERE)).result()
    clock.move(minutes=1)
    assert _tell(gate) == 1


def test_a_known_browser_has_a_counter_of_its_own(gate: Gate, mira: int) -> None:
    browser = remember_browser(gate, "mira", "").result()
    for number in range(8):
        count_attempt(gate, Credentials("mira", "", f"192.0.2.{number}")).result()
    assert count_attempt(gate, Credentials("mira", "", "198.51.100.1")).result() > 0
    assert count_attempt(gate, Credentials("mira", "", "198.51.100.1", browser)).result() == 0


def test_known_browsers_are_bounded_and_the_newest_stay(
    gate: Gate, mira: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_MOST_BROWSERS", 10)
    known = []
    for _ in range(11):
        clock.move(seconds=1)
        known.append(remember_browser(gate, "mira", "").result())
    new = [run("admins.sign_in", mira, browser=browser).get("newBrowser", False) for browser in known]
    assert new == [True] + [False] * 10


def test_nobody_pushes_out_the_known_browsers_of_others(
    gate: Gate, mira: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "_MOST_BROWSERS", 10)
    hers = remember_browser(gate, "mira", "").result()
    for _ in range(30):
        clock.move(seconds=1)
        remember_browser(gate, "ada", "").result()
    assert "newBrowser" not in run("admins.sign_in", mira, browser=hers)


def test_a_first_run_token_holds_for_an_hour_until_the_next_and_while_there_is_no_administrator(
    gate: Gate, run: Run, clock: Clock
) -> None:
    before, token = create_first_run_token(gate), create_first_run_token(gate)
    assert before is not None
    assert token is not None
    assert [is_first_run_token(gate, one) for one in (before, token, "another")] == [False, True, False]
    clock.move(minutes=61)
    assert not is_first_run_token(gate, token)
    run("admins.create", name="Mira Holm", login="mira", password=PASSWORD)
    assert has_administrators(gate)
    assert create_first_run_token(gate) is None


def test_a_browser_is_not_known_by_a_cookie_that_somebody_else_may_have_chosen(gate: Gate, mira: int, run: Run) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    planted = "x" * 43
    cookie = remember_browser(gate, "mira", planted).result()
    assert run("admins.sign_in", mira, browser=planted)["newBrowser"]
    assert "newBrowser" not in run("admins.sign_in", mira, browser=cookie)
    shared = remember_browser(gate, "ada", cookie).result()  # two who share a browser are both known by it
    for number in (mira, 2):
        assert "newBrowser" not in run("admins.sign_in", number, browser=shared)
    assert remember_browser(gate, "mira", shared).result() == shared
    logins = [f"login {number}" for number in range(9)]
    for login in logins:
        shared = remember_browser(gate, login, shared).result()
    assert len(shared) < 200
