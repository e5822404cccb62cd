"""Bodies of every kind that is read, and what is refused."""

import encodings
import gzip
import json
import zlib
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.community import CATALOGUE, MEMBERS, Community
from tests.database_state import DatabaseState
from trellis.errors import Refused
from trellis.rest.bodies import parse_body, parse_query

pytestmark = pytest.mark.either_engine

JSON = b"application/json"
FORM = b"application/x-www-form-urlencoded"
FORUMS = "/forums/forums"


def read(content_type: bytes, body: bytes | str) -> dict[str, Any]:
    return parse_body(content_type, body.encode() if isinstance(body, str) else body, CATALOGUE.find("forums.create"))


def multipart(*parts: tuple[str, str], boundary: str = "x-y") -> tuple[bytes, bytes]:
    """Write a multipart body: pairs of header parameters and text."""
    pieces = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {names}\r\n\r\n{text}\r\n" for names, text in parts)
    return f"multipart/form-data; boundary={boundary}".encode(), f"{pieces}--{boundary}--\r\n".encode()


WANTED = {"name": "Gated", "permissions": {"view": "*", "read": ["3", "4"], "add": ["3"]}, "minContent": "2"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (JSON, json.dumps(WANTED)),
        (b"Application/JSON; charset=utf-8", json.dumps(WANTED)),
        (b"application/vnd.api+json", json.dumps(WANTED)),
        (JSON, b"\xef\xbb\xbf" + json.dumps(WANTED).encode()),
        (JSON, f"\r\n\t {json.dumps(WANTED)} \n"),
        (FORM, "name=Gated&permissions[view]=*&permissions[read][0]=3&permissions[read][1]=4&permissions[add][]=3&minContent=2"),
        (FORM, "permissions[read][1]=4&permissions[read][0]=3&minContent=2&name=Gated&permissions[view]=*&permissions[add][7]=3"),
        (
            FORM,
            "name=G%61ted&permissions%5Bview%5D=%2A&permissions[read][]=3&permissions[read][]=4&permissions[add][]=3&minContent=2",
        ),
        (FORM, json.dumps(WANTED)),
        (FORM, urlencode({"json": json.dumps(WANTED)})),
        (FORM, urlencode({"data": f" {json.dumps(WANTED)}"})),
        multipart(
            ('name="name"', "Gated"),
            ('name="permissions[view]"', "*"),
            ('name="permissions[read][0]"', "3"),
            ('name="permissions[read][1]"', "4"),
            ('name="permissions[add][]"', "3"),
            ('name="minContent"', "2"),
        ),
        multipart(('name="payload"', json.dumps(WANTED))),
    ],
)
def test_the_same_comes_out_of_every_encoding(content_type: bytes, body: bytes | str) -> None:
    assert read(content_type, body) == WANTED


@pytest.mark.parametrize("content_type", [b"", JSON, FORM, b"text/plain", b"multipart/form-data; boundary=x"])
def test_an_empty_body_is_an_empty_object_of_whatever_type(content_type: bytes) -> None:
    assert read(content_type, b"") == read(content_type, b" \r\n") == {}


@pytest.mark.parametrize(
    "content_type",
    [
        b"",
        b"text/plain",
        b"text/json",
        b"application/xml",
        b"application/octet-stream",
        b"image/png",
        b"multipart/form-data",
        b"\xff",
        b"json",
        b"x" * 999,
    ],
)
def test_a_body_of_another_type_is_not_read(content_type: bytes) -> None:
    with pytest.raises(Refused, match=r"^UNSUPPORTED_MEDIA_TYPE: .*application/json") as refused:
        read(content_type, b'{"name": "News"}')
    assert len(refused.value.detail) < 400


def test_a_form_in_parts_without_its_boundary_is_refused_with_what_to_do() -> None:
    with pytest.raises(Refused, match=r"^UNSUPPORTED_MEDIA_TYPE: .*without its boundary\. Let your client set"):
        read(b"multipart/form-data", multipart(('name="name"', "A"))[1])
    content_type, body = multipart(('name="name"', "A"))
    assert read(content_type.replace(b"boundary", b"Boundary"), body) == {"name": "A"}


