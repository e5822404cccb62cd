"""The list of proposals, with filters; several can be decided on at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from trellis.admin.filters import fetch_filtered
from trellis.admin.forms import Form, read_ids
from trellis.admin.keys import fetch_key_names
from trellis.admin.page import Page, PageRequest
from trellis.admin.proposals.deciding import (
    DECISIONS,
    REASON,
    UNDECIDED,
    Decision,
    decide,
    is_decided,
    needs_password,
    read_reason,
)
from trellis.admin.submitted import ACTION, Submitted, find_last_page
from trellis.core.fields import isolate
from trellis.core.paging import MOST_PER_PAGE, PAGING
from trellis.core.proposals import FILTERS
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/proposals"
_SECTION: Final = "proposals"
_CHOSEN: Final = "proposal"
_STATE: Final = "state"
_ANY: Final = "any"  # a word of its own, since an address without a state lists the open ones
_STATES: Final = (
    ("open", say("Open")),
    (_ANY, say("Any state")),
    ("approved", say("Approved")),
    ("rejected", say("Rejected")),
    ("withdrawn", say("Withdrawn")),
    ("expired", say("Expired")),
)
_LABELS: Final = {"keyId": say("Proposed by"), "reason": say("Why")}


class FailedDecision(NamedTuple):
    """A proposal for which the decision failed, and why."""

    proposal: int
    detail: str


async def index(
    request: PageRequest,
    status: int = 200,
    *,
    failures: Sequence[FailedDecision] = (),
    done: str = "",
    fault: str = "",
    missing: str = "",
) -> Response:
    """List the proposals; the open ones unless another state is chosen."""
    asked = {**request.query, _STATE: _ANY} if request.query.get(_STATE) == "" else request.query
    names = await fetch_key_names(request, asked.get("keyId", ""))
    keys = [(str(number), f"{isolate(name)} ({number})") for number, name in names.items()]
    operations = [(operation.name, operation.summary) for operation in request.catalogue.values() if operation.is_proposable]
    listed = await fetch_filtered(
        request,
        "proposals.list",
        (*FILTERS, *PAGING),
        choices={
            _STATE: _STATES,
            "operation": [("", say("Any operation")), *operations],
            "keyId": [("", say("Anybody")), *keys],
        },
        labels=_LABELS,
        query=Submitted.filters(asked, request.clock),
        usual={_STATE: "open"},
        adjust=_leave_out_any_state,
    )
    if request.http.method == "GET" and (last := find_last_page(request.query, listed["found"])) is not None:
        return request.redirect(_HERE + last)
    return request.page(
        "proposals/index.html",
        title=say("Proposals"),
        **listed | {"status": max(status, listed["status"])},
        chosen=frozenset(request.form.all(_CHOSEN)),
        reason=build_reason(request, fault),
        missing=missing,
        failures=failures,
        done=done,
    )


def _leave_out_any_state(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if (name, value) != (_STATE, _ANY)}


def build_reason(request: PageRequest, fault: str = "") -> Form:
    """Build the form with the reason of a decision."""
    form = Form((REASON,), Submitted([(REASON.name, request.form.get(REASON.name, ""))]), labels=_LABELS, id="decision")
    return form.add_fault(REASON.name, fault) if fault else form


async def decide_on_several(request: PageRequest) -> Response:
    """Approve or reject the ticked proposals, one by one."""
    request.require_fresh_form()
    decision = DECISIONS.get(request.form.get(ACTION, ""))
    numbers = read_ids(request.form.all(_CHOSEN))
    if len(numbers) > MOST_PER_PAGE:  # more than any list shows
        too_many = say("At most {most:,} proposals can be decided on at once. Tick fewer.", most=MOST_PER_PAGE)
        return await index(request, 400, missing=too_many)
    if decision is None or not numbers:
        return await index(request, 400, missing=UNDECIDED if numbers else say("Tick at least one proposal."))
    reason = read_reason(request)
    if fault := decision.find_fault(reason):
        return await index(request, 400, fault=fault)
    failures, done = await _decide_on(request, decision, numbers, reason)
    told = decision.tell_many(done)
    if failures:
        return await index(request, 409, failures=failures, done=told if done else "")
    shown = request.http.url.query  # the filters and the page number of the list
    return request.redirect(f"{_HERE}?{shown}" if shown else _HERE, told)


async def _decide_on(
    request: PageRequest, decision: Decision, numbers: Sequence[int], reason: str
) -> tuple[Sequence[FailedDecision], int]:
    """Decide on proposals for as long as the service can carry out decisions; return the failures and the number of decisions.

    Raises Refused if it cannot carry out any.
    """
    failures: list[FailedDecision] = []
    done = 0
    if decision.carries_out:
        await _ask_for_password(request, numbers)
    for number in numbers:
        try:
            await decide(request, decision, number, reason)
        except Refused as refused:
            if refused.status >= 500:
                if not (done or failures):
                    raise
                failures.append(FailedDecision(number, refused.detail))
                break  # the others stay ticked
            if await _is_decided(request, decision, number):
                done += 1
            else:
                failures.append(FailedDecision(number, refused.detail))
        else:
            done += 1
    return failures, done


async def _is_decided(request: PageRequest, decision: Decision, number: int) -> bool:
    try:
        return is_decided(request, decision, await request.fetch("proposals.get", target=number))
    except Refused:
        return False


async def _ask_for_password(request: PageRequest, numbers: Sequence[int]) -> None:
    if request.signed_in.has_confirmed(request.now):
        return
    for number in numbers:
        proposal = await request.find("proposals.get", number)
        if proposal is not None and needs_password(request, proposal):  # one that is missing is reported when it is decided on
            request.require_recent_password()


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, live=("events/proposals",), needs=("proposals.list",)),
    Page("POST", _HERE, decide_on_several, _SECTION, needs=("proposals.approve", "proposals.reject")),
)
