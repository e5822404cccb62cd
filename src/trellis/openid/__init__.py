"""OpenID Connect: the client of the provider where administrators can sign in. It asks the provider, and verifies its answers.

The operations of `core.admins` decide who that is in Trellis, and what they may do.
"""

from trellis.openid.errors import ProviderRefused, ProviderUnavailable
from trellis.openid.provider import CALLBACK, Provider