def test_a_text_with_plus_and_percent_signs_is_decoded_once() -> None:
    assert read(FORM, "name=a+b%2Bc%2525") == parse_query(b"name=a+b%2Bc%2525") == {"name": "a b+c%25"}
    assert read(FORM, "name=%C3%A9%F0%9F%8C%8D&empty=") == {"name": "é\U0001f30d", "empty": ""}
    assert read(*multipart(('name="name"', "a+b%2B é"))) == {"name": "a+b%2B é"}


def test_a_form_may_hold_utf_8_that_is_not_percent_encoded() -> None:
    """As curl sends it: -d 'name=Überblick'."""
    assert read(FORM, "name=Über+%C3%BCblick %26 \U0001f30d&größe=2") == {"name": "Über üblick & \U0001f30d", "größe": "2"}


def test_a_query_is_read_like_a_form() -> None:
    assert parse_query(b"") == {}
    assert parse_query(b"ids[]=1&ids[]=2&x[y][z]=3&flag") == {"ids": ["1", "2"], "x": {"y": {"z": "3"}}, "flag": ""}


def test_numbered_and_unnumbered_elements_make_one_list() -> None:
    assert read(FORM, "ids[1]=3&ids[]=4&ids[]=5") == parse_query(b"ids[1]=3&ids[]=4&ids[]=5") == {"ids": ["3", "4", "5"]}
    assert read(FORM, "a[1][b]=1&a[][b]=2") == {"a": [{"b": "1"}, {"b": "2"}]}


def test_one_field_among_several_is_not_the_whole_body() -> None:
    assert read(FORM, urlencode({"json": "{}", "name": "News"})) == {"json": "{}", "name": "News"}
    assert read(FORM, urlencode({"name": '{"a": 1}'})) == {"name": '{"a": 1}'}


MALFORMED_JSON = [
    b"{",
    b"}",
    b'{"name": }',
    b'{"name": "News",}',
    b"{'name': 'News'}",
    b'{"name": "News"} trailing',
    b"name=News",
    b"[]",
    b"null",
    b"true",
    b"42",
    b'"News"',
    b'{"name": NaN}',
    b'{"name": Infinity}',
    b'{"name": -Infinity}',
    b'{"name": "A", "name": "A"}',
    b'{"permissions": {"view": "*", "view": []}}',
    b'{"permissions": {"view": [{"a": 1, "a": 2}]}}',
    b'{"name": "\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"permissions": {"view": ["\\udc00\\ud800"]}}',
    b'{"name": "a\x00b"}',
    b'{"name": "a\nb"}',
    b'{"name": "\xff"}',
    b'{"name": "\xed\xa0\x80"}',
    b'{"name": "\xc0\x80"}',
    '{"name": "News"}'.encode("utf-16"),
    b"\x00",
    b'{"theme": ' + b"9" * 5000 + b"}",
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b'{"a":' * 10_000,
    b"[" * 500_000,
]


@pytest.mark.parametrize("body", MALFORMED_JSON, ids=lambda body: repr(body[:24]))
def test_json_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: ") as refused:
        read(JSON, body)
    assert len(refused.value.detail) < 400


MALFORMED_FORMS = [
    b"name=\xff",
    b"name=%ff",
    b"name=%ED%A0%80",
    b"name=A&name=B",
    b"name=A&name=A",
    b"a=1&a[]=2",
    b"a[]=2&a=1",
    b"a[b]=1&a[b][c]=2",
    b"a[0]=1&a[0]=2",
    b"a[b][c][d][e][f]=1",
    b"a[[b]]=1",
    b"a[b]c[d]=1",
    b"&".join(b"a%d=1" % number for number in range(1001)),
    b"a" + b"[b]" * 10_000 + b"=1",
]


