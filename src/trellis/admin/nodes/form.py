"""The form of a node, drawn from the declaration of its kind: fields, grid of permissions, pickers, and values in words."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.page import Submitted, Visit
from trellis.admin.picker import Picker, pick
from trellis.core.fields import EVERYONE, Boolean, Choice, Field, Groups, Html, Invalid, Text
from trellis.core.nodes import NodeKind
from trellis.errors import Fault, Refused, refuse_faults

DO: Final = "_do"  # the name of the buttons of a form: "save", or something that only draws it again
COPY: Final = "_copy"  # the picker of the node whose permissions are copied
WITHOUT: Final = "_without."  # before a secret's name: take it away
_PLACE: Final = ("parentId", "position")
_TEXTS: Final = (Html, Text, Choice)

Named = Mapping[int, str]  # groups: id → name


async def groups_of(visit: Visit) -> Named:
    """Give all groups, by id."""
    is_group = next((kind for kind in visit.house.gate.environment.kinds if kind.is_group), None)
    if is_group is None:
        return {}
    named: dict[int, str] = {}
    page = pages = 1
    while page <= pages:
        asked = {"perPage": 1000, "page": page}
        found = (await visit.perform(is_group.operation("list"), asked)).value
        named |= {group["id"]: group["name"] for group in found["results"]}
        page, pages = page + 1, found["totalPages"]
    return named


@dataclass
class NodeForm:
    """A kind's form with what it was made from. `record` is None where a node is made; `pickers` are by field."""

    kind: NodeKind
    form: Form
    groups: Named
    record: Mapping[str, Any] | None = None
    pickers: dict[str, Picker] = field(default_factory=dict)
    typed: Submitted | None = None

    def raw(self) -> dict[str, Any]:
        """Give what was typed as create and update take it. Raises Refused."""
        raw = self.form.raw()
        faults = []
        for secret in self.kind.secrets:
            if self.without(secret.name):
                if raw.get(secret.name):
                    faults.append(Fault(secret.name, "INVALID_VALUE", f"{secret.name}: type a new one or take it away, not both."))
                raw[secret.name] = None
        if faults:
            raise refuse_faults(tuple(faults))
        if raw.get("position") == "":
            del raw["position"]
        return raw

    def at_fault(self, refused: Refused) -> None:
        """Put a refusal on the form, each fault at its field."""
        self.form.at_fault(refused)
        for fault in self.form.faults:
            if (name := self.form.place(fault)) in self.pickers:
                self.pickers[name] = replace(self.pickers[name], fault=self.form.sentence(fault))

    def without(self, name: str) -> bool:
        """Say whether a secret shall be taken away."""
        return self.typed is not None and self.typed.get(WITHOUT + name) == "1"

    def guarded(self, name: str) -> bool:
        """Say whether a secret is set, as far as the record tells."""
        return bool(self.record is not None and self.record.get(f"{name}Protected", True))

    @property
    def main(self) -> list[str]:
        """Which controls stand first."""
        return [name for name, f in self.form.fields.items() if name != "permissions" and not isinstance(f.type, Boolean)]

    @property
    def switches(self) -> list[str]:
        """Which ones are switches."""
        return [name for name, f in self.form.fields.items() if isinstance(f.type, Boolean)]

    @property
    def searched(self) -> bool:
        """Whether the form was sent to look for something rather than to save."""
        asked = "" if self.typed is None else self.typed.get(DO, "")
        return bool(asked and asked != "save") or (not asked and any(picker.changed for picker in self.pickers.values()))

    # --- values in words ------------------------------------------------------------------------------------------

    def compared(self, was: Mapping[str, Any] | None, theirs: Mapping[str, Any]) -> list[tuple[str, str | None, str, str]]:
        """Give what is on the form as (label, was, theirs, mine), in words."""
        mine = self._mine()
        rows: list[tuple[str, str | None, str, str]] = []
        for name, f in self.form.fields.items():
            label = self.form[name].label
            if name == "permissions":
                rows += self._options(was, theirs, mine)
            elif f.write_only:
                state = "Set" if theirs.get(f"{name}Protected") else "Not set"
                wanted = {True: "A new one"}.get(bool(mine.get(name)), "Taken away" if name in mine else state)
                rows.append((label, None, state, wanted))
            else:
                before = None if was is None else in_words(f, was.get(name), self.groups)
                rows.append((label, before, in_words(f, theirs.get(name), self.groups), in_words(f, mine.get(name), self.groups)))
        return rows

    def _options(
        self, was: Mapping[str, Any] | None, theirs: Mapping[str, Any], mine: Mapping[str, Any]
    ) -> Iterable[tuple[str, str | None, str, str]]:
        def who(record: Mapping[str, Any], option: str) -> str:
            return group_words(record.get("permissions", {}).get(option, ()), self.groups)

        for option in self.kind.options:
            before = None if was is None else who(was, option)
            yield f"May {option}", before, who(theirs, option), who(mine, option)

    def _mine(self) -> dict[str, Any]:
        """Give what was typed as it would be kept, as far as it can be read."""
        try:
            raw = self.raw()
        except Refused:
            return {}
        kept: dict[str, Any] = {}
        for name, value in raw.items():
            try:
                kept[name] = self.form.fields[name].type.parse(value)
            except Invalid:
                kept[name] = value
        return kept


