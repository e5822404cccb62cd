"""Reading forms: percent-encoded ones on every page, those of several parts where a page takes them."""

import pytest

from tests.admin.conftest import Visitor, page_text

_PART = '--cut\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
_TYPE = {"content-type": "multipart/form-data; boundary=cut"}


def _send(admin: Visitor, path: str, *parts: tuple[str, str], end: str = "--cut--\r\n") -> tuple[int, str]:
    body = "".join(_PART.format(name, value) for name, value in parts) + end
    response = admin.client.post(f"/admin{path}", content=body.encode(), headers=_TYPE, follow_redirects=False)
    return response.status_code, page_text(response)


def test_a_page_that_takes_several_parts_reads_them(admin: Visitor) -> None:
    status, text = _send(admin, "/structure", ("csrf", admin.csrf), ("document", "format: gardén\r\nname: x"))
    assert status == 400
    assert "line 1: format must be trellis/1, not 'gardén'." in text


def test_another_page_does_not(admin: Visitor, mira: int) -> None:
    status, text = _send(admin, f"/administrators/{mira}", ("csrf", admin.csrf), ("name", "M"))
    assert status == 415
    assert "forms as browsers send them" in text


def test_the_limit_is_told(admin: Visitor) -> None:
    status, text = _send(admin, "/structure", ("document", "x" * (17 * 2**20)))
    assert status == 413
    assert "larger than the limit of 17 MiB" in text


def test_a_percent_encoded_form_stays_small(admin: Visitor) -> None:
    response = admin.post("/structure", {"document": "x" * 2**20})
    assert response.status_code == 413
    assert "larger than the limit of 1 MiB" in page_text(response)


@pytest.mark.parametrize(
    ("parts", "end", "words"),
    [
        ((("document", "x"),), "", "before its closing boundary"),
        (tuple((f"a{i}", "x") for i in range(501)), "--cut--\r\n", "501 fields"),
    ],
)
def test_what_cannot_be_read_is_refused(admin: Visitor, parts: tuple[tuple[str, str], ...], end: str, words: str) -> None:
    status, text = _send(admin, "/structure", *parts, end=end)
    assert status == 400
    assert words in text
