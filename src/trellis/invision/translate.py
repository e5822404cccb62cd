"""Translating an old community into a structure document, with a report of what is unknown or cannot be taken over."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from trellis.core.fields import EVERYONE, Invalid, Url, escape_unsafe, isolate, quote
from trellis.core.kind import NodeKind
from trellis.core.structure import FORMAT, LARGEST_DOCUMENT, MOST_ENTRIES, write_yaml
from trellis.core.verbs import CREATE
from trellis.invision.answers import Answers, ReadingFailed
from trellis.invision.groups import GroupMatcher, Match, list_groups
from trellis.invision.names import decode_entities, read_name, spell_in_html
from trellis.invision.permissions import read_permissions
from trellis.invision.present import Present
from trellis.invision.report import KindReport, NodeReport, Report
from trellis.invision.suite import CAUTIONS, PREFIX, find_paths, list_lost, list_told, name_external
from trellis.invision.tree import OldNode, arrange, walk

_CLUB: Final = "It belongs to a club. --clubs takes it over as one of the community's own."
_UNDER_CLUB: Final = "It is below a node that is left out."
_SPLIT: Final = "Write several: --section groups first, then one for each other section, each with an --output of its own."
_WHOLE: Final = "One section is not written in parts: it has to become smaller in the old community first."
_AFFIXES: Final = ("prefix", "suffix")
_LONGEST_AFFIX: Final = 1000  # characters
_LONGEST_FORMATTED: Final = 10_000
_LONGEST_OWNER: Final = 255
_LONGEST_PATH: Final = 6  # names
_LEAF: Final = "category"  # the type of a forum that is not a redirect and has no topics of its own


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a translation. `sections` are the kinds to write, `groups` maps old ids of groups to our external ids.

    With `clubs`, nodes of clubs are taken over as well.
    """

    sections: Sequence[NodeKind]
    clubs: bool = False
    groups: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Translation:
    """The document, and the report about it."""

    document: dict[str, Any]
    report: Report

    def write(self) -> str:
        """Write the document as YAML. Raises ReadingFailed if it is larger than a document may be."""
        text = write_yaml(self.document, [f"Moved in from {' '.join(escape_unsafe(self.report.source).split())}"])
        if (size := len(text.encode())) > LARGEST_DOCUMENT:
            raise ReadingFailed(f"The document would have {size / 2**20:,.1f} MiB, and may have {LARGEST_DOCUMENT >> 20}. {_SPLIT}")
        return text


def translate(answers: Answers, source: str, present: Present, kinds: Sequence[NodeKind], options: Options) -> Translation:
    """Translate the answers of a community. `source` describes where they are from. Raises ReadingFailed."""
    hello = answers.hello or {}
    name, release = (" ".join(str(hello.get(member) or "")[:100].split()) for member in ("communityName", "ipsVersion"))
    report = Report(source, name, release, list(answers.cautions))
    groups = _match_groups(answers, present, kinds, options)
    report.cautions += _describe_missing_groups(groups, present)
    translator = _Translator(present, groups, clubs=options.clubs)
    document: dict[str, Any] = {"format": FORMAT, "name": PREFIX}
    for kind in options.sections:
        section = KindReport(kind.name, kind.title, kind.singular, list_lost(kind), [*CAUTIONS.get(kind.name, ())])
        report.sections.append(section)
        records = answers.find_records(find_paths(kind))
        if records is None:
            section.notes.append(
                "The old community has no such list: the application is not installed or not enabled, or its responses were not "
                "saved."
            )
        elif entries := translator.translate_section(kind, records, section):
            document[kind.name] = entries
        else:
            section.notes.append(
                "There are none to write, so the document has no such section, and applying it does not change those that are here."
            )
        if not kind.serves(CREATE):
            section.notes.append(f"No API key can apply {kind.title.lower()}: use `trellis apply` at the terminal, or the panel.")
    _check_size(report)
    return Translation(document, report)