@pytest.mark.parametrize("body", MALFORMED_FORMS, ids=lambda body: repr(body[:24]))
def test_a_form_that_cannot_be_read_is_refused_in_body_and_query_alike(body: bytes) -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: ") as in_body:
        read(FORM, body)
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: ") as in_query:
        parse_query(body)
    assert max(len(in_body.value.detail), len(in_query.value.detail)) < 400


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ("name=A&name=B", "The parameter 'name' is sent more than once. Send it once, or the values of a list as name[]."),
        ("a=1&a[]=2", "The parameter 'a[]' is sent both as a value and as a list. Send only one of them."),
        ("a[[b]]=1", "The brackets in the parameter 'a[[b]]' cannot be read. Write them as in permissions[view][]=3."),
    ],
)
def test_a_form_is_refused_with_what_to_send(body: str, advice: str) -> None:
    with pytest.raises(Refused) as refused:
        read(FORM, body)
    assert refused.value.detail == advice


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        multipart(('name="avatar"; filename="a.png"', "PNG")),
        multipart(('filename="a.png"', "PNG")),
        multipart(("", "nameless")),
        multipart(('name="name"', "A"), ('name="name"', "B")),
        multipart(*[(f'name="a{number}"', "1") for number in range(1001)]),
        (b"multipart/form-data; boundary=other", multipart(('name="name"', "A"))[1]),
        (b"multipart/form-data; boundary=", multipart(('name="name"', "A"))[1]),
        (b"multipart/form-data; boundary=" + b"x" * 5000, b"--x\r\n"),
        (b"multipart/form-data; boundary=x-y", b'--x-y\r\nContent-Disposition: form-data; name="name"\r\n\r\n\xff\r\n--x-y--\r\n'),
        (b"multipart/form-data; boundary=x-y", b"--x-y\r\nno colon\r\n\r\nA\r\n--x-y--\r\n"),
        (b"multipart/form-data; boundary=x-y", b'--x-y\r\nContent-Disposition: form-data; name="name"\r\n\r\nunended'),
        (b"multipart/form-data; boundary=x-y", b'--x-y\r\nContent-Disposition: form-data; name="name"\r\n\r\nunended\r\n--x-y\r\n'),
        (b"multipart/form-data; boundary=x-y", b"not multipart at all"),
    ],
)
def test_a_multipart_body_that_cannot_be_read_is_refused(content_type: bytes, body: bytes) -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: "):
        read(content_type, body)


def name_in_parts(charset: str, name: bytes) -> tuple[bytes, bytes]:
    """Write a multipart body whose one text is in a charset."""
    return f"multipart/form-data; charset={charset}; boundary=x-y".encode(), (
        b'--x-y\r\nContent-Disposition: form-data; name="name"\r\n\r\n%b\r\n--x-y--\r\n' % name
    )


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf-8"', "iso-8859-1", "ISO-8859-1", "windows-1252"])
def test_a_multipart_body_is_read_in_its_charset(charset: str) -> None:
    assert read(*name_in_parts(charset, "Café".encode(charset.strip('"')))) == {"name": "Café"}


@pytest.mark.parametrize("charset", ["utf-8", "us-ascii", "windows-1252"])
def test_a_multipart_body_that_is_not_in_its_charset_is_not_read_in_another_one(charset: str) -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: The body is not valid "):
        read(*name_in_parts(charset, b"Caf\xe9\x81"))


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "utf-7", "utf-16", "base64", "x" * 40, "é", ""])
def test_a_charset_that_only_python_would_read_is_refused(charset: str) -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: .*Send the form in UTF-8"):
        read(*name_in_parts(charset, b"a-" + b"b" * 1000))


def test_charsets_that_callers_make_up_take_no_memory() -> None:
    known = len(encodings._cache)
    for number in range(50):
        with pytest.raises(Refused):
            read(*name_in_parts(f"x-{number}", b"News"))
    assert len(encodings._cache) == known


def test_a_multipart_body_has_no_more_parameters_than_any_client_sends() -> None:
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: .*semicolons"):
        read(*multipart((f'name="{";" * 4000}"', "A")))
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: .*Content-Type"):
        read(b'multipart/form-data; x="' + b";" * 60_000 + b'"; boundary=x-y', multipart(('name="name"', "A"))[1])
    assert read(*multipart(('name="a;b"', "A;B"))) == {"a;b": "A;B"}


def test_half_a_character_in_a_parameter_is_refused_and_no_failure(api: ApiClient) -> None:
    content_type, body = multipart(('name="name"', "News"), ('name="n\\ud800"', "1"))
    headers = {"Content-Type": f"{content_type.decode()}; charset=unicode_escape", "Idempotency-Key": "once"}
    read_refusal(api.post(FORUMS, content=body, headers=headers), 400, "MALFORMED_REQUEST")


