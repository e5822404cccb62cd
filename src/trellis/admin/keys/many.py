"""Actions on the keys that were ticked in their list: adding or removing grants, and revoking, always with a plan first."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response

from trellis.admin.chart import UseLine, build_use_line
from trellis.admin.forms import Form, read_ids
from trellis.admin.keys.form import build_reason_form, press_button, pressed_button
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.many import IDS, BatchPlan, Write, find_done, find_way_back, plan_or_carry_out, read_former_address
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import ACTION, Submitted
from trellis.admin.webhooks import fetch_webhooks
from trellis.core.keys import KEEP_WEBHOOKS, MOST, REASON, SETTINGS, tidy_reason
from trellis.core.version import compute_version
from trellis.errors import refuse_fault
from trellis.sentences import mark_many, say, say_many

_HERE: Final = "/keys"
_SECTION: Final = "keys"
_DAYS: Final = 30  # covered by the usage line of a key
_DETAILED: Final = 20  # keys whose operations are listed
_HOW: Final = "how"  # give or take
_GRANTS: Final = next(field for field in SETTINGS if field.name == "grants")

Key = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedKey:
    """What would change for a key: the grants that it gains and loses, and the webhooks that are switched off with it.

    `uses` are its requests by day. `ran` are the operations that it ran, latest first, each with how often; None if not shown.
    """

    key: Key
    gains: tuple[str, ...]
    loses: tuple[str, ...]
    webhooks: tuple[Mapping[str, Any], ...]
    uses: UseLine
    ran: tuple[Mapping[str, Any], ...] | None = None

    @property
    def last(self) -> dict[str, str]:
        """The time when the key last ran each operation."""
        return {use["operation"]: use["lastAt"] for use in self.ran or ()}


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action on many keys. `read` returns the parameters for its operation from its form, and raises Refused for a fault."""

    name: str
    operation: str
    button: str
    icon: str
    title: tuple[str, str]
    done: tuple[str, str]
    read: Callable[[PageRequest], dict[str, Any]]
    asks: bool = False  # its form has choices to make before anything can be planned
    deletes: bool = False

    @property
    def write(self) -> Write:
        """How its plans are carried out. An action that revokes keys cannot be undone."""
        return Write(self.operation, is_undone=not self.deletes)

    def describe(self, count: int) -> str:
        """Return a sentence on what was done to `count` keys."""
        return say_many(count, *self.done)


def _read_revocation(request: PageRequest) -> dict[str, Any]:
    return {name: request.form.get(name, "") for name in (REASON.name, KEEP_WEBHOOKS.name) if request.form.get(name)}


def _read_grants(request: PageRequest) -> dict[str, Any]:
    chosen = GrantsForm(request).chosen
    if not chosen:
        raise refuse_fault("grants", "MISSING_VALUE", say("Tick at least one operation."))
    return {"ungrant" if request.form.get(_HOW) == "take" else "grant": list(chosen)}


ACTIONS: Final = (
    KeyAction(
        "grants",
        "keys.update_many",
        say("Add or remove grants"),
        "edit",
        mark_many("Add or remove grants of {count:,} key", "Add or remove grants of {count:,} keys"),
        mark_many(
            "The grants of {count:,} key were changed. This applies from the next request.",
            "The grants of {count:,} keys were changed. This applies from the next request.",
        ),
        _read_grants,
        asks=True,
    ),
    KeyAction(
        "revoke",
        "keys.revoke_many",
        say("Revoke"),
        "trash",
        mark_many("Revoke {count:,} key", "Revoke {count:,} keys"),
        mark_many(
            "{count:,} key is revoked permanently. Its requests are refused from now on.",
            "{count:,} keys are revoked permanently. Their requests are refused from now on.",
        ),
        _read_revocation,
        deletes=True,
    ),
)


class GrantsForm(Form):
    """The grid of the grants to add or remove."""

    def __init__(self, request: PageRequest) -> None:
        self.grid = GrantGrid(request.catalogue)
        sent = Submitted(pair for pair in press_button(self.grid, request.form).pairs if pair[0] == _GRANTS.name)
        super().__init__((_GRANTS,), sent, widgets={_GRANTS.name: "groups"}, labels={_GRANTS.name: say("Operations")})

    @property
    def chosen(self) -> tuple[str, ...]:
        """The operations that are ticked."""
        return tuple(name for name in self[_GRANTS.name].chosen if name in self.grid.names)


def find_key_actions(request: PageRequest) -> tuple[KeyAction, ...]:
    """Return the actions on many keys that the administrator may run."""
    return tuple(action for action in ACTIONS if request.actor.may(action.operation))


async def index(request: PageRequest) -> Response:
    """Redirect to the list, where keys are ticked."""
    return request.redirect(_HERE)


