"""Parses structure documents into sections and entries with their places, and collects all their faults."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trellis.core.fields import EVERYONE, ExternalId, Invalid, Suggestions, Text, quote
from trellis.core.keys import SETTINGS
from trellis.core.kind import NodeKind
from trellis.core.nodes import DEEPEST
from trellis.core.structure.entries import Document, KeyEntry, LocatedFault, Location, NodeEntry, Section
from trellis.core.structure.text import MOST_ENTRIES, Unreadable, read_document, tell_too_many_entries
from trellis.errors import Fault, Refused, refuse_faults
from trellis.sentences import join, say

FORMAT: Final = "trellis/1"
KEYS: Final = "keys"
MOST_DOCUMENTS: Final = 250
NAME: Final = Text(100, 1, visible=True)  # of a document
KEY_MEMBERS: Final = tuple(field.name for field in SETTINGS)
_KEY_NAME: Final = next(field.type for field in SETTINGS if field.name == "name")
_HEAD: Final = frozenset(("format", "name", "under"))


def refuse_document(faults: Sequence[LocatedFault]) -> Refused:
    """Return the refusal of a document for all its faults; each fault has its location."""
    return refuse_faults(*(Fault(path, "INVALID_DOCUMENT", detail) for path, detail in _describe(faults)))


def _refuse_value(faults: Sequence[LocatedFault]) -> Invalid:
    return Invalid(say("is not a structure document."), "INVALID_DOCUMENT", _describe(faults))


def _describe(faults: Sequence[LocatedFault]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            location.path or "document",
            say("{place}: {detail}", place=where, detail=detail) if (where := location.describe()) else detail,
        )
        for location, detail in faults
    )


def parse_documents(sent: Any, kinds: Sequence[NodeKind]) -> Document:
    """Parse the value of `document`: a document as an object or as text, or a list of documents or of {file, content}.

    Raises Invalid, which lists all faults.
    """
    parser = _Parser(kinds)
    documents = sent if isinstance(sent, list | tuple) and sent else [sent]  # an empty list is refused as a document
    if len(documents) > MOST_DOCUMENTS:
        detail = say("has {count:,} documents; at most {most:,} are allowed.", count=len(documents), most=MOST_DOCUMENTS)
        raise Invalid(detail, "INVALID_DOCUMENT")
    for raw in documents:
        parser.add(raw)
    if parser.faults:
        raise _refuse_value(parser.faults)
    return parser.document


class _Parser:
    """Parses documents one after the other, and collects their faults."""

    def __init__(self, kinds: Sequence[NodeKind]) -> None:
        self.document = Document()
        self.faults: list[LocatedFault] = []
        self._kinds = {kind.name: kind for kind in kinds}
        self._near_top = Suggestions((*_HEAD, *self._kinds, KEYS))
        self._near = {kind.name: Suggestions((*entry_members(kind), "children")) for kind in kinds}  # shared by all entries
        self._seen: dict[tuple[str, str], Location] = {}
        self._seen_keys: dict[str, Location] = {}
        self._whole: dict[str, Location] = {}
        self._count = 0

    def add(self, raw: Any) -> None:
        """Parse a document, given as text, as an object, or as {file, content}."""
        file = ""
        if isinstance(raw, Mapping) and raw.keys() == {"file", "content"}:
            file, raw = str(raw["file"])[:255], raw["content"]
        top = Location(file, 1 if isinstance(raw, str) else None, "")
        if isinstance(raw, str):
            try:
                raw = read_document(raw)
            except Unreadable as unreadable:
                self.faults.append((Location(file, unreadable.line, ""), unreadable.detail))
                return
        if not isinstance(raw, Mapping):
            self.faults.append(
                (top, say("A document begins with the line 'format: {format}', and has sections such as 'forums:'.", format=FORMAT))
            )
            return
        self._add_head(raw, top)
        under = self._parse_under(raw, top)
        sections = [name for name in raw if name in self._kinds or name == KEYS]
        if under is not None and (len(sections) != 1 or sections[0] == KEYS or not self._kinds[sections[0]].tree):
            trees = " or ".join(name for name, kind in self._kinds.items() if kind.tree)
            self._fault(raw, top, "under", say("under needs exactly one section, of a kind that is a tree: {trees}.", trees=trees))
        if not sections:
            self.document.empty.append(top)
        for name in sections:
            self._add_section(name, raw[name], top.member(raw, name), under)

    def _fault(self, owner: Any, location: Location, member: str, detail: str) -> None:
        self.faults.append((location.member(owner, member) if member else location, detail))

    def _add_head(self, raw: Mapping[str, Any], top: Location) -> None:
        if raw.get("format") != FORMAT:
            self._fault(raw, top, "format", say("format must be {format}, not {raw}.", format=FORMAT, raw=quote(raw.get("format"))))
        for name in raw:
            if name not in _HEAD and name not in self._kinds and name != KEYS:
                hint = self._near_top.suggest(str(name))
                self._fault(raw, top, name, say("There is no section {name}.{hint}", name=quote(name), hint=hint))
        try:
            name = NAME.parse(raw.get("name"))
        except Invalid as invalid:
            self._fault(raw, top, "name", say("name {detail} It is recorded as managedBy.", detail=invalid.detail))
            return
        if self.document.name and name != self.document.name:
            detail = say(
                "All documents of a plan must have the same name, not {first} and {other}.",
                first=quote(self.document.name),
                other=quote(name),
            )
            self._fault(raw, top, "name", detail)
        self.document.name = name

    def _parse_under(self, raw: Mapping[str, Any], top: Location) -> str | None:
        if "under" not in raw:
            return None
        try:
            return ExternalId().parse(raw["under"])
        except Invalid as invalid:
            self._fault(raw, top, "under", say("under {detail}", detail=invalid.detail))
            return None

    def _add_section(self, name: str, raw: Any, location: Location, under: str | None) -> None:
        if raw is None:
            raw = []
        if not isinstance(raw, list | tuple):
            self.faults.append((location, say("{name} must be a list, each item of which begins with '- '.", name=name)))
            return
        if not raw:
            self.document.empty.append(location)
        if name == KEYS:
            self._add_keys(raw, location)
            return
        in_parts = any(section.kind.name == name for section in self.document.sections)
        if name in self._whole or (under is None and in_parts):
            detail = say(
                "{name} is already in another of the documents. Only parts of a section, each with its own under, "
                "can be in several documents.",
                name=name,
            )
            self.faults.append((location, detail))
        if under is None:
            self._whole[name] = location
        entries = self._parse_entries(self._kinds[name], raw, location, 1)
        self.document.sections.append(Section(self._kinds[name], location, under, entries))

    def _count_one(self, location: Location) -> None:
        self._count += 1
        if self._count > MOST_ENTRIES:
            raise _refuse_value([(location, tell_too_many_entries())])

    # --- nodes ----------------------------------------------------------------------------------------------------

    def _parse_entries(self, kind: NodeKind, raw: Sequence[Any], location: Location, level: int) -> list[NodeEntry]:
        if level > DEEPEST:
            self.faults.append((location, say("This is more than {deepest} levels deep.", deepest=DEEPEST)))
            return []
        entries: list[NodeEntry] = []
        for index, one in enumerate(raw):
            self._count_one(location)
            if (entry := self._parse_entry(kind, one, location.item(index, one), level)) is not None:
                entries.append(entry)
        return entries

    def _parse_entry(self, kind: NodeKind, raw: Any, location: Location, level: int) -> NodeEntry | None:
        if not isinstance(raw, Mapping):
            detail = say(
                "A {singular} must have members such as 'externalId:' and 'name:', not {raw}.",
                singular=kind.singular,
                raw=quote(raw),
            )
            self.faults.append((location, detail))
            return None
        members = entry_members(kind)
        for name in raw:
            if name not in members and not (name == "children" and kind.tree):
                hint = self._near[kind.name].suggest(str(name))
                detail = say("A {singular} has no {name}.{hint}", singular=kind.singular, name=quote(name), hint=hint)
                self._fault(raw, location, name, detail)
        external_id = self._parse_external_id(kind, raw, location)
        name = raw.get("name")
        if not isinstance(name, str) or not name.strip():
            detail = say("name is needed: it must be text, not {name}.", name=quote(name))
            self._fault(raw, location, "name" if "name" in raw else "", detail)
            name = ""
        elsewhere = {"externalId", "permissions", *(f.name for f in kind.group_fields)}
        values = {n: raw[n] for n in members if n in raw and n not in elsewhere}
        for secret in kind.secrets:
            if isinstance(values.get(secret.name), Mapping):
                detail = say("Only `trellis plan` and `trellis apply` read {name} from the environment.", name=secret.name)
                self._fault(raw, location, secret.name, detail)
        entry = NodeEntry(location, raw, kind, external_id, name.strip(), values, self._parse_groups(kind, raw, location))
        children = raw.get("children") if kind.tree else None
        if children is not None and not isinstance(children, list | tuple):
            self._fault(raw, location, "children", say("children must be a list, each item of which begins with '- '."))
        elif children:
            entry.children = self._parse_entries(kind, children, location.member(raw, "children"), level + 1)
        return entry

    def _parse_external_id(self, kind: NodeKind, raw: Mapping[str, Any], location: Location) -> str:
        sent = raw.get("externalId")
        try:
            external_id = ExternalId().parse(sent) or ""
        except Invalid as invalid:
            detail = (
                say("externalId is needed: it says which node this is.")
                if sent is None
                else say("externalId {detail}", detail=invalid.detail)
            )
            hint = say(" Put it in quotes.") if isinstance(sent, int | float) else ""
            self._fault(raw, location, "externalId" if "externalId" in raw else "", join((detail, hint), ""))
            return ""
        here = location.member(raw, "externalId")
        other = self._seen.setdefault((kind.name, external_id), here)
        if other is not here:
            detail = say(
                "{external_id} is already the externalId of another {singular}: {other}.",
                external_id=quote(external_id),
                singular=kind.singular,
                other=other.describe(),
            )
            self.faults.append((here, detail))
        return external_id

    def _parse_groups(self, kind: NodeKind, raw: Mapping[str, Any], location: Location) -> dict[str, str | tuple[str, ...]]:
        named = {f.name: (raw[f.name], location.member(raw, f.name)) for f in kind.group_fields if f.name in raw}
        if "permissions" in raw and kind.options:
            sent, at = raw["permissions"], location.member(raw, "permissions")
            if isinstance(sent, Mapping):
                for option in sent:
                    if option not in kind.options:
                        options = ", ".join(kind.options)
                        detail = say(
                            "There is no option {option}; the options are {options}.", option=quote(option), options=options
                        )
                        self._fault(sent, at, option, detail)
                named |= {
                    f"permissions.{option}": (sent[option], at.member(sent, option)) for option in kind.options if option in sent
                }
            else:
                self.faults.append((at, say('permissions must name options, such as view: "*", not {sent}.', sent=quote(sent))))
        groups: dict[str, str | tuple[str, ...]] = {}
        for name, (who, at) in named.items():
            if who == EVERYONE:
                groups[name] = EVERYONE
            elif isinstance(who, list | tuple) and all(isinstance(one, str) for one in who):
                groups[name] = tuple(dict.fromkeys(who))
            else:
                detail = say(
                    '{name} must be "*" (every group) or a list of external ids of groups, such as [mods], not {who}.',
                    name=name,
                    who=quote(who),
                )
                self.faults.append((at, detail))
        return groups

    # --- keys -----------------------------------------------------------------------------------------------------

    def _add_keys(self, raw: Sequence[Any], location: Location) -> None:
        seen = self._seen_keys
        for index, one in enumerate(raw):
            self._count_one(location)
            at = location.item(index, one)
            name = one.get("name") if isinstance(one, Mapping) else None
            if not isinstance(one, Mapping) or not isinstance(name, str):
                self.faults.append((at, say("A key must have a name, and may have {names}.", names=", ".join(KEY_MEMBERS[1:]))))
                continue
            try:
                name = _KEY_NAME.parse(name)
            except Invalid as invalid:
                self._fault(one, at, "name", say("{name} {detail}", name="name", detail=invalid.detail))
            for member in one:
                if member not in KEY_MEMBERS:
                    detail = say("A key has no {member}; it has {members}.", member=quote(member), members=", ".join(KEY_MEMBERS))
                    self._fault(one, at, member, detail)
            if _is_duration(one.get("expires")):
                detail = say("expires must be a timestamp or null: a duration would start again with each apply.")
                self._fault(one, at, "expires", detail)
            bounds = one.get("bounds")
            for operation, bound in bounds.items() if isinstance(bounds, Mapping) else ():
                if isinstance(bound, Mapping) and _is_duration(bound.get("until")):
                    detail = say(
                        "until of {operation} must be a timestamp or null: a duration would start again with each apply.",
                        operation=quote(operation),
                    )
                    self._fault(one, at, "bounds", detail)
            if name in seen:
                detail = say("{name} is already the name of another key: {seen}.", name=quote(name), seen=seen[name].describe())
                self._fault(one, at, "name", detail)
            seen[name] = at
            settings = {member: one[member] for member in KEY_MEMBERS if member in one}
            self.document.keys.append(KeyEntry(at, one, name, settings))


def _is_duration(value: object) -> bool:
    """Return whether a time is a duration from now, such as 90d or 1000h, and not a timestamp."""
    return isinstance(value, str) and (not value[:4].isdigit() or value.strip()[-1] in "dh")


def entry_members(kind: NodeKind) -> tuple[str, ...]:
    """Return the names of the members that an entry of a kind may have, in order, without `children`."""
    permissions = ("permissions",) if kind.options else ()
    return ("externalId", "name", *(f.name for f in kind.fields if not f.read_only), *permissions)
