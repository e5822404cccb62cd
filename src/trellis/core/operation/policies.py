"""The operator's settings for parts of the service, as operations need to know them, and the alarm that an event raises."""

from collections.abc import Collection
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Final, NamedTuple


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """The operator's settings for webhooks.

    `allowed` are the networks that webhooks may be sent to besides the public internet. `key` is the key that their secrets are
    derived from. `instance` names the instance that sends. If there are `hosts`, webhooks may be sent only to these; one that
    begins with `*.` stands for all hosts below it. With `https_only`, their URLs must be https.
    """

    allowed: tuple[IPv4Network | IPv6Network, ...] = ()
    key: str | None = field(default=None, repr=False)
    instance: str | None = None
    hosts: tuple[str, ...] = ()
    https_only: bool = False


@dataclass(frozen=True, slots=True)
class SecondFactorPolicy:
    """The operator's settings for second factors.

    `required`: every administrator must have one. `key` is the key that the secrets of authenticator apps are derived from.
    """

    required: bool = False
    key: str | None = field(default=None, repr=False)


class GroupRole(NamedTuple):
    """The role that a group at the provider gives its members, and the kinds that it is for: if none is named, all."""

    group: str
    role: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SignOnPolicy:
    """The operator's settings for single sign-on.

    `issuer` is the provider ("" if there is none), and `name` is what people call it. `roles` are the roles that groups give; the
    first group that somebody is in decides. Without any, roles are given in Trellis. `joins`: somebody new with a role becomes an
    administrator. `owners_only`: only owners may sign in with a password or passkey of their own.
    """

    issuer: str = ""
    name: str = "single sign-on"
    roles: tuple[GroupRole, ...] = ()
    joins: bool = False
    owners_only: bool = False

    @property
    def groups(self) -> frozenset[str]:
        """The groups that give a role."""
        return frozenset(one.group for one in self.roles)

    def find_role(self, groups: Collection[str]) -> GroupRole | None:
        """Return the role of somebody in these groups; None if no group gives one."""
        return next((one for one in self.roles if one.group in groups), None)


class Raised(NamedTuple):
    """The name of the alarm that an event raises. `own` is the administrator who caused it, if they need not be told."""

    name: str
    own: int | None


# The policies if nothing is set.
NO_WEBHOOK_POLICY: Final = WebhookPolicy()
NO_SECOND_FACTOR_POLICY: Final = SecondFactorPolicy()
NO_SIGN_ON: Final = SignOnPolicy()
