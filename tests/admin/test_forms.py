"""Forms drawn from declarations: what was typed, what is handed on, and where faults stand."""

import pytest

from tests.admin.conftest import Visitor, page_text
from trellis.admin.forms import Form
from trellis.admin.submitted import Submitted
from trellis.core.fields import Boolean, Choice, Field, Groups, Integer, Password, Permissions, Text, TextList
from trellis.errors import Fault, Refused, refuse_faults
from trellis.kinds import KINDS
from trellis.languages import ENGLISH

pytestmark = pytest.mark.either_engine

_OPTIONS = {"view": "See it.", "add": "Add to it."}
_FIELDS = (
    Field("name", Text(20, 1), "Its name.", required=True),
    Field("minContent", Integer(), "How many.", default=3),
    Field("open", Boolean(), "Whether.", default=True),
    Field("type", Choice({"one": "The one.", "two": "The other."}), "Which.", default="two"),
    Field("groups", Groups(), "Who.", default="*"),
    Field("permissions", Permissions(_OPTIONS), "Who may."),
    Field("secret", Password(), "Hush."),
    Field("addresses", TextList(), "From where."),
    Field("id", Integer(), "Its id.", read_only=True),
)


def _typed(*pairs: tuple[str, str]) -> Form:
    return Form(_FIELDS, Submitted(pairs), widgets={"addresses": "lines"}, groups=((2, "Guests"), (3, "Members")))


def test_an_empty_form_shows_the_defaults() -> None:
    form = Form(_FIELDS)
    assert [form[name].value for name in ("name", "minContent", "open", "type")] == ["", "3", True, "two"]
    assert form["groups"].chosen == ("*",)
    assert "id" not in form.controls


@pytest.mark.parametrize("name", [*(f.name for f in _FIELDS), "nothing"])
@pytest.mark.parametrize("option", ["view", "", "none.such"])
def test_a_name_that_is_sent_whole_and_in_parts_is_refused_at_most(name: str, option: str) -> None:
    pairs = ((name, ""), (f"{name}.{option}", "*"))
    for sent in (pairs, pairs[::-1]):
        with pytest.raises(Refused) as refused:
            _typed(*sent).raw()
        assert {fault.message for fault in refused.value.faults} == {"UNKNOWN_PARAMETER"}


def test_what_was_typed_is_handed_on_as_operations_take_it() -> None:
    form = _typed(
        ("csrf", "x"),
        ("name", "A\r\nB"),
        ("open", "0"),
        ("open", "1"),
        ("groups", ""),
        ("groups", "2"),
        ("groups", "3"),
        ("permissions.view", "*"),
        ("permissions.view", ""),
        ("permissions.add", ""),
        ("addresses", "192.0.2.1\n\n 192.0.2.2 "),
    )
    assert form.raw() == {
        "name": "A\nB",
        "open": "1",
        "groups": ["2", "3"],
        "permissions": {"view": "*", "add": []},
        "addresses": ["192.0.2.1", "192.0.2.2"],
    }


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("1,000", "1000"),
        ("1.000", "1000"),
        (" 12 345 678 ", "12345678"),
        ("1\N{NARROW NO-BREAK SPACE}000", "1000"),
        ("-1,000", "-1000"),
    ],
)
def test_a_number_may_be_typed_as_lists_show_it(typed: str, number: str) -> None:
    form = _typed(("minContent", typed))
    assert form.raw() == {"minContent": number}
    assert form["minContent"].value == typed


@pytest.mark.parametrize("typed", ["1,00", "1.5", "1,000.000", ",000", "1000,000", "1,000 forums", "", "many"])
def test_nothing_else_becomes_a_number(typed: str) -> None:
    assert _typed(("minContent", typed)).raw() == {"minContent": typed}


def test_an_unticked_box_is_false() -> None:
    assert _typed(("open", "0")).raw() == {"open": "0"}
    assert _typed(("open", "0"))["open"].value is False


def test_an_empty_password_leaves_it_as_it_is_and_none_is_sent_back() -> None:
    assert _typed(("secret", "")).raw() == {}
    assert _typed(("secret", "hush")).raw() == {"secret": "hush"}
    assert _typed(("secret", "hush"))["secret"].value == ""


@pytest.mark.parametrize("name", ["id", "strange", "permissions.view.x", "name.x"])
def test_what_is_not_on_the_form_is_refused(name: str) -> None:
    if name == "permissions.view.x":
        assert _typed((name, "1")).raw() == {"permissions": {"view.x": ["1"]}}  # the type refuses it by name
        return
    with pytest.raises(Refused, match="no field"):
        _typed((name, "1")).raw()


def test_faults_stand_at_their_fields_by_their_labels() -> None:
    refused = refuse_faults(
        Fault("minContent", "INVALID_VALUE", "minContent must be a whole number."),
        Fault("permissions.view", "INVALID_GROUP", "permissions.view names groups that do not exist: 9."),
        Fault("elsewhere", "INVALID_VALUE", "elsewhere is wrong."),
    )
    form = _typed(("minContent", "many")).add_refusal(refused)
    assert form["minContent"].fault == "Min content must be a whole number."
    assert form["minContent"].value == "many"
    assert "9" in form["permissions"].fault
    assert [form.field_of(fault) for fault in form.faults] == ["minContent", "permissions", ""]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("language", "told"), [("en", "from 0 to 10,000,000, not 'abc'."), ("de", "von 0 bis 10.000.000 sein, nicht 'abc'.")]
)
def test_a_number_that_may_be_left_out_is_not_said_to_be_null(admin: Visitor, language: str, told: str) -> None:
    admin.client.headers["accept-language"] = language
    assert told in page_text(admin.post("/keys/new", {"name": "Many", "rateLimit": "abc"}))


def test_of_very_many_faults_twenty_are_shown_and_the_others_counted(admin: Visitor, mira: int) -> None:
    unknown = {f"x{number}": "1" for number in range(400)}
    shown = page_text(admin.post(f"/administrators/{mira}", {"name": "Mira", "login": "mira"} | unknown))
    assert "400 fields need another look" in shown
    assert shown.count("This form has no field") == 20
    assert "… and 380 more." in shown


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_every_kind_can_be_drawn(admin: Visitor, kind: object) -> None:
    accepted = kind.accepted  # type: ignore[attr-defined]  # the parameter is a kind
    environment = admin.client.app.view.environment  # type: ignore[attr-defined]  # the panel
    template = environment.from_string(
        '{% import "macros.html" as ui with context %}{{ ui.faults(form) }}{{ ui.form_fields(form) }}'
    )
    text = template.render(form=Form(accepted, groups=((2, "Guests"),)), csrf="", title="", language=ENGLISH)
    for field in accepted:
        if not field.read_only:
            assert f'name="{field.name}' in text
