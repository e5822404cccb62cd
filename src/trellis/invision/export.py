"""Our community as the answers that the suite would give: by the declarations of its dialect, as for keys that speak it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from trellis.core.dialect import FindGroups, Member, Who
from trellis.core.fields import EVERYONE
from trellis.core.hello import HELLO as GREETING
from trellis.core.kind import NodeKind
from trellis.core.paging import serialize_page
from trellis.invision.answers import HELLO
from trellis.invision.present import Ask, list_all
from trellis.invision.suite import choose_known, find_paths, find_shape
from trellis.kinds.invision import INVISION

_GREETING: Final = ("communityName", "communityUrl", "ipsVersion")  # a key, which our answer has too, is nobody's here


def export_answers(
    ask: Ask, kinds: Sequence[NodeKind], per_page: int, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[str, Any]:
    """Return the answers by the names that they have in a folder: the greeting, each page of each list, and each record."""
    known = choose_known(kinds)
    records = {kind.name: list_all(ask, kind) for kind in known}
    find_groups = _find_groups(known, records)
    greeting = _show(ask(GREETING.name, {}), INVISION.answers[GREETING.name], find_groups)
    answers: dict[str, Any] = {HELLO: {member: greeting[member] for member in _GREETING}}
    total = sum(map(len, records.values()))
    for kind in known:
        path = find_paths(kind)[0]
        shown = [_show(record, find_shape(kind).members, find_groups) for record in records[kind.name]]
        for start in range(0, max(1, len(shown)), per_page):
            number = start // per_page + 1
            answers[f"{path}/page-{number}"] = serialize_page(shown[start : start + per_page], len(shown), number, per_page)
        answers |= {f"{path}/{record['id']}": record for record in shown}
        progress(len(answers), total)
    return answers


def _show(record: Mapping[str, Any], members: Sequence[Member], find_groups: FindGroups) -> dict[str, Any]:
    return {member.name: member.compute(record, find_groups) for member in members}


def _find_groups(kinds: Sequence[NodeKind], records: Mapping[str, Sequence[Mapping[str, Any]]]) -> FindGroups:
    """Return what finds groups by their ids, as the suite shows them."""
    shown: dict[int, dict[str, Any]] = {}

    def find(who: Who) -> list[dict[str, Any]]:
        wanted = shown if who == EVERYONE else who
        return [shown[one] for one in wanted if isinstance(one, int) and one in shown]

    for kind in kinds:
        if kind.is_group:
            shown |= {record["id"]: _show(record, find_shape(kind).members, find) for record in records[kind.name]}
    return find