# --- over REST ----------------------------------------------------------------------------------------------------


def test_forms_make_the_same_record_as_json(api: ApiClient, community: Community, database: DatabaseState) -> None:
    wanted = {
        "name": "Gated",
        "permissions": {"view": "*", "read": [MEMBERS, community.patrons]},
        "canSeeOthers": False,
        "parentId": None,
    }
    form = {
        "name": "Gated",
        "permissions[view]": "*",
        "permissions[read][0]": MEMBERS,
        "permissions[read][1]": community.patrons,
        "canSeeOthers": "0",
        "parentId": "",
    }
    with database.new_events() as new_events:
        answers = [
            api.post(FORUMS, wanted),
            api.post(FORUMS, data=form),
            api.post(FORUMS, files={name: (None, str(value)) for name, value in form.items()}),
            api.post(FORUMS, data={"body": json.dumps(wanted)}),
            api.post(FORUMS, data={"name": "Gated", "permissions": json.dumps(wanted["permissions"]), "canSeeOthers": "false"}),
            api.post(FORUMS, params=form),
        ]
    assert [answer.status_code for answer in answers] == [201] * 6
    own = {"id", "url", "position"}
    records = [{name: value for name, value in answer.json().items() if name not in own} for answer in answers]
    assert records == records[:1] * 6
    assert len(new_events()) == 6


def test_parameters_of_the_query_stand_under_those_of_the_body(api: ApiClient, community: Community) -> None:
    made = api.post(f"{FORUMS}?name=Query&minContent=3", {"name": "Body"}).json()
    assert (made["name"], made["minContent"]) == ("Body", 3)
    changed = api.post(f"{FORUMS}/{made['id']}?theme=5&minContent=9", data={"minContent": "4"}).json()
    assert (changed["theme"], changed["minContent"]) == (5, 4)


@pytest.mark.parametrize(("query", "body"), [("title=Query", {"name": "Body"}), ("name=Query", {"title": "Body"})])
def test_the_body_counts_under_whatever_name_the_query_has_the_same_field(api: ApiClient, query: str, body: dict[str, str]) -> None:
    assert [api.post(f"{FORUMS}?{query}", **sent).json().get("name") for sent in ({"json": body}, {"data": body})] == [
        "Body",
        "Body",
    ]


