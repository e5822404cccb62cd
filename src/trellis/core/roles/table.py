"""The table of roles: patterns over the names of operations that define what each role may run.

A pattern is `resource.verb`. The resource may be `*` (any), `{kind}` (the kinds of nodes that the role is for), or `{groups}` (the
groups if they are not among these kinds: permissions name them). The verb may be `*` (any) or `{read}` (any operation that changes
nothing). A new kind or operation is covered by its name. Operations that match no pattern are reserved for owners.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol


class Named(Protocol):
    """An operation, as far as it is compared with patterns."""

    @property
    def name(self) -> str: ...
    @property
    def writes(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Role:
    """One role. `doc` describes what it may do. A role that is `for_kinds` can be limited to some kinds of nodes."""

    name: str
    title: str
    doc: str
    patterns: tuple[str, ...]
    for_kinds: bool = False

    @property
    def word(self) -> str:
        """The name of the role within a sentence."""
        return self.title.lower()

    @property
    def one(self) -> str:
        """One administrator with the role: `an owner`."""
        return f"{'an' if self.word[0] in 'aeiou' else 'a'} {self.word}"

    @property
    def several(self) -> str:
        """Several administrators with the role: `owners`."""
        return f"{self.word}s"

    @property
    def is_owner(self) -> bool:
        """Whether it may do everything."""
        return self.patterns == _EVERYTHING


_EVERYTHING: Final = ("*.*",)
_EVERYBODY: Final = (
    "core.{read}",
    "overview.{read}",
    "events.{read}",
    "search.{read}",
    "alarms.view",
    "filters.*",
)  # these show only what the rest of the role may read
_OWN_FILTERS: Final = ("filters.create", "filters.update", "filters.delete")
_STRUCTURE: Final = ("{kind}.{read}", "structure.{read}", "access.{read}")
OWNER: Final = "owner"
ROLES: Final[Mapping[str, Role]] = {
    role.name: role
    for role in (
        Role(
            OWNER,
            "Owner",
            "Can do everything. Only owners can add administrators, give roles, reset passwords and repair the database.",
            _EVERYTHING,
        ),
        Role(
            "key-manager",
            "Key manager",
            "Creates, changes and revokes API keys and webhooks, and reads the structure. With a key that they create, they can "
            "do anything that a key can be granted.",
            (
                *_EVERYBODY,
                *_STRUCTURE,
                "keys.*",
                "webhooks.*",
                "deliveries.*",
                "requests.{read}",
                "proposals.{read}",
                "events.restore",
                "changesets.*",
            ),
        ),
        Role(
            "structure-editor",
            "Structure editor",
            "Creates, changes, moves, deletes and restores nodes of all kinds or some, and sees only these, the groups and the "
            "events about both.",
            (
                *_EVERYBODY,
                "{kind}.*",
                "{groups}.{read}",
                "structure.*",
                "access.view",
                "events.restore",
                "changesets.*",
                "core.batch",
            ),
            for_kinds=True,
        ),
        Role(
            "approver",
            "Approver",
            "Approves and rejects what programs propose, and can read the structure, keys and requests for this purpose.",
            (
                *_EVERYBODY,
                *_STRUCTURE,
                "keys.{read}",
                "requests.{read}",
                "proposals.{read}",
                "proposals.approve",
                "proposals.reject",
            ),
        ),
        Role(
            "auditor",
            "Auditor",
            "Reads everything and changes nothing except their own saved filters.",
            ("*.{read}", *_OWN_FILTERS),
        ),
    )
}

# The operations that every administrator may run on themselves, whatever their role.
OWN: Final = frozenset(
    f"admins.{name}"
    for name in (
        *("get", "sessions", "sign_in", "sign_out", "confirm_password", "update", "set_password", "accept_invitation"),
        *("factors", "add_passkey", "rename_passkey", "remove_passkey"),
        *("sign_on", "confirm_sign_on", "link_identity", "unlink_identity", "accept_by_sign_on"),
        *("set_authenticator", "remove_authenticator", "renew_recovery_codes"),
    )
)


def find_role(name: str) -> Role:
    """Return the role with a name. A role that only a newer release knows may do nothing."""
    return ROLES.get(name) or Role(name, name, "Unknown to this release.", ())


def is_match(pattern: str, operation: Named, kinds: Collection[str], groups: Collection[str] = ()) -> bool:
    """Return whether a pattern of a role for these kinds covers an operation. `groups` are the groups that are not among them."""
    resource, _, does = operation.name.partition(".")
    wanted, _, done = pattern.partition(".")
    resources: Mapping[str, Any] = {"*": (resource,), "{kind}": kinds, "{groups}": groups}
    verbs: Mapping[str, bool] = {"*": True, "{read}": not operation.writes}
    return resource in resources.get(wanted, (wanted,)) and verbs.get(done, does == done)
