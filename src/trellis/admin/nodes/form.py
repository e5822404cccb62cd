"""The form of a node, built from the declaration of its kind: fields, grid of permissions, pickers, and values as text."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, Final

from trellis.admin.forms import Form, read_id
from trellis.admin.nodes.grid import FILTER, FILTERED, PermissionGrid, build_grid
from trellis.admin.nodes.names import GroupNames, fetch_groups
from trellis.admin.nodes.picker import Picker, build_picker, is_search
from trellis.admin.page import PageRequest
from trellis.admin.submitted import ACTION, RETYPE, Submitted
from trellis.core.fields import EVERYONE, Boolean, Choice, Field, Groups, Invalid, isolate, parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.errors import Fault, Refused, raise_faults
from trellis.sentences import adapt, join, say

PREVIEW: Final = "preview."  # before a field's name, as an action: show its HTML
COPY: Final = "_copy"  # the picker of the node whose permissions are copied
REMOVE: Final = "_remove."  # before a secret's name: remove it
_PLACE: Final = ("parentId", "position")


@dataclass
class NodeForm:
    """A kind's form with its record, which is None for a new node.

    `pickers` are by field, and `built_in` are the ids of built-in groups.
    """

    kind: NodeKind
    form: Form
    groups: GroupNames
    record: Mapping[str, Any] | None = None
    pickers: dict[str, Picker] = field(default_factory=dict)
    typed: Submitted | None = None
    built_in: tuple[int, ...] = ()

    @cached_property
    def grid(self) -> PermissionGrid:
        """The grid of its permissions."""
        return build_grid(self.form["permissions"], self.built_in, self.typed)

    def raw(self) -> dict[str, Any]:
        """Return the typed values as create and update accept them. Raises Refused."""
        raw = self.form.raw()
        faults = []
        for secret in self.kind.secrets:
            if self.removes_secret(secret.name):
                if raw.get(secret.name):
                    faults.append(
                        Fault(secret.name, "INVALID_VALUE", say("{name}: type a new one or remove it, not both.", name=secret.name))
                    )
                raw[secret.name] = None
        raise_faults(faults)
        if raw.get("position") == "":
            del raw["position"]
        return raw

    def ask_for_secrets(self) -> None:
        """Ask for typed secrets again: a form does not send them back, and without a notice it would be saved without them."""
        for secret in self.kind.secrets:
            is_lost = self.typed is not None and (self.typed.get(secret.name) or self.typed.get(RETYPE + secret.name))
            if is_lost and not any(self.form.field_of(fault) == secret.name for fault in self.form.faults):
                self.form.add_fault(secret.name, say("{name}: type it again, since a form does not keep it.", name=secret.name))

    def removes_secret(self, name: str) -> bool:
        """Return whether the box that removes a secret is ticked."""
        return self.typed is not None and self.typed.get(REMOVE + name) == "1"

    def has_secret(self, name: str) -> bool:
        """Return whether a secret is set, as far as the record says."""
        return bool(self.record is not None and self.record.get(f"{name}Protected", True))

    @property
    def main_fields(self) -> list[str]:
        """The fields that come first."""
        others = ("permissions", *self.switches, *(control.name for control in self.form.seldom))
        return [name for name in self.form.fields if name not in others]

    def preview(self, name: str) -> str | None:
        """Return the HTML of a field as it would be saved, or of its error, if the form was sent to preview it; None otherwise."""
        if self.typed is None or self.typed.get(ACTION) != f"{PREVIEW}{name}":
            return None
        try:
            return str(self.form.fields[name].type.parse(self.typed.get(name, "")))
        except Invalid as invalid:
            label = self.form[name].label
            return adapt(invalid.detail, lambda said, find: escape(f"{find(label)} {said}"))

    @property
    def asks_for_kind(self) -> str:
        """The field whose value decides which other fields apply; "" if there is none."""
        return next((f.applies[0] for f in self.form.fields.values() if f.applies), "")

    @property
    def switches(self) -> list[str]:
        """The fields that are on or off."""
        return [name for name, f in self.form.fields.items() if isinstance(f.type, Boolean) and not f.seldom]

    @property
    def is_search(self) -> bool:
        """Whether the form was sent to search for something rather than to save."""
        if self.typed is None:
            return False
        is_filtered = not self.typed.get(ACTION) and self.typed.get(FILTER, "") != self.typed.get(FILTERED, "")
        return is_filtered or is_search(self.typed, self.pickers, "save")

    # --- values as text -------------------------------------------------------------------------------------------

    def compare(self, base: Mapping[str, Any] | None, theirs: Mapping[str, Any]) -> list[tuple[str, str | None, str, str]]:
        """Return the fields of the form as texts: (label, before, theirs, mine)."""
        mine = self._typed_values()
        rows: list[tuple[str, str | None, str, str]] = []
        for name, f in self.form.fields.items():
            label = self.form[name].label
            if name == "permissions":
                rows += self._compare_permissions(base, theirs, mine)
            elif f.write_only:
                state = say("Set") if theirs.get(f"{name}Protected") else say("Not set")
                wanted = say("A new one") if mine.get(name) else say("Removed") if name in mine else state
                rows.append((label, None, state, wanted))
            else:
                before = None if base is None else format_value(f, base.get(name), self.groups)
                theirs_text, mine_text = (format_value(f, values.get(name), self.groups) for values in (theirs, mine))
                rows.append((label, before, theirs_text, mine_text))
        return rows

    def _compare_permissions(
        self, base: Mapping[str, Any] | None, theirs: Mapping[str, Any], mine: Mapping[str, Any]
    ) -> Iterable[tuple[str, str | None, str, str]]:
        def who(record: Mapping[str, Any], option: str) -> str:
            return format_groups(record.get("permissions", {}).get(option, ()), self.groups)

        for option in self.kind.options:
            before = None if base is None else who(base, option)
            yield (
                self.kind.option_label(option),
                before,
                who(theirs, option),
                who(mine, option),
            )

    def _typed_values(self) -> dict[str, Any]:
        """Return the typed values as they would be saved, invalid ones as they were typed; empty if the form itself is refused."""
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


def format_value(f: Field, value: Any, groups: GroupNames) -> str:
    """Return a field's value as text."""
    if isinstance(f.type, Groups):
        return format_groups(value, groups)
    if isinstance(value, bool):
        return say("Yes") if value else say("No")
    if value is None or value in ("", [], ()):
        return "–"
    return say(str(value).capitalize()) if isinstance(f.type, Choice) else str(value)


