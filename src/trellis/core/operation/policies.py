"""What the operator has set of single parts of the service, as operations need to know it, and what an event is to who watches."""

from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """The operator's settings for webhooks: where they may go besides the public internet, their secrets' key, who sends.

    Hosts to which alone they may go, `*.` for all below one, and whether they must be https.
    """

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    key: str | None = field(default=None, repr=False)
    instance: str | None = None
    hosts: tuple[str, ...] = ()
    https_only: bool = False


@dataclass(frozen=True, slots=True)
class SecondFactorPolicy:
    """The operator's settings for second factors: whether every administrator must have one, and the key of apps' secrets."""

    required: bool = False
    key: str | None = field(default=None, repr=False)


class GroupRole(NamedTuple):
    """The role that somebody has by a group at the provider, and the kinds that it is for: none named, for all."""

    group: str
    role: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignOnPolicy:
    """The operator's settings for single sign-on.

    `issuer` is the provider, "" without one, and `name` what people call it. `roles` are those of groups, of which the first that
    somebody is in decides; without any, roles are given here. `joins`: somebody new with a role becomes an administrator.
    `owners_only`: nobody but owners signs in with a password or passkey of their own.
    """

    issuer: str = ""
    name: str = "single sign-on"
    roles: tuple[GroupRole, ...] = ()
    joins: bool = False
    owners_only: bool = False

    @property
    def groups(self) -> frozenset[str]:
        """The groups that matter."""
        return frozenset(one.group for one in self.roles)

    def find_role(self, groups: Collection[str]) -> GroupRole | None:
        """Return what somebody in these groups has; None if no group gives a role."""
        return next((one for one in self.roles if one.group in groups), None)


class Raised(NamedTuple):
    """The name of the alarm that an event raises, and the administrator who did it, to whom it is no news; None if it is."""

    name: str
    own: int | None


# As long as nothing is set.
NO_WEBHOOK_POLICY: Final = WebhookPolicy()
NO_SECOND_FACTOR_POLICY: Final = SecondFactorPolicy()
NO_SIGN_ON: Final = SignOnPolicy()
