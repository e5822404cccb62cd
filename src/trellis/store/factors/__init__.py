"""The second factors of administrators: passkeys, authenticator apps and recovery codes."""

from trellis.store.factors import authenticators, passkeys, recovery_codes
from trellis.store.factors.authenticators import Authenticator
from trellis.store.factors.owners import count_with_factors, delete_all, find_kinds
from trellis.store.factors.passkeys import Passkey
