"""The results of tools, encoded."""

import orjson
import pytest

from trellis.core.gate import Result
from trellis.core.operation import RawText
from trellis.core.verbs import Verb
from trellis.errors import Refused
from trellis.mcp.results import MOST_BYTES, encode_read, encode_write


def test_a_text_is_bounded_in_bytes_and_not_in_characters() -> None:
    assert len(encode_read(RawText("é" * (MOST_BYTES // 2), "application/yaml")).body) > MOST_BYTES
    with pytest.raises(Refused, match="PAGE_TOO_LARGE"):
        encode_read(RawText("é" * (MOST_BYTES // 2 + 1), "application/yaml"))


def test_a_call_that_waits_for_approval_returns_what_was_proposed() -> None:
    verb = Verb(name="propose", method="POST", status=202, answer="The proposal. Nothing was changed.")
    told = orjson.loads(encode_write(verb, Result({"id": 7, "operation": "forums.delete"}, event=3, verb=verb)))
    assert told["structuredContent"] == {"id": 7, "operation": "forums.delete"}
    assert (told["_meta"]["trellis/proposal"], told["resultType"]) == (7, "complete")
    assert "isError" not in told
    assert "The proposal. Nothing was changed." in [one["text"] for one in told["content"]]
