"""The commands about API keys."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from trellis.cli.community import OneKey, act, community, find_key, list_all
from trellis.cli.terminal import (
    MISUSED,
    Failure,
    Json,
    make_app,
    print_message,
    progress_of,
    refuse_empty,
    show,
    show_json,
    show_table,
)
from trellis.core.bounds import PROPOSE
from trellis.core.dialect import DIALECTS, TRELLIS
from trellis.core.keys import PRESETS, describe_bounds
from trellis.settings import Settings

app = make_app(help="Create, list, change, rotate and revoke API keys.", no_args_is_help=True)

_FEW = 3  # the most grants that a list names; more are counted

Patterns = Annotated[
    list[str],
    typer.Argument(
        metavar="OPERATION…",
        help="Operations such as forums.create; 'forums.*', '*.list' and '*' mean all that match.",
        show_default=False,
    ),
]

Under = Annotated[
    list[str] | None,
    typer.Option(metavar="RESOURCE:ID", help="A record that they apply to, with all below it: forums:12. Repeat as needed."),
]


_A_TIME = refuse_empty("Give a time; for never, leave the option out, or use --no-expiry if there is one.")

Until = Annotated[
    str | None,
    typer.Option(help="When they end: 7d, 12h, or a timestamp in ISO 8601. By default never.", callback=_A_TIME),
]
PerDay = Annotated[int | None, typer.Option(min=0, help="How often each may be used in a day (UTC). By default any number.")]
DryRunOnly = Annotated[bool, typer.Option("--dry-run-only", help="They allow only dry runs: nothing that they do is kept.")]
Owner = Annotated[str | None, typer.Option(metavar="TEXT", help="Who to ask about the key: a person or a team.")]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Anything else worth knowing about the key.")]
Why = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why; shown in the list and in the event log.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.", show_default=False)],
    *,
    owner: Owner = None,
    note: Note = None,
    grant: Annotated[
        list[str] | None,
        typer.Option(help="An operation that it may run, or a pattern such as 'forums.*'. Repeat as needed."),
    ] = None,
    propose: Annotated[
        list[str] | None,
        typer.Option(help="An operation, or a pattern, that it may propose and somebody else has to approve. Repeat as needed."),
    ] = None,
    under: Under = None,
    until: Until = None,
    per_day: PerDay = None,
    dry_run_only: DryRunOnly = False,
    expires: Annotated[
        str | None,
        typer.Option(help="When it expires: 90d, 12h, or a timestamp in ISO 8601. By default never.", callback=_A_TIME),
    ] = None,
    ip: Annotated[
        list[str] | None,
        typer.Option(metavar="CIDR", help="An address or network that it may be used from. Repeat as needed. By default any."),
    ] = None,
    rate_limit: Annotated[
        int | None, typer.Option(help="Requests per minute; 0 means no limit. By default the service's limit.")
    ] = None,
    per_day_in_all: Annotated[
        int | None, typer.Option(min=0, help="How often all grants together may be used in a day (UTC). By default any number.")
    ] = None,
    dialect: Annotated[str, typer.Option(help=f"The dialect of its requests and answers: {' or '.join(DIALECTS)}.")] = TRELLIS,
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"What it may do, and for how long, unless other options say so: {', '.join(PRESETS)}.", callback=refuse_empty()
        ),
    ] = None,
    log: Annotated[bool, typer.Option("--log/--no-log", help="Whether the key's requests are written to the request log.")] = True,
    json: Json = False,
) -> None:
    """Create a key and show it. The key is shown only once."""
    if not (grant or propose) and (under or until or per_day is not None or dry_run_only):
        raise Failure(
            "Bounds apply to the grants of --grant and --propose. Give one of these too, such as --grant 'forums.*'.", MISUSED
        )
    bound = _describe_bound(under, until, per_day, dry_run_only=dry_run_only)
    raw = {
        "name": name,
        "owner": owner or "",
        "note": note or "",
        "grants": [*(grant or ()), *(propose or ())],
        "bounds": {one: bound for one in grant or () if bound} | {one: {**bound, "level": PROPOSE} for one in propose or ()},
        "expires": expires,
        "addresses": ip or [],
        "rateLimit": rate_limit,
        "perDay": per_day_in_all,
        "logRequests": log,
        "dialect": dialect,
        "preset": preset,
    }
    if preset is not None:
        raw = {name: value for name, value in raw.items() if value not in (None, "", [], {})}
    with community(Settings.load()) as gate:
        _show_once(act(gate, "keys.create", raw).value, json)


@app.command("list")
def list_keys(json: Json = False) -> None:
    """List all keys, including revoked ones."""
    with community(Settings.load()) as gate, progress_of("Reading keys"):
        keys = list_all(gate, "keys.list")
    if json:
        show_json(keys)
    elif keys:
        columns = ("Id", "Name", "Owner", "Key", "State", "May run", "Dialect", "Expires", "Last used")
        show_table(
            columns,
            (
                (
                    k["id"],
                    k["name"],
                    k["owner"],
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
def show_key(key: OneKey, json: Json = False) -> None:
    """Show a key and everything it may do, but never its secret."""
    with community(Settings.load()) as gate:
        _show(act(gate, "keys.get", target=find_key(gate, key)).value, json)


@app.command()
def grant(
    key: OneKey,
    operations: Patterns,
    *,
    propose: Annotated[bool, typer.Option("--propose", help="It may only propose them; somebody else has to approve.")] = False,
    under: Under = None,
    until: Until = None,
    per_day: PerDay = None,
    dry_run_only: DryRunOnly = False,
    unbounded: Annotated[bool, typer.Option("--unbounded", help="Remove the bounds of these grants.")] = False,
    json: Json = False,
) -> None:
    """Grant a key more operations, or set the bounds of those that it has, from its next request on."""
    bound = _describe_bound(under, until, per_day, dry_run_only=dry_run_only) | ({"level": PROPOSE} if propose else {})
    if bound and unbounded:
        raise Failure("Give either bounds or --unbounded.", MISUSED)
    bounds = {"bound": dict.fromkeys(operations, None if unbounded else bound)} if bound or unbounded else {}
    _change(key, {"grant": operations, **bounds}, json)


@app.command()
def update(
    key: OneKey,
    *,
    name: Annotated[str | None, typer.Option("--name", metavar="TEXT", help="What the key is for.")] = None,
    owner: Owner = None,
    note: Note = None,
    expires: Annotated[
        str | None,
        typer.Option(help="When it expires: 90d, 12h, or a timestamp in ISO 8601.", callback=_A_TIME),
    ] = None,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="It never expires.")] = False,
    ip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR", help="An address or network that it may be used from, in place of all current ones. Repeat as needed."
        ),
    ] = None,
    any_ip: Annotated[bool, typer.Option("--any-ip", help="It may be used from anywhere.")] = False,
    rate_limit: Annotated[int | None, typer.Option(help="Requests per minute; 0 means no limit.")] = None,
    default_rate_limit: Annotated[bool, typer.Option("--default-rate-limit", help="The service's limit applies to it.")] = False,
    per_day_in_all: Annotated[
        int | None, typer.Option(min=0, help="How often all grants together may be used in a day (UTC).")
    ] = None,
    any_per_day: Annotated[bool, typer.Option("--any-per-day", help="They may be used any number of times a day.")] = False,
    log: Annotated[
        bool | None, typer.Option("--log/--no-log", help="Whether the key's requests are written to the request log.")
    ] = None,
    json: Json = False,
) -> None:
    """Change a key's name, owner, note, expiry, limits, addresses or logging, from its next request on. What is left out stays."""
    given: dict[str, tuple[Any, bool, Any]] = {  # the value sent, whether it is removed, and the value for that
        "name": (name, False, None),
        "owner": (owner, False, None),
        "note": (note, False, None),
        "expires": (expires, no_expiry, None),
        "addresses": (ip, any_ip, []),
        "rateLimit": (rate_limit, default_rate_limit, None),
        "perDay": (per_day_in_all, any_per_day, None),
        "logRequests": (log, False, None),
    }
    if twice := [member for member, (sent, away, _) in given.items() if away and sent is not None]:
        raise Failure(f"{twice[0]} is both set and taken away. Give one of the two options.", MISUSED)
    raw = {member: none if away else sent for member, (sent, away, none) in given.items() if away or sent is not None}
    if not raw:
        raise Failure("Say what to change, such as --expires 30d. `trellis keys update --help` lists it.", MISUSED)
    _change(key, raw, json)


