"""The second factors of administrators: passkeys, authenticator apps, recovery codes."""

from trellis.core.factors.asking import (
    begin_pending,
    check_second_step,
    find_login_of_passkey,
    has_second_step,
    options_of_new_passkey,
    options_of_passkey,
    set_up_app,
    was_taken,
    was_taken_since,
)
from trellis.core.factors.challenges import (
    decode,
    encode,
    is_expired,
    is_live_challenge,
    is_spent,
    issue_challenge,
    issued_at,
    mark_password,
)
from trellis.core.factors.crud import CODE, PASSKEY_NAME, operations
from trellis.core.factors.party import find_party
from trellis.core.factors.passkeys import Owner, load
from trellis.core.factors.proof import EVIDENCE, Evidence, check_evidence, has_factor, take_factor
from trellis.core.factors.secret import find_service_key, sign
