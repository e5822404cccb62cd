"""Reasons why a webhook was switched off or a message was not delivered.

They are stored in English, and recognised later so that they can be translated.
"""

from typing import Final

from trellis.sentences import Stored, mark

REASONS: Final = Stored()

# Reasons why a webhook was switched off.
KEY_REVOKED: Final = REASONS.add(mark("The key that made it, '{name}', was revoked."))
MAKER_DISABLED: Final = REASONS.add(mark("The administrator who made it, {name}, was disabled."))
GONE: Final = REASONS.add(mark("The endpoint returned 410: it is gone."))
FAILED_FOR_A_WEEK: Final = REASONS.add(mark("Every attempt for a week has failed."))

# Reasons why an attempt failed. `{reason}` is one of the fragments below, or the message of a library.
TIMED_OUT: Final = REASONS.add(mark("There was no complete response within {seconds} seconds."))
NOT_CONNECTED: Final = REASONS.add(mark("The connection failed: {reason}"))
NOT_RESOLVED: Final = REASONS.add(mark("The host could not be resolved: {reason}"))
INTERRUPTED: Final = REASONS.add(mark("The connection was interrupted: {reason}"))
NO_CERTIFICATES: Final = REASONS.add(mark("The certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {reason}"))
NOT_ALLOWED: Final = REASONS.add(mark("The address {reason}"))
NO_SUBSCRIBER: Final = REASONS.add(mark("The webhook is no longer subscribed to messages of this type."))
PURGED: Final = REASONS.add(mark("The event has been purged, so it cannot be sent."))
OTHER_KEY: Final = REASONS.add(
    mark("The secret was generated with another TRELLIS_WEBHOOK_KEY. Restore that key, or rotate the secret.")
)

TOOK_TOO_LONG: Final = REASONS.add(mark("it took too long."))
NO_ADDRESS: Final = REASONS.add(mark("{host} has no address"))
LOCAL_SOCKET: Final = REASONS.add(mark("leads to a socket of this machine."))
LOCAL_NAME: Final = REASONS.add(mark("leads to {host}, which means this machine or this network. {how}"))
LOCAL_ADDRESS: Final = REASONS.add(mark("leads to {address}, which is not on the public internet. {how}"))
NOT_LISTED: Final = REASONS.add(mark("leads to {host}, which is not among the hosts of TRELLIS_WEBHOOK_HOSTS."))
NO_TLS: Final = REASONS.add(mark("must begin with https://: the operator has turned on TRELLIS_REQUIRE_TLS."))
HOW_TO_ALLOW: Final = REASONS.add(mark("The operator can allow its address with TRELLIS_WEBHOOK_ALLOW."))