@app.command()
def ungrant(key: OneKey, operations: Patterns, json: Json = False) -> None:
    """Remove operations from a key, from its next request on."""
    _change(key, {"ungrant": operations}, json)


@app.command()
def rotate(
    key: OneKey,
    overlap_days: Annotated[int, typer.Option(help="For how many days, 0 to 7, the old secret remains valid.")] = 0,
    json: Json = False,
) -> None:
    """Generate a new secret for a key and show it, once. A secret from before the last rotation ends at once."""
    with community(Settings.load()) as gate:
        _show_once(act(gate, "keys.rotate", {"overlapDays": overlap_days}, find_key(gate, key)).value, json)


@app.command()
def revoke(
    key: OneKey,
    reason: Why = None,
    keep_webhooks: Annotated[
        bool,
        typer.Option("--keep-webhooks", help="Keep the webhooks that it has created switched on; otherwise they are switched off."),
    ] = False,
    json: Json = False,
) -> None:
    """Revoke a key for good, and switch off the webhooks that it has created. It stays in the list and in the log."""
    raw = {"keepWebhooks": keep_webhooks, **_because(reason)}
    with community(Settings.load()) as gate:
        result = act(gate, "keys.revoke", raw, find_key(gate, key), reason=reason)
        off = act(gate, "events.get", target=result.event).value["touched"]
        _show(result.value, json)
    if off:
        print_message(f"Switched off with it: {', '.join('webhook ' + str(one['id']) for one in off)}")


