"""Reasons why a mail was not sent. They are stored in English, and recognised later so that they can be translated."""

from typing import Final

from trellis.sentences import Stored, mark

ADDRESS_REFUSED: Final = mark("The server refused the address: {code} {error}")
MAIL_REFUSED: Final = mark("The server refused the mail: {code} {error}")
REFUSED: Final = mark("The server refused: {code} {error}")
NOT_SIGNED_IN: Final = mark("The server did not let {user} sign in: {code}.")
NOT_WRITABLE: Final = mark("The name or the password contains characters that cannot be sent to the server.")
TOOK_TOO_LONG: Final = mark("The server took too long to answer.")
NOTHING_TO_TELL: Final = mark("There is nothing left to report, or nobody left to report it to.")
GIVEN_UP: Final = mark("Sending was abandoned after too many attempts.")
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
    INTERRUPTED,  # last, since its pattern matches nearly any text
)