def _match_groups(answers: Answers, present: Present, kinds: Sequence[NodeKind], options: Options) -> dict[int, Match]:
    kind = next(kind for kind in kinds if kind.is_group)
    records = answers.find_records(find_paths(kind))
    if records is None:
        raise ReadingFailed(
            f"The groups were not answered ({find_paths(kind)[0]}), and permissions mean nothing without them. Check that the "
            "address is that of the front page, and that the key may list groups."
        )
    return GroupMatcher(kind, records, present).match(options.groups)


def _describe_missing_groups(groups: Mapping[int, Match], present: Present) -> Iterator[str]:
    """Describe our groups that match no old group: built-in groups, and groups that an earlier import matched by name."""
    found = {match.here["id"] for match in groups.values() if match.here is not None}
    for record in (record for record in present.groups if record["id"] not in found):
        name, external_id = isolate(record["name"]), str(record["externalId"])
        if record["builtIn"]:
            yield (
                f"No old group matches '{name}', so it gets no permissions from the old community. Use --group to match one to it."
            )
        elif record["managedBy"] == PREFIX and not external_id.startswith(f"{PREFIX}:"):
            yield (
                f"No old group matches '{name}' any more. If it was renamed in the old community, pass --group OLD={external_id}. "
                "Otherwise a second group is created, and --prune deletes this one."
            )


def _check_size(report: Report) -> None:
    count = sum(section.written for section in report.sections)
    if count > MOST_ENTRIES:
        advice = _WHOLE if any(section.written > MOST_ENTRIES for section in report.sections) else _SPLIT
        shares = ", ".join(f"{section.name} {section.written:,}" for section in report.sections)
        raise ReadingFailed(f"There are {count:,} nodes ({shares}), and a document has at most {MOST_ENTRIES:,}. {advice}")


