"""The commands about API keys."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from trellis.cli.community import act, community
from trellis.cli.terminal import Json, say, show, show_json, show_table
from trellis.core.dialect import DIALECTS, TRELLIS
from trellis.core.gate import Gate
from trellis.settings import Settings

app = typer.Typer(
    help="Create, list, change, rotate and revoke API keys.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

_PAGE = 1000
_FEW = 3  # the most grants that a list names; more are counted

Id = Annotated[int, typer.Argument(metavar="ID", min=1, help="The key's id; see `trellis keys list`.", show_default=False)]
Patterns = Annotated[
    list[str],
    typer.Argument(
        metavar="OPERATION…",
        help="Operations such as forums.create; 'forums.*', '*.list' and '*' mean all that match.",
        show_default=False,
    ),
]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.", show_default=False)],
    *,
    grant: Annotated[
        list[str] | None,
        typer.Option(help="An operation that it may run, or a pattern such as 'forums.*'. Repeat as needed."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it expires: 90d, 12h, or a timestamp in ISO 8601. By default never.")
    ] = None,
    ip: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="An address or network that it may be used from. Repeat as needed. By default any."),
    ] = None,
    rate_limit: Annotated[
        int | None, typer.Option(help="Requests per minute; 0 means no limit. By default the service's limit.")
    ] = None,
    dialect: Annotated[
        str, typer.Option(help=f"Whose names and shapes it has in requests and answers: {' or '.join(DIALECTS)}.")
    ] = TRELLIS,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Whether its requests are written to the request log.")] = True,
    json: Json = False,
) -> None:
    """Create a key and show it. The key is shown only once."""
    raw = {
        "name": name,
        "grants": grant or [],
        "expires": expires,
        "addresses": ip or [],
        "rateLimit": rate_limit,
        "logRequests": log,
        "dialect": dialect,
    }
    with community(Settings.load()) as gate:
        _show_once(act(gate, "keys.create", raw).value, json)


@app.command("list")
def list_keys(json: Json = False) -> None:
    """List all keys, including revoked ones."""
    with community(Settings.load()) as gate:
        keys = list(every_key(gate))
    if json:
        show_json(keys, plain=True)
    elif keys:
        columns = ("Id", "Name", "Key", "State", "May run", "Dialect", "Expires", "Last used")
        show_table(
            columns,
            (
                (
                    k["id"],
                    k["name"],
                    k["public"],
                    k["state"],
                    _few(k["grants"]),
                    k["dialect"],
                    _minute(k["expiresAt"]),
                    _minute(k["lastUsedAt"]),
                )
                for k in keys
            ),
        )
    else:
        show("There are no keys yet. Create one: trellis keys create NAME --grant 'forums.*'")


@app.command("show")
def show_key(key: Id, json: Json = False) -> None:
    """Show a key and everything it may do, but never its secret."""
    with community(Settings.load()) as gate:
        _show(act(gate, "keys.get", target=key).value, json)


@app.command()
def grant(key: Id, operations: Patterns, json: Json = False) -> None:
    """Grant a key more operations, from its next request on."""
    _change(key, {"grant": operations}, json)


@app.command()
def ungrant(key: Id, operations: Patterns, json: Json = False) -> None:
    """Remove operations from a key, from its next request on."""
    _change(key, {"ungrant": operations}, json)


@app.command()
def rotate(
    key: Id,
    overlap_days: Annotated[int, typer.Option(help="For how many days, 0 to 7, the old secret remains valid.")] = 0,
    json: Json = False,
) -> None:
    """Generate a new secret for a key and show it, once."""
    with community(Settings.load()) as gate:
        _show_once(act(gate, "keys.rotate", {"overlapDays": overlap_days}, key).value, json)


@app.command()
def revoke(
    key: Id,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; shown in the list and in the event log.")] = None,
    keep_webhooks: Annotated[
        bool, typer.Option("--keep-webhooks", help="Leave the webhooks on that it has made; they are switched off otherwise.")
    ] = False,
    json: Json = False,
) -> None:
    """Revoke a key for good, and switch off the webhooks that it has made. It stays in the list and in the log."""
    raw = {"keepWebhooks": keep_webhooks} | ({} if reason is None else {"reason": reason})
    with community(Settings.load()) as gate:
        result = act(gate, "keys.revoke", raw, key, reason=reason)
        off = act(gate, "events.get", target=result.event).value["touched"]
        _show(result.value, json)
    if off:
        say(f"Switched off with it: {', '.join('webhook ' + str(one['id']) for one in off)}")


def every_key(gate: Gate) -> Iterator[dict[str, Any]]:
    """Return all keys, page by page."""
    page = 1
    while True:
        found = act(gate, "keys.list", {"page": page, "perPage": _PAGE}).value
        yield from found["results"]
        if page >= found["totalPages"]:
            return
        page += 1


def _change(key: int, raw: dict[str, Any], json: bool) -> None:
    with community(Settings.load()) as gate:
        answer = act(gate, "keys.update", raw, key)
        _show(answer.value, json)
    if answer.event is None:
        say("Nothing to change.")


def _show_once(key: dict[str, Any], json: bool) -> None:
    if json:
        show_json(key, plain=True)
    else:
        show(key["key"], style="bold")
        show(f"This is key {key['id']}, '{key['name']}'. Keep it now: it is not shown again.")
        show(f"It may run: {', '.join(key['grants']) or 'nothing'}")
    if not key["grants"]:
        say(
            f"This key may not do anything yet. Grant it operations: trellis keys grant {key['id']} 'forums.*'",
            style="yellow",
        )


_LABELS = {
    "id": "Id",
    "name": "Name",
    "public": "Key",
    "state": "State",
    "grants": "May run",
    "expiresAt": "Expires",
    "addresses": "From",
    "rateLimit": "Requests per minute",
    "logRequests": "Requests are logged",
    "dialect": "Dialect",
    "oldSecretUntil": "Old secret until",
    "revokedAt": "Revoked",
    "revokedBecause": "Because",
    "lastUsedAt": "Last used",
    "createdAt": "Made",
    "updatedAt": "Changed",
}
_WHEN_NONE = {
    "grants": "nothing",
    "expiresAt": "never",
    "addresses": "everywhere",
    "rateLimit": "the service's limit",
    "lastUsedAt": "never",
}


def _show(key: dict[str, Any], json: bool) -> None:
    if json:
        show_json(key, plain=True)
        return
    for name, label in _LABELS.items():
        value = key[name]
        if isinstance(value, bool):
            value = "yes" if value else "no"
        text = ", ".join(value) if isinstance(value, list) else value
        if text not in (None, ""):
            show(f"{label + ':':<21}{text}")
        elif name in _WHEN_NONE:
            show(f"{label + ':':<21}{_WHEN_NONE[name]}")


def _minute(moment: str | None) -> str | None:
    return moment[:16].replace("T", " ") if moment else None


def _few(grants: Iterable[str]) -> str:
    named = list(grants)
    return f"{len(named)} operations" if len(named) > _FEW else ", ".join(named) or "nothing"