def in_words(f: Field, value: Any, groups: Named) -> str:
    """Write a field's value for a person."""
    if isinstance(f.type, Groups):
        return group_words(value, groups)
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if value is None or value in ("", [], ()):
        return "–"
    return str(value).capitalize() if isinstance(f.type, Choice) else str(value)


def group_words(who: Any, groups: Named) -> str:
    """Name the groups of an option."""
    if who == EVERYONE:
        return "Every group"
    return ", ".join(groups.get(int(one), f"Group {one}") for one in who or ()) or "Nobody"


# --- making one ---------------------------------------------------------------------------------------------------


async def blank(visit: Visit, kind: NodeKind, typed: Submitted | None = None) -> NodeForm:
    """Make the form of a new node; under a parent named in the address it begins with the parent's permissions."""
    values: dict[str, Any] = {f.name: f.default for f in kind.fields} | {"position": ""}
    parent = visit.query.get("parentId", "")
    if typed is None and kind.tree and parent.isascii() and parent.isdigit() and len(parent) < 19 and int(parent):
        above = (await visit.perform(kind.operation("get"), target=int(parent))).value
        values |= {"parentId": above["id"], "permissions": above.get("permissions", {})}
    made = await _form(visit, kind, values, typed, _with_place(kind))
    if kind.tree:
        made.pickers["parentId"] = await pick(
            visit,
            kind,
            "parentId",
            str(values.get("parentId") or "") if typed is None else typed.get("parentId", ""),
            nothing="The top level",
            label="Under",
            help=f"The {kind.singular} that it stands under.",
        )
    return await _with_copying(visit, made)


async def filled(visit: Visit, kind: NodeKind, record: Mapping[str, Any], typed: Submitted | None = None) -> NodeForm:
    """Make the form of a node there is, from its record or with what was typed."""
    made = await _form(visit, kind, record, typed, _content(kind))
    made.record = record
    return await _with_copying(visit, made)


def _content(kind: NodeKind) -> tuple[Field, ...]:
    own = tuple(f for f in kind.fields if not f.read_only)
    return (kind.name_field, *own, *(f for f in kind.permissions_field if f.name == "permissions"))


def _with_place(kind: NodeKind) -> tuple[Field, ...]:
    name, *rest = _content(kind)
    return (name, *(f for f in kind.placement if f.name in _PLACE), *rest)


async def _form(
    visit: Visit, kind: NodeKind, values: Mapping[str, Any], typed: Submitted | None, fields: tuple[Field, ...]
) -> NodeForm:
    groups = await groups_of(visit)
    if typed is not None and typed.get(DO) == "copy":
        typed = await _copied(visit, kind, typed)
    form = Form(
        fields,
        values if typed is None else typed,
        groups=(*groups.items(), *_unlisted(values, groups).items()),
        choices={f.name: _choices(f.type) for f in fields if isinstance(f.type, Choice)},
        labels={"parentId": "Under", "position": "Place among its siblings"},
        help={f.name: _help(f) for f in fields}
        | {"name": "", "permissions": "", "position": "Counted from 0. Leave it empty to put it last."},
    )
    return NodeForm(kind, form, groups, typed=typed)


def _unlisted(values: Mapping[str, Any], groups: Named) -> dict[int, str]:
    """Name the groups of a record that were made since the groups were read, so that saving does not lose them."""
    held = [who for who in (values.get("permissions") or {}).values() if isinstance(who, list | tuple)]
    return {int(one): f"Group {one}" for who in held for one in who if one not in groups}


def _choices(choice: Choice) -> tuple[tuple[str, str], ...]:
    return tuple((word, f"{word.capitalize()} – {doc[0].lower()}{doc[1:].rstrip('.')}") for word, doc in choice.words.items())


def _help(f: Field) -> str:
    """Say a field's sentence as somebody in front of a form needs it."""
    doc = f.doc.partition(":")[0] + "." if isinstance(f.type, Choice | Groups) and ":" in f.doc else f.doc
    return re.sub(r"\bnull\b", "empty", doc).replace("; empty takes it away", "")


async def _copied(visit: Visit, kind: NodeKind, typed: Submitted) -> Submitted:
    """Put another node's permissions in the place of those that were ticked."""
    source = typed.get(COPY, "")
    if not (source.isascii() and source.isdigit() and len(source) < 19):
        return typed
    permissions = (await visit.perform(kind.operation("get"), target=int(source))).value["permissions"]
    kept = [(name, value) for name, value in typed.pairs if not name.startswith("permissions.")]
    for option, who in permissions.items():
        kept += [(f"permissions.{option}", str(one)) for one in ("", *([EVERYONE] if who == EVERYONE else who))]
    return Submitted(kept)


async def _with_copying(visit: Visit, made: NodeForm) -> NodeForm:
    kind = made.kind
    if kind.options:
        chosen = "" if made.typed is None else made.typed.get(COPY, "")
        label = f"Copy from another {kind.singular}"
        made.pickers[COPY] = await pick(visit, kind, COPY, chosen, label=label, help="Fills in the grid; nothing is saved yet.")
    return made
