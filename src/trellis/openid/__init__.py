"""OpenID Connect: the client of the provider where administrators can sign in. It asks, and judges what it is told.

Who that is here and what they may do is for the operations of `core.admins`.
"""

from trellis.openid.errors import ProviderRefused, ProviderUnavailable
from trellis.openid.provider import CALLBACK, Provider

__all__ = ["CALLBACK", "Provider", "ProviderRefused", "ProviderUnavailable"]
