"""Reasons why a webhook was switched off or a message was not delivered.

They are stored in English, and recognised later so that they can be translated.
"""

from typing import Final

from trellis.sentences import Stored, mark

# Reasons why a webhook was switched off.
KEY_REVOKED: Final = mark("The key that made it, '{name}', was revoked.")
MAKER_DISABLED: Final = mark("The administrator who made it, {name}, was disabled.")
GONE: Final = mark("The endpoint returned 410: it is gone.")
FAILED_FOR_A_WEEK: Final = mark("Every attempt for a week has failed.")

# Reasons why an attempt failed. `{reason}` is one of the fragments below, or the message of a library.
TIMED_OUT: Final = mark("There was no complete response within {seconds} seconds.")
NOT_CONNECTED: Final = mark("The connection failed: {reason}")
NOT_RESOLVED: Final = mark("The host could not be resolved: {reason}")
INTERRUPTED: Final = mark("The connection was interrupted: {reason}")
NO_CERTIFICATES: Final = mark("The certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: {reason}")
NOT_ALLOWED: Final = mark("The address {reason}")
NO_SUBSCRIBER: Final = mark("The webhook is no longer subscribed to messages of this type.")
PURGED: Final = mark("The event has been purged, so it cannot be sent.")
OTHER_KEY: Final = mark("The secret was generated with another TRELLIS_WEBHOOK_KEY. Restore that key, or rotate the secret.")

TOOK_TOO_LONG: Final = mark("it took too long.")
NO_ADDRESS: Final = mark("{host} has no address")
LOCAL_SOCKET: Final = mark("leads to a socket of this machine.")
LOCAL_NAME: Final = mark("leads to {host}, which means this machine or this network. {how}")
LOCAL_ADDRESS: Final = mark("leads to {address}, which is not on the public internet. {how}")
NOT_LISTED: Final = mark("leads to {host}, which is not among the hosts of TRELLIS_WEBHOOK_HOSTS.")
NO_TLS: Final = mark("must begin with https://: the operator has turned on TRELLIS_REQUIRE_TLS.")
HOW_TO_ALLOW: Final = mark("The operator can allow its address with TRELLIS_WEBHOOK_ALLOW.")

REASONS: Final = Stored(
    KEY_REVOKED,
    MAKER_DISABLED,
    GONE,
    FAILED_FOR_A_WEEK,
    TIMED_OUT,
    NOT_CONNECTED,
    NOT_RESOLVED,
    INTERRUPTED,
    NO_CERTIFICATES,
    NOT_ALLOWED,
    NO_SUBSCRIBER,
    PURGED,
    OTHER_KEY,
    TOOK_TOO_LONG,
    NO_ADDRESS,
    LOCAL_SOCKET,
    LOCAL_NAME,
    LOCAL_ADDRESS,
    NOT_LISTED,
    NO_TLS,
    HOW_TO_ALLOW,
)