async def run(action: KeyAction, request: PageRequest) -> Response:
    """Show the form of an action with its plan, or carry the plan out if it is still the one that the page showed."""
    back = find_way_back(request, _HERE)
    if (done := await find_done(request, action.describe, back, action.write)) is not None:
        return done
    ids = read_ids(request.form.all(IDS))
    found = (await request.fetch("keys.list", {"ids": ids[:MOST], "perPage": MOST}))["results"]
    keys = [key for key in found if key["state"] != "revoked"]
    if not keys or len(ids) > MOST:
        request.require_fresh_form()
        return request.redirect(back, _find_objection(ids, found), "note")
    sent = request.form.get(ACTION, "")
    is_planned = pressed_button(request.form) is None and (sent in {"plan", "do"} or not action.asks)

    async def make_plan() -> BatchPlan | None:
        if not is_planned:
            return None
        plan = await _plan(action, request, keys)
        if sent == "do" and any(row.gains for row in plan.rows):
            request.require_recent_password()
        return plan

    context = {
        "title": say_many(len(keys), *action.title),
        "action": action,
        "keys": keys,
        "revoked": [key["name"] for key in found if key["state"] == "revoked"],
        "days": _DAYS,
        "detailed": _DETAILED,
        "form": GrantsForm(request) if action.asks else _build_revoke_form(request.form),
        "how": request.form.get(_HOW, "give"),
        "came_from": read_former_address(request),
    }
    return await plan_or_carry_out(request, make_plan, action.describe, back, "keys/many.html", context, action.write)


def _find_objection(ids: Sequence[int], found: Sequence[Key]) -> str:
    if len(ids) > MOST:
        return say("At most {most:,} keys can be changed at once. Choose fewer.", most=MOST)
    return say("Revoked keys stay as they are.") if found else say("Tick at least one key.")


def _build_revoke_form(typed: Submitted) -> Form:
    note = say("The webhooks continue to send events to the addresses set by the keys.")
    return build_reason_form((REASON, KEEP_WEBHOOKS), typed, keeps=(say("Keep their webhooks on"), note))


# --- the plan -----------------------------------------------------------------------------------------------------


async def _plan(action: KeyAction, request: PageRequest, keys: Sequence[Key]) -> BatchPlan:
    """Return the plan of an action, from a dry run; its rows are `PlannedKey`s. Raises Refused."""
    chosen = action.read(request)
    raw = {IDS: [key["id"] for key in keys], **chosen}
    # The dry run ignores the choice to keep webhooks on, so that the page lists them whether or not its box is ticked.
    dry = {name: value for name, value in raw.items() if name != KEEP_WEBHOOKS.name}
    results = {one["id"]: one for one in (await request.dry_run(action.operation, dry))["results"]}
    changing = [key for key in keys if action.deletes or set(results[key["id"]]["key"]["grants"]) != set(key["grants"])]
    told = [_tell(key, results[key["id"]], action) for key in changing]
    has_off = any(one["webhooks"] for one in results.values())
    webhooks = {webhook["id"]: webhook for webhook in await fetch_webhooks(request)} if has_off else {}
    daily = {"keys": [key["id"] for key in changing], "days": _DAYS, "zone": request.clock.name}
    uses = await request.fetch("requests.daily", daily) if changing else {}
    ran = {
        key["id"]: _sort_uses(await request.fetch("requests.summary", {"key": key["id"]}, slow=True))
        for key in changing[:_DETAILED]
        if key["logRequests"]
    }
    rows = tuple(
        PlannedKey(
            key,
            gains,
            loses,
            tuple(webhooks[one] for one in off if one in webhooks),  # others were deleted meanwhile
            build_use_line(uses[key["id"]]),
            ran.get(key["id"]),
        )
        for key, (gains, loses, off) in zip(changing, told, strict=True)
    )
    version = compute_version(orjson.dumps([[key["id"], key["name"], *one] for key, one in zip(changing, told, strict=True)]))
    raw[IDS] = [key["id"] for key in changing]
    return BatchPlan((), rows, len(changing), 0, version, raw=raw, reason=tidy_reason(chosen.get(REASON.name, "")))


def _sort_uses(summary: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple(sorted((use for use in summary["operations"] if use["times"]), key=lambda use: str(use["lastAt"]), reverse=True))


def _tell(key: Key, result: Mapping[str, Any], action: KeyAction) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]]:
    """Return the grants that a key gains and loses, and the ids of the webhooks that are switched off."""
    before, after = set(key["grants"]), set() if action.deletes else set(result["key"]["grants"])
    return tuple(sorted(after - before)), tuple(sorted(before - after)), tuple(result["webhooks"])


def _build_pages(action: KeyAction) -> tuple[Page, Page]:
    path = f"{_HERE}/many/{action.name}"
    handler: Callable[[PageRequest], Awaitable[Response]] = partial(run, action)
    return (
        Page("GET", path, index, _SECTION, needs=("keys.list",)),
        Page("POST", path, handler, _SECTION, needs=("keys.list", action.operation)),
    )


PAGES: Final = tuple(page for action in ACTIONS for page in _build_pages(action))
