"""Administrators: their operations, and what bypasses the gate: passwords, sessions, sign-in attempts, one-time links."""

from trellis.core.admins import crud, identities, invitations
from trellis.core.admins.appearance import THEMES, set_view
from trellis.core.admins.crud import KEEP_WEBHOOKS, LOGIN, NAME, PASSWORD
from trellis.core.admins.first_run import (
    create_demo_administrator,
    create_first_run_token,
    has_administrators,
    is_first_run_token,
)
from trellis.core.admins.invitations import BY_MAIL, Invited, count_wrong_link, find_invited, find_wait_for_link
from trellis.core.admins.mail import ALL, EMAIL, MAILED_ALARMS
from trellis.core.admins.passwords import generate_password
from trellis.core.admins.roles import KINDS, ROLE
from trellis.core.admins.sessions import (
    SET_BY_ANOTHER,
    SignedIn,
    find_live_sessions,
    find_session,
    record_session_use,
)
from trellis.core.admins.sign_in import (
    FORGOTTEN_AFTER,
    REMEMBERED_AHEAD,
    REMEMBERED_FOR,
    Credentials,
    Proven,
    address_lane,
    check_password,
    clear_attempts,
    count_attempt,
    count_failure,
    find_failed_sign_ins,
    find_lane,
    find_lane_of_passkey,
    find_wait,
    remember_browser,
)
from trellis.core.admins.sign_on import (
    SIGN_ON_LOGIN,
    Claims,
    Known,
    Purpose,
    SignOnRequest,
    begin_sign_on,
    can_anybody_sign_in,
    count_failed_sign_on,
    find_known,
    find_sign_on,
    find_sign_on_wait,
    lacks_local_owner,
    seal_claims,
    unseal_claims,
)
from trellis.core.admins.tokens import generate_visitor_token, is_open, is_visitor_token, make_link, open_until
from trellis.core.operation import Operation


def operations() -> tuple[Operation, ...]:
    """Return the operations on administrators. All are for the panel and the terminal."""
    return (*crud.operations(), *invitations.operations(), *identities.operations())
