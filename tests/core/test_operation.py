"""Operations and their catalogue: who may run what, what is taken, and which refusals are announced."""

import pytest

from tests.community import CONTRACT
from tests.fixture_types import Run
from tests.sweeps.grantable import create_target
from trellis.compose import catalogue_of
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Basis, Call
from trellis.core.verbs import RESTORE
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS

CATALOGUE = catalogue_of(KINDS)


def test_the_nineteen_of_the_contract_can_be_granted() -> None:
    assert [operation.name for operation in CATALOGUE.grantable if operation.name in CONTRACT] == list(CONTRACT)
    assert len(CONTRACT) == 19


def test_ours_can_be_granted_beside_them() -> None:
    granted = {operation.name for operation in CATALOGUE.grantable}
    undo, webhooks = [f"{kind.name}.restore" for kind in KINDS], ("list", "get", "create", "update", "delete")
    assert {"events.list", "blogs.list", "blogs.get", *undo, *(f"webhooks.{verb}" for verb in webhooks)} <= granted - set(CONTRACT)


def test_what_every_key_may_do_is_to_say_hello_and_to_see_to_its_own_proposals() -> None:
    own = ["proposals.list", "proposals.get", "proposals.withdraw"]
    assert [operation.name for operation in CATALOGUE.values() if operation.access.basis is Basis.ANY_KEY] == ["core.hello", *own]


def test_all_five_operations_of_every_kind_are_there_for_the_terminal() -> None:
    assert {f"{kind.name}.{verb}" for kind in KINDS for verb in ("list", "get", "create", "update", "delete")} <= set(CATALOGUE)


def test_an_unknown_operation_is_refused_by_name() -> None:
    assert CATALOGUE.find("forums.list") is CATALOGUE["forums.list"]
    with pytest.raises(Refused, match=r"^UNKNOWN_OPERATION: There is no operation 'forums.lost'"):
        CATALOGUE.find("forums.lost")


def test_an_operation_is_explained_and_named_after_its_resource() -> None:
    for operation in CATALOGUE.values():
        assert operation.doc.endswith("."), operation.name
        assert operation.summary[0].isupper(), operation.name
        assert not operation.summary.endswith("."), operation.name
        assert operation.name.startswith(f"{operation.resource}.")


def test_every_write_can_be_tried_dry_and_no_reading_can() -> None:
    for operation in CATALOGUE.values():
        assert ("dryRun" in {field.name for field in operation.takes}) == operation.writes, operation.name


def test_what_is_at_fault_is_refused_before_an_operation_runs(gate: Gate) -> None:
    for operation in CATALOGUE.values():
        if operation.fork is None and not operation.judges_input:
            with pytest.raises(Refused) as refused:
                gate.run(Call(operation.name, TERMINAL, {"nonsense": 1}, 1 if operation.has_target else None))
            needed = {field.name for field in operation.fields if field.required}
            assert {fault.field for fault in refused.value.faults} == {"nonsense", *needed}, operation.name


def test_what_is_needed_and_was_not_sent_is_refused(run: Run) -> None:
    """By those too that judge their input themselves."""
    for operation in CATALOGUE.values():
        needed = {field.name for field in operation.fields if field.required}
        if operation.verb is not None and needed and not operation.changes:
            with pytest.raises(Refused) as refused:
                run(operation.name, create_target(CATALOGUE, operation, run))
            assert refused.value.status == 400, operation.name
            if operation.kind is not None:
                assert {fault.field for fault in refused.value.faults} == needed, operation.name


def test_no_two_parameters_share_a_name() -> None:
    for operation in CATALOGUE.values():
        names = [name for field in operation.takes for name in (field.name, *field.also)]
        assert len(names) == len(set(names)), operation.name


def test_the_refusals_that_it_announces_are_in_the_table() -> None:
    for operation in CATALOGUE.values():
        assert {message for message, _ in operation.refusals} <= set(REFUSALS), operation.name
        assert all(code for _, code in operation.refusals), operation.name
        assert len({code for _, code in operation.refusals}) == len(operation.refusals), operation.name


def test_no_two_operations_that_are_served_share_the_code_of_an_unknown_id() -> None:
    served = [operation for operation in CATALOGUE.values() if operation.path is not None]
    codes = [operation.missing_code for operation in served if operation.has_target]
    assert len(codes) == len(set(codes))
    assert "" not in codes
    assert {operation.missing_code for operation in CATALOGUE.values() if operation.verb is RESTORE and operation.kind} == {
        "1T106/5"
    }
    others = {refusal.code for refusal in REFUSALS.values()} - {REFUSALS["INVALID_ID"].code}
    assert not others & set(codes)


def test_codes_of_unknown_ids_are_those_of_the_contract() -> None:
    codes = {name: dict(CATALOGUE[name].refusals)["INVALID_ID"] for name in ("groups.get", "forums.get", "forums.delete")}
    assert codes == {"groups.get": "1C358/1", "forums.get": "1F363/1", "forums.delete": "1S359/1"}


@pytest.mark.parametrize(
    ("grants", "may"),
    [(None, True), (frozenset(), False), (frozenset({"forums.list"}), True), (frozenset({"forums.*", "*"}), False)],
)
def test_an_actor_may_what_was_granted_word_for_word(grants: frozenset[str] | None, may: bool) -> None:
    assert Actor("key", 1, "Plugin", grants).may("forums.list") is may
    assert TERMINAL.may("forums.list")