@app.command()
def pause(
    key: OneKey,
    reason: Why = None,
    json: Json = False,
) -> None:
    """Refuse every request of a key until it is resumed."""
    with community(Settings.load()) as gate:
        _show(act(gate, "keys.pause", _because(reason), find_key(gate, key), reason=reason).value, json)


@app.command()
def resume(key: OneKey, json: Json = False) -> None:
    """Let a paused key be used again, as it was before."""
    with community(Settings.load()) as gate:
        _show(act(gate, "keys.resume", target=find_key(gate, key)).value, json)


@app.command("pause-preset")
def pause_preset(
    preset: Annotated[str, typer.Argument(metavar="PRESET", help=f"The preset: {', '.join(PRESETS)}.", show_default=False)],
    reason: Why = None,
    json: Json = False,
) -> None:
    """Pause all keys that were created with a preset, at once. Resume each with `trellis keys resume`."""
    raw = {"preset": preset, **_because(reason)}
    with community(Settings.load()) as gate:
        result = act(gate, "keys.pause_preset", raw, reason=reason).value
    if json:
        show_json(result)
    elif result["keys"]:
        show(f"Paused: {', '.join('key ' + str(number) for number in result['keys'])}")
    else:
        show("There was no key with this preset to pause.")


def _because(reason: str | None) -> dict[str, str]:
    return {} if reason is None else {"reason": reason}


def _describe_bound(under: list[str] | None, until: str | None, per_day: int | None, *, dry_run_only: bool) -> dict[str, Any]:
    """Return the bound that the options ask for; empty if they ask for none."""
    members = {"under": under or None, "until": until, "perDay": per_day, "dryRunOnly": dry_run_only or None}
    return {name: value for name, value in members.items() if value is not None}


def _change(key: str, raw: dict[str, Any], json: bool) -> None:
    with community(Settings.load()) as gate:
        answer = act(gate, "keys.update", raw, find_key(gate, key))
        _show(answer.value, json)
    if answer.event is None:
        print_message("Nothing to change.")


def _show_once(key: dict[str, Any], json: bool) -> None:
    if json:
        show_json(key)
    else:
        show(key["key"], style="bold")
        show(f"This is key {key['id']}, '{key['name']}'. Save it now: it will not be shown again.")
        if key["oldSecretUntil"] is not None:
            show(f"The previous secret is valid until {key['oldSecretUntil']}.")
        show(f"It may run: {', '.join(key['grants']) or 'nothing'}")
        for operation, said in describe_bounds(key["bounds"]).items():
            show(f"{operation}: {said}")
    if not key["grants"]:
        print_message(
            f"This key may not do anything yet. Grant it operations: trellis keys grant {key['id']} 'forums.*'",
            style="yellow",
        )


_LABELS = {
    "id": "Id",
    "name": "Name",
    "owner": "Owner",
    "note": "Note",
    "public": "Key",
    "state": "State",
    "grants": "May run",
    "expiresAt": "Expires",
    "addresses": "From",
    "rateLimit": "Requests per minute",
    "perDay": "Uses a day",
    "logRequests": "Requests are logged",
    "dialect": "Dialect",
    "preset": "Preset",
    "oldSecretUntil": "Old secret until",
    "pausedAt": "Paused",
    "pausedBecause": "Because",
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
        show_json(key)
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
        if name == "grants":
            for operation, said in describe_bounds(key["bounds"]).items():
                show(f"{'':<21}{operation}: {said}")


def _minute(moment: str | None) -> str | None:
    return moment[:16].replace("T", " ") if moment else None


def _few(grants: Iterable[str]) -> str:
    named = list(grants)
    return f"{len(named)} operations" if len(named) > _FEW else ", ".join(named) or "nothing"
