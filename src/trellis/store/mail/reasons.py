"""Reasons why a mail was not sent. They are stored in English, and recognised later so that they can be translated."""

from typing import Final

from trellis.sentences import Stored, mark

REASONS: Final = Stored()

ADDRESS_REFUSED: Final = REASONS.add(mark("The server refused the address: {code} {error}"))
MAIL_REFUSED: Final = REASONS.add(mark("The server refused the mail: {code} {error}"))
REFUSED: Final = REASONS.add(mark("The server refused: {code} {error}"))
NOT_SIGNED_IN: Final = REASONS.add(mark("The server did not let {user} sign in: {code}."))
NOT_WRITABLE: Final = REASONS.add(mark("The name or the password contains characters that cannot be sent to the server."))
TOOK_TOO_LONG: Final = REASONS.add(mark("The server took too long to answer."))
NOTHING_TO_TELL: Final = REASONS.add(mark("There is nothing left to report, or nobody left to report it to."))
GIVEN_UP: Final = REASONS.add(mark("Sending was abandoned after too many attempts."))
INTERRUPTED: Final = REASONS.add("{host}: {error}")  # last, since its pattern matches nearly any text
