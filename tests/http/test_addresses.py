"""The ways in which older clients write the addresses of the API."""

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.http.addresses import rewrite_address


def rewritten(target: str) -> str:
    """Return the address that a request for a target has, once it is rewritten."""
    path, mark, query = target.partition("?")
    scope: dict[str, Any] = {"path": path, "raw_path": path.encode(), "query_string": query.encode()}
    rewrite_address(scope, "/api")
    assert scope["raw_path"] == scope["path"].encode()
    return str(scope["path"]) + (mark and f"?{scope['query_string'].decode()}")


@pytest.mark.parametrize(
    ("target", "plain"),
    [
        ("/api/index.php?/forums/forums", "/api/forums/forums?"),
        ("/api/index.php?/forums/forums&page=2", "/api/forums/forums?page=2"),
        ("/api/index.php?/forums/forums?page=2", "/api/forums/forums?page=2"),
        ("/api/index.php?/forums/forums?page=2&perPage=5", "/api/forums/forums?page=2&perPage=5"),
        ("/api/index.php?/forums/forums&page=2?perPage=5", "/api/forums/forums?page=2&perPage=5"),
        ("/api/index.php?/forums/forums/7/&title=A%2FB", "/api/forums/forums/7/?title=A%2FB"),
        ("/api/index.php?%2Fforums%2fforums&page=2", "/api/forums/forums?page=2"),
        ("/api/index.php?%2Fforums%2Fforums=&page=2", "/api/forums/forums?page=2"),
        ("/api/index.php?/forums/forums/external/YWJj=&page=2", "/api/forums/forums/external/YWJj=?page=2"),
        ("/api/index.php?//forums//forums&page=2", "/api/forums/forums?page=2"),
        ("/api/index.php/?/forums/forums&page=2", "/api/forums/forums?page=2"),
        ("/api/index.php/forums/forums?page=2", "/api/forums/forums?page=2"),
        ("/api/index.php/forums/forums/", "/api/forums/forums/"),
        ("/api//forums///forums//7", "/api/forums/forums/7"),
        ("//api/forums/forums", "/api/forums/forums"),
        ("/api//index.php?/forums/forums", "/api/forums/forums?"),
        ("/api/forums/forums?page=2?perPage=5?permissions[view]=*", "/api/forums/forums?page=2&perPage=5&permissions[view]=*"),
    ],
)
def test_an_address_is_what_it_would_be_if_it_were_written_plainly(target: str, plain: str) -> None:
    assert rewritten(target) == plain
    assert rewritten(plain) == plain


@pytest.mark.parametrize(
    "target",
    [
        "/api/forums/forums?page=2&perPage=5",
        "/api/forums/forums?search=what?",
        "/api/forums/forums?search=what?&page=2",
        "/api/forums/forums?redirect_url=https://wiki.example/?page=1",
        "/api/index.php",
        "/api/index.php?",
        "/api/index.php?page=2",
        "/api/forums/index.php?/forums/forums",
        "/apis//index.php?/forums/forums",
        "/admin//keys",
        "/admin/index.php?/api/forums",
        "//admin//keys",
        "//healthz",
        "/",
        "//",
        "/api",
    ],
)
def test_what_is_written_plainly_or_is_nothing_of_the_api_stays(target: str) -> None:
    assert rewritten(target) == target


_PIECES = st.sampled_from(
    [
        "/",
        "//",
        "api",
        "/api",
        "index.php",
        "/index.php",
        "?",
        "&",
        "=",
        "..",
        "%2F",
        "%2e",
        "%",
        "\x00",
        "\xff",
        "admin",
        "a=b",
        "://",
    ]
)


@given(st.lists(_PIECES, max_size=9), st.lists(_PIECES, max_size=9))
def test_whatever_is_written_stays_or_is_below_the_prefix(path: list[str], query: list[str]) -> None:
    raw = ("/" + "".join(path)).replace("?", "").encode("latin-1")
    scope: dict[str, Any] = {
        "path": unquote(raw.decode("latin-1")),
        "raw_path": raw,
        "query_string": "".join(query).encode("latin-1"),
    }
    before = dict(scope)
    rewrite_address(scope, "/api")
    if scope["raw_path"] == before["raw_path"]:
        assert scope["path"] == before["path"]
    else:
        assert scope["raw_path"].startswith(b"/api/")
        assert scope["path"].startswith("/api/")
        assert b"//" not in scope["raw_path"]
    if not raw.lstrip(b"/").startswith(b"api/"):
        assert scope == before


@pytest.mark.parametrize("target", ["/api/index.php?/../admin", "/api/index.php/../admin/keys", "/api//..//admin"])
def test_no_step_leads_out_of_the_api(target: str) -> None:
    assert rewritten(target).startswith("/api/../admin")
