"""The roles of administrators: the fields that set a role, and the rules that depend on it."""

from dataclasses import replace
from typing import Any, Final

from trellis.core.fields import Choice, Field, Input, TextList, isolate
from trellis.core.operation import Context
from trellis.core.roles import OWNER, ROLES
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store.admins import Administrator, administrators

_WORDS: Final = {role.name: f"{role.title}: {role.doc}" for role in ROLES.values()}
ROLE: Final = Field("role", Choice(_WORDS), "What the administrator may do.", default=OWNER)
KINDS: Final = Field(
    "kinds",
    TextList(),
    "The kinds of nodes that a structure editor may edit, such as forums; all if none is named. Editing groups requires all "
    "kinds, because deleting a group changes the permissions of other nodes.",
    default=(),
)


def serialize_role(admin: Administrator) -> dict[str, Any]:
    """Serialise the role of an administrator. `kinds` is empty if the role is for all kinds."""
    return {"role": admin.role, "kinds": admin.kinds.split(",") if admin.kinds else []}


def give_role(context: Context, admin: Administrator, given: Input) -> Administrator:
    """Return an administrator with the role that was sent. Raises Refused for kinds that the role cannot be limited to."""
    held = serialize_role(admin)
    role = ROLES[given.get(ROLE.name, held["role"])]
    kinds = given.get(KINDS.name, () if ROLE.name in given else held["kinds"])
    known = [kind.name for kind in context.environment.kinds if not kind.is_group]
    if kinds and not role.for_kinds:
        raise refuse_fault(KINDS.name, "INVALID_VALUE", say("kinds: the role {title} is for all kinds.", title=say(role.word)))
    if unknown := [name for name in kinds if name not in known]:
        raise refuse_fault(
            KINDS.name,
            "INVALID_VALUE",
            say("kinds: {unknown} is not one of {known}.", unknown=isolate(unknown[0]), known=", ".join(known)),
        )
    return replace(admin, role=role.name, kinds=",".join(name for name in known if name in kinds) or None)


def require_other_owner(context: Context, admin: Administrator) -> None:
    """Refuse a change to an owner that would leave no owner who can sign in. Raises Refused (LAST_ADMINISTRATOR)."""
    is_one = admin.role == OWNER and admin.disabled_at is None
    issuer = context.environment.sign_on.issuer
    if is_one and not administrators.count_others_enabled(context.tx, admin.id, OWNER, issuer):
        raise Refused(
            "LAST_ADMINISTRATOR",
            say(
                "{name} is the only owner who can sign in. Add or enable another owner first, or make somebody else one.",
                name=isolate(admin.name),
            ),
        )


def require_local_sign_in(context: Context, admin: Administrator) -> None:
    """Refuse an administrator other than an owner if only owners may sign in locally. Raises Refused (LOCAL_SIGN_IN_OFF)."""
    if context.environment.sign_on.owners_only and admin.role != OWNER:
        raise Refused(
            "LOCAL_SIGN_IN_OFF",
            say("Sign in with {name}: only owners can use a password.", name=isolate(context.environment.sign_on.name)),
        )
