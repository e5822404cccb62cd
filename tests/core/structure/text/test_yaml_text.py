"""Documents that are written as YAML are the same for the parsers of other programs, whichever version of YAML these read."""

import io
from collections.abc import Callable
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from trellis.core.structure import read_document, write_yaml


def _load_with(version: tuple[int, int]) -> Callable[[str], Any]:
    def load(text: str) -> Any:
        parser = YAML(typ="safe", pure=True)
        parser.version = version
        return parser.load(io.StringIO(text))

    return load


LOADERS: Final[dict[str, Callable[[str], Any]]] = {
    "Trellis": read_document,
    "PyYAML (1.1)": yaml.safe_load,
    "ruamel (1.1)": _load_with((1, 1)),
    "ruamel (1.2)": _load_with((1, 2)),
}
TEXTS: Final = (
    *("0o17", "+0o17", "0O17", "017", "0x1F", "-0x1f", "0b101", "08", "0_8", "1_000", "1_", "1_0e5", "-_", "190:20:30", "1:30"),
    *("1", "1.5", ".5", "1.", "1e5", "1E+5", "-.5e-3", "1.2.3", "190:20:30.15", "0", "-0", "+1"),
    *(".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN"),
    *("yes", "No", "ON", "off", "y", "N", "true", "FALSE"),
    *("~", "null", "Null", "NULL", ""),
    *("2026-11-22", "2026-1-2", "2026-11-22T10:00:00Z", "2026-11-22t10:00:00.5+01:00", "2026-11-22 10:00:00 -5"),
    *("<<", "=", "-", "?", "a: b", "# c", "*a", "&a", "!t", "%TAG", "@a", "`a`", " a ", "a\nb\n", "'", '"', "é", "News"),
)


@pytest.mark.parametrize("name", LOADERS)
def test_text_is_text_for_every_parser(name: str) -> None:
    document = {"texts": [*TEXTS], "entries": [{"name": text} for text in TEXTS], "others": [None, True, 12, -1, {}, []]}
    assert LOADERS[name](write_yaml(document, [])) == document


@given(st.text("0123456789+-._:eEoxbTtZ ~=<infaINFyn", max_size=12))
def test_what_resembles_a_number_or_a_date_is_text_for_every_parser(text: str) -> None:
    for name, load in LOADERS.items():
        assert load(write_yaml({"name": text}, [])) == {"name": text}, name
