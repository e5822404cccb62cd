"""Why a mail was not sent: stored in English, and found again to be said anew."""

from typing import Final

from trellis.sentences import Stored, mark

ADDRESS_REFUSED: Final = mark("The server refuses the address: {code} {error}")
MAIL_REFUSED: Final = mark("The server refuses the mail: {code} {error}")
REFUSED: Final = mark("The server refuses: {code} {error}")
NOT_SIGNED_IN: Final = mark("The server lets {user} not sign in: {code}.")
NOT_WRITABLE: Final = mark("The name or the password has characters that the server cannot be told.")
TOOK_TOO_LONG: Final = mark("The server takes too long.")
NOTHING_TO_TELL: Final = mark("There is nothing to tell any more, or nobody to tell it.")
GIVEN_UP: Final = mark("It was given up.")
INTERRUPTED: Final = "{host}: {error}"

REASONS: Final = Stored(
    ADDRESS_REFUSED,
    MAIL_REFUSED,
    REFUSED,
    NOT_SIGNED_IN,
    NOT_WRITABLE,
    TOOK_TOO_LONG,
    NOTHING_TO_TELL,
    GIVEN_UP,
    INTERRUPTED,  # last: nearly anything may be one
)