def format_groups(who: Any, groups: GroupNames) -> str:
    """Return the names of the groups that have a right, as text."""
    if who == EVERYONE:
        return say("Every group")
    named = [isolate(groups.get(parse_whole_number(one) or 0, say("Group {item}", item=str(one)[:60]))) for one in who or ()]
    return join(named, ", ") if named else say("Nobody")


# --- building one -------------------------------------------------------------------------------------------------


async def build_new_form(request: PageRequest, kind: NodeKind, typed: Submitted | None = None) -> NodeForm:
    """Build the form of a new node; under a parent named in the address, it starts with the parent's permissions."""
    values: dict[str, Any] = {}
    if typed is None and kind.tree and (parent := read_id(request.query.get("parentId", ""))):
        above = await request.fetch(kind.operation("get"), target=parent)
        values = {"parentId": above["id"], "permissions": above.get("permissions", {})}
    name, *rest = _content_fields(kind)
    node_form = await _build(request, kind, values, typed, (name, *(f for f in kind.placement if f.name in _PLACE), *rest))
    if kind.tree:
        node_form.pickers["parentId"] = await build_picker(
            request,
            kind,
            "parentId",
            str(values.get("parentId") or "") if typed is None else typed.get("parentId", ""),
            none=say("The top level"),
            label=say("Under"),
            help=say("The parent {singular}.", singular=kind.singular),
        )
    return await _add_copy_picker(request, node_form)


async def build_form(request: PageRequest, kind: NodeKind, record: Mapping[str, Any], typed: Submitted | None = None) -> NodeForm:
    """Build the form of an existing node, from its record or from the typed values."""
    node_form = await _build(request, kind, record, typed, _content_fields(kind))
    node_form.record = record
    return await _add_copy_picker(request, node_form)