class _Translator:
    """Translates sections, replacing old groups by their matches here."""

    def __init__(self, present: Present, groups: Mapping[int, Match], *, clubs: bool) -> None:
        self._present = present
        self._matches = groups
        self._groups = {number: match.external_id for number, match in groups.items()}
        # The first of the old groups that become one here; the others are left out.
        self._firsts = {match.external_id: number for number, match in reversed([*groups.items()])}
        found = {match.here["id"] for match in groups.values() if match.here is not None}
        # Whether all of the old groups together mean everybody. If guests, members or administrators are missing, only a part of
        # the groups was sent.
        self._is_everybody = found.issuperset(record["id"] for record in present.groups if record["builtIn"])
        self._clubs = clubs

    def translate_section(self, kind: NodeKind, records: Sequence[Mapping[str, Any]], section: KindReport) -> list[dict[str, Any]]:
        """Translate the nodes of a kind, and return the entries of the top level. Fills the section of the report."""
        nodes = [self._read_node(kind, record) for record in records]
        top = arrange(nodes)
        for node in walk(top):
            self._leave_out(node)
        entries = self._write_level(kind, top)
        section.rows += [self._describe(node) for node in sorted(walk(top), key=lambda node: node.id)]
        return entries

    def _read_node(self, kind: NodeKind, record: Mapping[str, Any]) -> OldNode:
        notes: list[str] = []
        number = int(record["id"])
        node = OldNode(kind, number, read_name(kind, number, record.get("name", record.get("title")), notes), record, notes)
        if kind.is_group:
            node.notes += self._matches[number].notes
        return node

    def _leave_out(self, node: OldNode) -> None:
        """Set the reason if a node is left out. This must have been called for its parent before."""
        if node.kind.is_group:
            match = self._matches[node.id]
            first = self._firsts[match.external_id]
            if match.is_managed_elsewhere and match.here is not None:
                node.left_out = f"This group is managed by another document, '{match.here['managedBy']}'."
            elif first != node.id:
                node.left_out = f"It is merged with the old group {first}."
        elif node.parent is not None and node.parent.left_out:
            node.left_out = _UNDER_CLUB
        elif node.is_club and self._clubs:
            node.notes.append("It belonged to a club, whose members the old community does not report: check its permissions here.")
        elif node.is_club:
            node.left_out = _CLUB

    def _describe(self, node: OldNode) -> NodeReport:
        url = node.record.get("url")
        shown = url if isinstance(url, str) and _find_scheme(url) in {"http", "https"} else ""
        return NodeReport(node.id, _shorten(node.path), shown, self._name(node), tuple(node.notes), node.left_out)

    def _name(self, node: OldNode) -> str:
        return self._groups[node.id] if node.kind.is_group else name_external(node.kind, node.id)

    # --- entries --------------------------------------------------------------------------------------------------

    def _write_level(self, kind: NodeKind, nodes: Sequence[OldNode]) -> list[dict[str, Any]]:
        """Write siblings: first those that exist here, in their order here, then the others by their ids."""
        written = [node for node in nodes if not node.left_out]
        if kind.ordered:
            written.sort(key=self._order)
        entries: list[dict[str, Any]] = []
        for node in written:
            entry = self._write_entry(node)
            children = self._write_level(kind, node.children)
            entries += [entry | ({"children": children} if children else {})] if not node.left_out else []
        return entries

    def _order(self, node: OldNode) -> tuple[float, int]:
        here = self._present.find(node.kind, self._name(node))
        return (float("inf") if here is None else here["position"], node.id)

    def _write_entry(self, node: OldNode) -> dict[str, Any]:
        kind = node.kind
        here = self._present.find(kind, self._name(node))
        if kind.is_group and (match := self._matches[node.id]).is_chosen and match.here is not None:
            return {"externalId": match.external_id, "name": match.here["name"]}
        entry: dict[str, Any] = {"externalId": self._name(node), "name": node.name}
        own = {f.name for f in kind.group_fields}
        reported = list_told(kind)
        for f in kind.fields:
            if f.name in reported and f.name not in own and f.name in node.record:
                try:
                    entry[f.name] = f.type.parse(_simplify(node.record[f.name]))
                except Invalid:
                    entry[f.name] = f.default
                    node.notes.append(
                        f"Its {f.name} {quote(node.record[f.name])} is not allowed here: {quote(f.default)} is used instead."
                    )
        entry |= {name: who for name in own if (who := self._read_group_field(node, name, here)) is not None}
        if kind.options:
            entry |= self._write_permissions(node, here)
        finish = _FINISH.get(kind.name)
        if finish is not None:
            finish(node, entry, here)
        return entry

    def _write_permissions(self, node: OldNode, here: Mapping[str, Any] | None) -> dict[str, Any]:
        permissions = read_permissions(node.kind, node.record.get("permissions"), self._groups, node.notes)
        closed: dict[str, Any] = {option: [] for option in node.kind.option_names}
        if node.closed:
            return {"permissions": closed}
        if permissions is None:
            node.notes.append(
                "The old community does not report its permissions. If it is new here, nobody may do anything with it until you "
                "set them."
            )
            return {"permissions": closed} if here is None else {}
        return {"permissions": permissions}

    def _read_group_field(self, node: OldNode, name: str, here: Mapping[str, Any] | None) -> Any:
        value = node.record.get(name)
        numbers = [*list_groups(value)]
        if not numbers:
            node.notes.append(f"The old community does not report its {name}. If it is new here, it has none until you set them.")
            return [] if here is None else None
        if self._is_everybody and self._groups.keys() == set(numbers):
            return EVERYONE
        if unknown := [number for number in numbers if number not in self._groups]:
            node.notes.append(
                f"Its {name} include {len(unknown):,} that are not among the groups that were sent; they are left out."
            )
        return sorted({self._groups[number] for number in numbers if number in self._groups})