def test_a_field_sent_under_two_of_its_names_is_refused(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        assert read_field_errors(api.post(FORUMS, {"name": "A", "title": "B"})) == {"name": "INVALID_VALUE"}
        assert read_field_errors(api.post(FORUMS, {"name": "A", "minContent": 1, "min_content": 1})) == {
            "minContent": "INVALID_VALUE"
        }


def test_each_body_that_cannot_be_read_changes_nothing(api: ApiClient, community: Community, database: DatabaseState) -> None:
    for path in (FORUMS, f"{FORUMS}/{community.news}"):
        for content_type, bodies in ((JSON, MALFORMED_JSON), (FORM, MALFORMED_FORMS)):
            with database.unchanged():
                for body in bodies:
                    answer = api.post(path, content=body, headers={"Content-Type": content_type.decode()})
                    read_refusal(answer, 400, "MALFORMED_REQUEST")
        with database.unchanged():
            read_refusal(
                api.post(path, content=b"<name>News</name>", headers={"Content-Type": "text/xml"}), 415, "UNSUPPORTED_MEDIA_TYPE"
            )
            read_refusal(api.post(path, content=b'{"name": "News"}'), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert api.get(f"{FORUMS}/{community.news}").json()["name"] == "News"


@pytest.mark.parametrize(
    ("path", "example"),
    [
        (FORUMS, '{"name": '),
        (f"{FORUMS}/order", '{"ids": [1]}'),
        ("/core/batch", '{"operations": [{"operation": '),
        ("/core/structure/plan", '{"document": {"format": '),
        ("/core/webhooks", '{"url": '),
    ],
)
def test_a_body_of_another_form_is_refused_with_one_of_the_operation(api: ApiClient, path: str, example: str) -> None:
    for sent in ({"json": [{"name": "News"}]}, {"json": "News"}):
        assert f"a JSON object, such as {example}" in read_refusal(api.post(path, **sent), 400, "MALFORMED_REQUEST")["detail"]
    yaml = api.post(path, content=b"name: News", headers={"Content-Type": "application/yaml"})
    assert f"a JSON object such as {example}" in read_refusal(yaml, 415, "UNSUPPORTED_MEDIA_TYPE")["detail"]
    yaml = api.post(path, content=b"name: News", headers={"Content-Type": "application/json"})
    assert f"a JSON object, such as {example}" in read_refusal(yaml, 400, "MALFORMED_REQUEST")["detail"]


def test_a_structure_document_as_the_body_is_refused_with_how_to_send_it(api: ApiClient) -> None:
    for kind, status in (("application/json", 400), ("application/yaml", 415)):
        refused = api.post("/core/structure/plan", content=b"format: trellis/1\nname: clubs\n", headers={"Content-Type": kind})
        assert refused.status_code == status
        assert "document: The structure document, as text (YAML, JSON) or as an object." in refused.json()["detail"]


def test_a_delete_reads_its_body_like_every_write(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        read_refusal(
            api.delete(f"{FORUMS}/{community.betas}", content=b"{", headers={"Content-Type": "application/json"}),
            400,
            "MALFORMED_REQUEST",
        )
        read_refusal(
            api.delete(f"{FORUMS}/{community.betas}", content=b"x", headers={"Content-Type": "text/plain"}),
            415,
            "UNSUPPORTED_MEDIA_TYPE",
        )


def test_the_body_of_a_read_is_not_looked_at(api: ApiClient, community: Community) -> None:
    answer = api.get(f"{FORUMS}/{community.news}", content=b"\x00", headers={"Content-Type": "image/png"})
    assert answer.status_code == 200


def test_a_file_in_a_form_is_refused_with_what_to_do() -> None:
    for parts in ([('name="name"; filename="name.txt"', "News")], [('name="name"', "News"), ('name="x"; filename=""', "")]):
        with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: The form contains a file\. Send each value as a plain field"):
            read(*multipart(*parts))


@pytest.mark.parametrize("content_type", [JSON, FORM])
def test_a_compressed_body_is_refused_with_what_to_do(content_type: bytes) -> None:
    with pytest.raises(Refused, match="compressed by gzip"):
        read(content_type, gzip.compress(b'{"name": "News"}'))


@pytest.mark.parametrize("coding", ["gzip", "DEFLATE", "br", "zstd"])
@pytest.mark.parametrize("path", [FORUMS, "/core/batch"])
def test_a_body_that_is_announced_as_compressed_is_refused(api: ApiClient, database: DatabaseState, coding: str, path: str) -> None:
    body = zlib.compress(b'{"name": "News"}')
    with database.unchanged():
        headers = {"Content-Type": "application/json", "Content-Encoding": coding}
        problem = read_refusal(api.post(path, content=body, headers=headers), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert problem["detail"] == f"The body is compressed by {coding.lower()}. Send it uncompressed, without Content-Encoding."


@pytest.mark.parametrize(
    ("sent", "named"),
    [(["gzip, br"], "gzip, br"), (["gzip", "br"], "gzip, br"), (["Identity,GZip"], "gzip"), (["", ",x-gzip ,"], "x-gzip")],
)
def test_a_body_is_refused_if_one_of_several_codings_compresses_it(
    api: ApiClient, database: DatabaseState, sent: list[str], named: str
) -> None:
    headers = [("Content-Type", "application/json"), *(("Content-Encoding", coding) for coding in sent)]
    with database.unchanged():
        problem = read_refusal(api.post(FORUMS, content=b"\x8b\x02\x80", headers=headers), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert problem["detail"] == f"The body is compressed by {named}. Send it uncompressed, without Content-Encoding."


@pytest.mark.parametrize("coding", ["", "identity", "utf-8", "Identity, identity"])
def test_a_body_that_is_not_compressed_may_say_so(api: ApiClient, coding: str) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    assert api.post(FORUMS, content=b'{"name": "News"}', headers=headers).status_code == 201
