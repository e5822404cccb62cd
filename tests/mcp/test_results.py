"""The results of tools, encoded."""

import orjson

from trellis.core.gate import Result
from trellis.core.verbs import Verb
from trellis.mcp.results import encode_write


def test_a_call_that_waits_for_approval_returns_what_was_proposed() -> None:
    verb = Verb(name="propose", method="POST", status=202, writes=True, answer="The proposal. Nothing was changed.")
    told = orjson.loads(encode_write(verb, Result({"id": 7, "operation": "forums.delete"}, event=3, verb=verb)))
    assert told["structuredContent"] == {"id": 7, "operation": "forums.delete"}
    assert (told["_meta"]["trellis/proposal"], told["resultType"]) == (7, "complete")
    assert "isError" not in told
    assert "The proposal. Nothing was changed." in [one["text"] for one in told["content"]]