def _shorten(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path to show, without the middle of a long one, which would be repeated with each node below it."""
    return path if len(path) <= _LONGEST_PATH else (path[0], "…", *path[2 - _LONGEST_PATH :])


def _simplify(value: Any) -> Any:
    """Return the name if a value is an object, such as a member; "" if it is null; otherwise the value."""
    if isinstance(value, Mapping):
        return str(value.get("name") or "")
    return "" if value is None else value


def _find_scheme(url: str) -> str:
    """Return the scheme of an address; "" if it is not a valid address."""
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


# --- further steps for single kinds -------------------------------------------------------------------------------


def _finish_forum(node: OldNode, entry: dict[str, Any], here: Mapping[str, Any] | None) -> None:
    """Give a redirect an address, which it must have here: the address it has here already, or its page in the old community.

    A redirect with forums below it becomes a category. A redirect for which no address is known is left out.
    """
    if not node.kind.leaf_only(entry):
        return
    if any(not child.left_out for child in node.children):
        entry["type"] = _LEAF
        node.notes.append("It is a redirect with forums below it, which is not possible here, so it becomes a category.")
        return
    old = node.record.get("url")
    known = here.get("redirectUrl") if here is not None else None
    try:
        entry["redirectUrl"] = known or Url().parse(old)
    except Invalid:
        entry["redirectUrl"] = None
    if entry["redirectUrl"] is None:
        node.left_out = "It is a redirect whose address the old community does not report. Create it here by hand."
    elif entry["redirectUrl"] == old:
        node.notes.append(
            "It is a redirect whose address the old community does not report. It leads to its old page: set redirectUrl here "
            "before that page is gone."
        )


def _finish_group(node: OldNode, entry: dict[str, Any], _: Mapping[str, Any] | None) -> None:
    """Split the formatted name of a group into `prefix` and `suffix`, the parts before and after its name."""
    formatted = node.record.get("formattedName")
    html = formatted if isinstance(formatted, str) and len(formatted) <= _LONGEST_FORMATTED else ""
    for name in spell_in_html(node.name, node.record.get("name")):
        found = [*islice(_split_text(html, name), 2)]
        if len(found) == 1:
            affixes = node.kind.prepare(dict(zip(_AFFIXES, found[0], strict=True)))
            if any(len(affix) > _LONGEST_AFFIX for affix in affixes.values()):
                break
            entry |= affixes
            if affixes != {name: affix.strip() for name, affix in zip(_AFFIXES, found[0], strict=True)}:
                node.notes.append(f"The formatting of its name was simplified; it was {quote(formatted)}.")
            return
    node.notes.append(f"The formatting of its name, {quote(formatted)}, could not be taken apart: set prefix and suffix here.")


def _split_text(html: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts before and after a name, for each occurrence of the name in HTML that is not within a tag."""
    at = html.find(name)
    while at >= 0:
        before = html[:at]
        if before.rfind("<") <= before.rfind(">"):
            yield before, html[at + len(name) :]
        at = html.find(name, at + 1)


def _finish_blog(node: OldNode, entry: dict[str, Any], here: Mapping[str, Any] | None) -> None:
    """Name the groups that own a blog in common, which the suite reports in place of an owner. They may read it if it is new."""
    groups = node.record.get("groups")
    if node.record.get("owner") is not None or not isinstance(groups, list) or not groups:
        return
    names = ", ".join(decode_entities(str(one.get("name"))) for one in groups if isinstance(one, Mapping))
    with suppress(Invalid):
        entry["owner"] = next(f for f in node.kind.fields if f.name == "owner").type.parse(names[:_LONGEST_OWNER])
    if here is not None:
        del entry["groups"]
    node.notes.append("It belongs to groups in common. If it is new here, only they may read it until you set its groups.")


_FINISH: Final[Mapping[str, Callable[[OldNode, dict[str, Any], Mapping[str, Any] | None], None]]] = {
    "blogs": _finish_blog,
    "forums": _finish_forum,
    "groups": _finish_group,
}
