"""The second factors of administrators: passkeys, authenticator apps, recovery codes."""

from trellis.core.factors.asking import (
    AppSetup,
    begin_pending,
    check_second_step,
    find_login_of_passkey,
    has_second_step,
    options_of_new_passkey,
    options_of_passkey,
    set_up_app,
)
from trellis.core.factors.challenges import is_expired
from trellis.core.factors.crud import CODE, PASSKEY_NAME, operations
from trellis.core.factors.party import find_party
from trellis.core.factors.passkeys import Owner, load
from trellis.core.factors.proof import EVIDENCE, Evidence, check_evidence, take_factor

__all__ = [
    "CODE",
    "EVIDENCE",
    "PASSKEY_NAME",
    "AppSetup",
    "Evidence",
    "Owner",
    "begin_pending",
    "check_evidence",
    "check_second_step",
    "find_login_of_passkey",
    "find_party",
    "has_second_step",
    "is_expired",
    "load",
    "operations",
    "options_of_new_passkey",
    "options_of_passkey",
    "set_up_app",
    "take_factor",
]
