"""The commands about administrators of the panel."""

from typing import Annotated, Any

import typer

from trellis.admin import PREFIX
from trellis.cli.community import act, community, list_all
from trellis.cli.terminal import (
    MISUSED,
    STDIN,
    Failure,
    Json,
    make_app,
    print_message,
    read_line,
    refuse_empty,
    show,
    show_json,
    show_table,
)
from trellis.core.admins import generate_password
from trellis.core.gate import Gate
from trellis.core.roles import OWNER, ROLES, find_role
from trellis.settings import Settings, variable

app = make_app(
    help="Add, invite, list and disable administrators of the panel, give roles, and reset their passwords and second factors.",
    no_args_is_help=True,
)

Login = Annotated[str, typer.Argument(metavar="LOGIN", help="The name used to sign in.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="The name shown in events. By default the login.")]
Role = Annotated[str | None, typer.Option("--role", help=f"What they may do: {', '.join(ROLES)}.")]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", help="For a structure editor: a kind of nodes, such as forums. Repeat as needed; all by default."),
]
FromStdin = Annotated[
    bool,
    typer.Option("--password-stdin", help="Read the password from standard input. By default one is generated and shown once."),
]


@app.command()
def create(
    login: Login,
    name: Name = None,
    role: Role = OWNER,
    kind: Kinds = None,
    password_stdin: FromStdin = False,
    json: Json = False,
) -> None:
    """Add an administrator: without --role an owner, who may do everything. A password is generated and shown once by default."""
    password = _password(password_stdin)
    raw = {"name": name or login, "login": login, "password": password, "role": role, "kinds": kind or []}
    with community(Settings.load()) as gate:
        made = act(gate, "admins.create", raw).value
    _print_admin(made, json, f"{made['name']} can now sign in to the panel.", None if password_stdin else password)


@app.command()
def invite(
    login: Login,
    name: Name = None,
    role: Role = None,
    kind: Kinds = None,
    email: Annotated[
        str | None,
        typer.Option(help="Where to mail the link, if a mail server is set. Otherwise it is shown.", callback=refuse_empty()),
    ] = None,
    json: Json = False,
) -> None:
    """Add an administrator who chooses their own password with a link, which is shown or mailed once and is valid for three days.

    A new administrator needs a role. For somebody who was already invited and has not chosen a password, it creates a new link.
    """
    settings = Settings.load()
    with community(settings) as gate:
        before = _find(gate, login)
        if before is None and role is None:
            raise Failure(
                f"{login} is not an administrator yet. Choose what they may do with --role, one of {', '.join(ROLES)}.", MISUSED
            )
        if before is not None and (name or role or kind or email):
            told = (
                "Leave out --name, --role, --kind and --email to create another link. Change the role with `trellis admins role`."
            )
            raise Failure(f"{before['name']} was already added. {told}", MISUSED)
        if before is None:
            raw = {"name": name or login, "login": login, "role": role, "kinds": kind or [], "email": email}
            invited = act(gate, "admins.invite", raw).value
        else:
            invited = act(gate, "admins.renew_invitation", target=before["id"]).value
    if invited["mailedTo"]:
        print_message(f"The link is mailed by `trellis serve` or `trellis work`, to {invited['mailedTo']}.")
        show_json(invited) if json else show(f"{invited['name']} can use it once to choose a password.")
        return
    link = f"{settings.public_url or ''}{PREFIX}/invitation/{invited.pop('link')}"
    show_json(invited | {"link": link}) if json else show(f"Link:  {link}")
    if not settings.public_url:
        print_message(
            f"{variable('public_url')} is not set, so the link lacks the address of the service. Put that in front of it, as in "
            f"http://127.0.0.1:8000{link}"
        )
    if json:
        return
    print_message("Save the link now: it will not be shown again.")
    show(f"{invited['name']} can choose a password there, once, until {invited['invitedUntil']}.")


@app.command("withdraw-invitation")
def withdraw_invitation(login: Login, json: Json = False) -> None:
    """Withdraw an invitation: its link no longer works."""
    with community(Settings.load()) as gate:
        result = act(gate, "admins.withdraw_invitation", target=_id_of(gate, login))
    was_withdrawn, name = result.event is not None, result.value["name"]
    told = f"The invitation of {name} was withdrawn." if was_withdrawn else f"{name} has no invitation."
    _print_admin({**result.value, "wasWithdrawn": was_withdrawn}, json, told)


@app.command("list")
def list_admins(json: Json = False) -> None:
    """List all administrators, including disabled ones."""
    with community(Settings.load()) as gate:
        found = list_all(gate, "admins.list")
    if json:
        show_json(found)
    elif found:
        rows = ((a["id"], a["name"], a["login"], _describe_role(a), _describe_state(a), a["lastSeenAt"]) for a in found)
        show_table(("Id", "Name", "Login", "Role", "State", "Last seen"), rows)
    else:
        show("There is no administrator yet. Add one: trellis admins create LOGIN")


@app.command()
def role(
    login: Login,
    name: Annotated[
        str | None, typer.Argument(metavar="[ROLE]", help=f"The new role: {', '.join(ROLES)}.", show_default=False)
    ] = None,
    kind: Kinds = None,
    json: Json = False,
) -> None:
    """Show the role of an administrator, or give them another one or other kinds, from their next request on."""
    with community(Settings.load()) as gate:
        number = _id_of(gate, login)
        if name is None and not kind:
            admin = act(gate, "admins.get", target=number).value
        else:
            given = {} if name is None else {"role": name}
            admin = act(gate, "admins.set_role", given | {"kinds": kind or []}, number).value
    _print_admin(admin, json, f"{admin['name']} is {_describe_role(admin)}: {find_role(admin['role']).doc}")


@app.command("reset-password")
def reset_password(login: Login, password_stdin: FromStdin = False, json: Json = False) -> None:
    """Set a new password for an administrator, and sign them out everywhere."""
    password = _password(password_stdin)
    with community(Settings.load()) as gate:
        changed = act(gate, "admins.set_password", {"password": password}, _id_of(gate, login)).value
    told = f"{changed['name']} was signed out everywhere."
    if changed["secondFactors"]:
        told += (
            f" Second factors are kept: {', '.join(changed['secondFactors'])}. If somebody else may have them, run: "
            f"trellis admins reset-second-factor {login}"
        )
    _print_admin(changed, json, told, None if password_stdin else password)


@app.command("reset-second-factor")
def reset_second_factor(login: Login, json: Json = False) -> None:
    """Remove all second factors of an administrator who is locked out, and sign them out everywhere. The password is kept."""
    with community(Settings.load()) as gate:
        reset = act(gate, "admins.reset_second_factor", target=_id_of(gate, login)).value
    told = "no longer has a second factor, and was signed out everywhere. The password has not changed."
    _print_admin(reset, json, f"{reset['name']} {told if reset['wasReset'] else 'has no second factor.'}")


@app.command("single-sign-on")
def show_identities(login: Login, json: Json = False) -> None:
    """Show the accounts at an OpenID provider with which an administrator signs in."""
    with community(Settings.load()) as gate:
        admin = act(gate, "admins.get", target=_id_of(gate, login)).value
    if json:
        show_json(admin["identities"])
    elif admin["identities"]:
        rows = ((one["login"], one["issuer"], one["subject"], one["createdAt"], one["usedAt"]) for one in admin["identities"])
        show_table(("Account", "Provider", "Subject", "Linked", "Last used"), rows)
    else:
        show(f"{admin['name']} has no linked account.")


@app.command()
def unlink(login: Login, json: Json = False) -> None:
    """Stop an administrator from signing in with an account at an OpenID provider, and end the sessions that began there."""
    with community(Settings.load()) as gate:
        result = act(gate, "admins.unlink_identity", target=_id_of(gate, login))
    told = "has no linked account." if result.event is None else "can no longer sign in with an account at a provider."
    _print_admin(result.value, json, f"{result.value['name']} {told}")


@app.command()
def disable(
    login: Login,
    keep_webhooks: Annotated[
        bool,
        typer.Option(
            "--keep-webhooks", help="Keep the webhooks that they have created switched on; otherwise they are switched off."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Sign an administrator out everywhere, stop them from signing in, and switch off the webhooks that they have created."""
    with community(Settings.load()) as gate:
        result = act(gate, "admins.disable", {"keepWebhooks": keep_webhooks}, _id_of(gate, login))
        off = act(gate, "events.get", target=result.event).value["touched"] if result.event else ()
    _print_admin(result.value, json, f"{result.value['name']} can no longer sign in.")
    if off:
        print_message(f"Switched off as well: {', '.join('webhook ' + str(one['id']) for one in off)}")


@app.command()
def enable(login: Login, json: Json = False) -> None:
    """Let a disabled administrator sign in again."""
    with community(Settings.load()) as gate:
        changed = act(gate, "admins.enable", target=_id_of(gate, login)).value
    _print_admin(changed, json, f"{changed['name']} can sign in again.")


def _describe_state(admin: dict[str, Any]) -> str:
    return "disabled" if admin["disabledAt"] else "invited" if admin["isInvited"] else "active"


def _describe_role(admin: dict[str, Any]) -> str:
    return f"{admin['role']} ({', '.join(admin['kinds'])})" if admin["kinds"] else str(admin["role"])


def _find(gate: Gate, login: str) -> dict[str, Any] | None:
    wanted = login.strip().casefold()
    return next((one for one in list_all(gate, "admins.list") if one["login"].casefold() == wanted), None)


def _id_of(gate: Gate, login: str) -> int:
    if (admin := _find(gate, login)) is None:
        raise Failure(f"There is no administrator with the login '{login}'. `trellis admins list` lists them.")
    return int(admin["id"])


def _password(from_stdin: bool) -> str:
    if not from_stdin:
        return generate_password()
    try:
        password = read_line(STDIN)
    except UnicodeDecodeError:
        raise Failure("The password on standard input is not UTF-8.", MISUSED) from None
    if not password:
        raise Failure("There was no password on standard input.", MISUSED)
    return password


def _print_admin(admin: dict[str, Any], json: bool, sentence: str, password: str | None = None) -> None:
    if json:
        show_json(admin | ({"password": password} if password else {}))
        return
    if password:
        show(f"Login:     {admin['login']}")
        show(f"Password:  {password}")
        print_message("Save the password now: it will not be shown again.")
    show(sentence)
