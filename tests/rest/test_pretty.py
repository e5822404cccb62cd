"""`?pretty`, and the line feed at the end of every answer."""

import orjson
import pytest

from tests.api_client import ApiClient
from tests.community import Community

pytestmark = pytest.mark.either_engine

FORUMS = "/forums/forums"


def indent(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


@pytest.mark.parametrize("mark", ["pretty", "pretty=", "pretty=1", "pretty=true", "perPage=2&pretty"])
def test_reads_are_indented_and_else_the_same(api: ApiClient, community: Community, mark: str) -> None:
    for path in (FORUMS, f"{FORUMS}/{community.news}", "/core/hello"):
        others = "perPage=2" if "perPage" in mark and path == FORUMS else ""
        marks = mark if path == FORUMS else mark.rpartition("&")[2]
        plain, pretty = api.get(f"{path}?{others}"), api.get(f"{path}?{marks}")
        assert plain.content == orjson.dumps(plain.json()) + b"\n"
        assert pretty.content == indent(plain.json())
        assert pretty.headers["etag"] == plain.headers["etag"]
        assert api.get(f"{path}?{marks}").content == pretty.content  # from memory


@pytest.mark.parametrize("mark", ["pretty=0", "pretty=false"])
def test_it_can_be_said_that_they_are_not(api: ApiClient, community: Community, mark: str) -> None:
    path = f"{FORUMS}/{community.news}"
    assert api.get(f"{path}?{mark}").content == api.get(path).content


def test_writes_and_refusals_are_indented(api: ApiClient, community: Community) -> None:
    made = api.post(f"{FORUMS}?pretty", {"name": "Garden"})
    assert (made.status_code, made.content) == (201, indent(made.json()))
    for refused in (
        api.post(f"{FORUMS}?pretty", {"nmae": "Garden"}),
        api.get(f"{FORUMS}/999999?pretty"),
        api.get("/nowhere?pretty"),
        api.get(f"{FORUMS}?pretty", headers={"Authorization": "Bearer trl_no"}),
    ):
        assert refused.status_code >= 400
        assert refused.content == indent(refused.json())
    assert api.delete(f"{FORUMS}/{community.news}?pretty&deleteChildrenOrMove=-1").content == b"null\n"


@pytest.mark.parametrize("mark", ["pretty=yes", "pretty=2", "pretty&pretty", "Pretty", "pretty[a]=1", "prettier"])
def test_anything_else_is_refused_like_any_parameter_that_there_is_not(api: ApiClient, community: Community, mark: str) -> None:
    assert api.get(f"{FORUMS}/{community.news}?{mark}").status_code == 400