def _content_fields(kind: NodeKind) -> tuple[Field, ...]:
    writable = tuple(f for f in kind.fields if not f.read_only)
    return (kind.name_field, *writable, kind.external_id_field, *(f for f in kind.permissions_field if f.name == "permissions"))


async def _build(
    request: PageRequest, kind: NodeKind, values: Mapping[str, Any], typed: Submitted | None, fields: tuple[Field, ...]
) -> NodeForm:
    groups = await fetch_groups(request)
    if typed is not None and typed.get(ACTION) == "copy":
        typed = await _copy_permissions(request, kind, typed)
    form = Form(
        fields,
        values if typed is None else typed,
        groups=(*groups.items(), *_new_groups(values, groups).items()),
        choices={f.name: list_choices(f.type) for f in fields if isinstance(f.type, Choice)},
        labels={"parentId": say("Under"), "position": say("Place among its siblings")}
        | {f"permissions.{option}": kind.option_label(option) for option in kind.options},
        help={f.name: describe_field(f) for f in fields}
        | {"name": "", "permissions": "", "position": say("Leave this empty to put it last; 0 puts it first.")},
    )
    built_in = tuple(number for one in request.kinds if one.is_group for number in one.built_in)
    return NodeForm(kind, form, groups, typed=typed, built_in=built_in)


def _new_groups(values: Mapping[str, Any], groups: GroupNames) -> dict[int, str]:
    """Return the groups that a record's permissions name and that are not among `groups`, so that saving does not lose them."""
    allowed = [who for who in (values.get("permissions") or {}).values() if isinstance(who, list | tuple)]
    return {int(one): say("Group {item}", item=one) for who in allowed for one in who if one not in groups}


def list_choices(choice: Choice) -> tuple[tuple[str, str], ...]:
    """List the values of a choice with the labels under which a form offers them."""
    return tuple((word, f"{word.capitalize()} – {doc[0].lower()}{doc[1:].rstrip('.')}") for word, doc in choice.words.items())


def describe_field(f: Field) -> str:
    """Return a field's description, adapted to a form. A switch with a title has none: it would only repeat the title."""
    if isinstance(f.type, Boolean) and f.title:
        return ""
    doc = f.doc.partition(":")[0] + "." if isinstance(f.type, Choice | Groups) and ":" in f.doc else f.doc
    doc = doc.partition("; required when")[0].rstrip(".") + "." if f.applies else doc
    return re.sub(r"\bnull\b", "empty", doc).replace("; empty removes it", "")


async def _copy_permissions(request: PageRequest, kind: NodeKind, typed: Submitted) -> Submitted:
    """Replace the ticked permissions with the permissions of another node. If that node is gone, the picker reports it."""
    if (source := read_id(typed.get(COPY, ""))) is None:
        return typed
    try:
        permissions = (await request.fetch(kind.operation("get"), target=source))["permissions"]
    except Refused as refused:
        if refused.status != 404:
            raise
        return typed
    kept = [(name, value) for name, value in typed.pairs if not name.startswith("permissions.")]
    for option, who in permissions.items():
        kept.append((f"permissions.{option}", EVERYONE if who == EVERYONE else ",".join(map(str, who))))
    return Submitted(kept)


async def _add_copy_picker(request: PageRequest, node_form: NodeForm) -> NodeForm:
    kind = node_form.kind
    if kind.options:
        typed = node_form.typed or Submitted()
        chosen = typed.get(COPY, "")
        label = say("Same as another {singular}", singular=kind.singular)
        note = say("Fills in the grid; nothing is saved yet.")
        picker = await build_picker(request, kind, COPY, chosen, label=label, help=note, parents=False)
        is_gone = bool(chosen) and not picker.value and typed.get(ACTION) == "copy"
        fault = say("This {singular} has already been deleted.", singular=kind.singular) if is_gone else ""
        node_form.pickers[COPY] = replace(picker, fault=fault)
    return node_form
