"""Applying the permissions in a node's form to everything below the node: what would change, and then the change."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.many.plan import BatchPlan, fetch_below, find_done, plan_batch, plan_or_carry_out
from trellis.admin.nodes import NodeForm, build_form, content_version, fetch_groups
from trellis.admin.page import PageRequest
from trellis.admin.submitted import CSRF
from trellis.core.fields import EVERYONE, isolate
from trellis.core.nodes import NodeKind
from trellis.core.version import record_version
from trellis.errors import Refused
from trellis.sentences import say

_PERMISSIONS: Final = "permissions"


async def index(kind: NodeKind, request: PageRequest) -> Response:
    """Redirect to the node, whose form contains the permissions to apply."""
    return request.redirect(f"/{kind.name}/{request.number('id')}")


async def run(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Show the plan, or carry it out if it is still the one that the page showed."""

    def describe(count: int) -> str:
        return say(
            "Everything below {name} now has the same permissions: {count:,} changed.",
            name=isolate(record["name"]),
            count=count,
        )

    back = f"/{kind.name}/{record['id']}"
    if (done := await find_done(request, describe, back)) is not None:
        return done
    node_form = await build_form(request, kind, record, request.form)

    async def make_plan() -> BatchPlan:
        raw = node_form.raw()
        if problem := _find_problem(kind, request, record, raw):
            raise Refused("PRECONDITION_FAILED", problem)
        return await _plan(kind, request, record, raw)

    context = {
        "title": say("Apply to everything below {name}", name=isolate(record["name"])),
        "kind": kind,
        "record": record,
        "carried": tuple(_carry(request, node_form)),
    }
    return await plan_or_carry_out(request, make_plan, describe, back, "many/below.html", context)


def _find_problem(kind: NodeKind, request: PageRequest, record: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    if any(secret.name in raw for secret in kind.secrets):
        return say("You also entered or removed a password. Save that first, then apply the permissions.")
    if content_version(record) != request.form.get("_version", ""):
        return say(
            "This {singular} has changed since the form was loaded. Nothing was saved: go back and check it again.",
            singular=kind.singular,
        )
    return ""


async def _plan(kind: NodeKind, request: PageRequest, record: Mapping[str, Any], raw: Mapping[str, Any]) -> BatchPlan:
    """Plan the form's changes of the node itself, and its permissions for all nodes below that have others. Raises Refused."""
    given = request.catalogue.find(kind.operation("update")).form.read(raw)
    given.raise_faults()
    wanted = _resolve(record, given.values)
    below = [one for one in await fetch_below(request, kind, record["id"]) if _resolve(one, {}) != wanted]
    permissions = {option: EVERYONE if who == EVERYONE else sorted(who) for option, who in wanted.items()}
    bodies = [(record, raw), *((one, {_PERMISSIONS: permissions}) for one in below)]
    return await plan_batch(request, kind, "update", bodies, await fetch_groups(request), record_version(record))


def _resolve(record: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the permissions of a record, replaced by those that were sent, in a form in which equal permissions compare equal."""
    sent = {**record[_PERMISSIONS], **raw.get(_PERMISSIONS, {})}
    return {option: EVERYONE if who == EVERYONE else frozenset(int(one) for one in who) for option, who in sent.items()}


def _carry(request: PageRequest, node_form: NodeForm) -> Iterator[tuple[str, str]]:
    """Return the form as it was sent, with one field for each option, for the form below the plan."""
    names = {secret.name for secret in node_form.kind.secrets}
    for name, value in request.form.pairs:
        if name == "_version" or not (name.startswith(("_", f"{_PERMISSIONS}.")) or name == CSRF or name in names):
            yield name, value
    for option, _, chosen in node_form.form[_PERMISSIONS].options:
        yield f"{_PERMISSIONS}.{option}", EVERYONE if EVERYONE in chosen else ",".join(one for one in chosen if one)
