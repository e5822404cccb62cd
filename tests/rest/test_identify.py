"""Every form in which a key may be sent."""

import base64

import pytest

from tests.api_client import CLIENT_ADDRESS, ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import MakeKey
from trellis.errors import Refused
from trellis.http.api.identify import extract_key

KEY = "trl_abcdefgh_01234567890123456789012345678901ABCDEF"


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {KEY}"},
        {"Authorization": f"bearer {KEY}"},
        {"Authorization": f"  BEARER   {KEY}  "},
        {"Authorization": basic(f"{KEY}:")},
        {"Authorization": basic(KEY)},
        {"Authorization": basic(f"{KEY}:a password that means nothing")},
        {"Authorization": basic(KEY).rstrip("=")},
        {"Authorization": basic(f"{KEY}:").replace("Basic", "bAsIc")},
        {"Authorization": basic(f"{KEY}:").replace("Basic", "Basic ")},
        {"Authorization": basic(f"{KEY}:") + ":"},
        {"X-API-Key": KEY},
        {"X-Api-Key": f" {KEY} "},
        {"Authorization": f"Bearer {KEY}", "X-API-Key": "another"},
        {"Authorization": "Digest username=x", "X-API-Key": KEY},
        {"Authorization": "Bearer a-token-of-somebody-else", "X-API-Key": KEY},
        {"Authorization": basic("site:password"), "X-API-Key": KEY},
    ],
)
def test_a_key_is_found_in_every_form_of_the_contract(headers: dict[str, str]) -> None:
    raw = {name.lower().encode(): value.encode() for name, value in headers.items()}
    assert extract_key(raw, b"page=1") == (KEY, False)
    assert extract_key(raw, b"page=1&key=another") == (KEY, True)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": KEY},
        {"Authorization": f"Token {KEY}"},
        {"X-API-Key": ""},
        {"Cookie": f"key={KEY}"},
    ],
)
def test_what_is_no_form_of_the_contract_is_no_key(headers: dict[str, str]) -> None:
    raw = {name.lower().encode(): value.encode() for name, value in headers.items()}
    with pytest.raises(Refused, match=r"^NO_API_KEY: .*Bearer"):
        extract_key(raw, b"")


@pytest.mark.parametrize("sent", ["Bearer", "Bearer ", "Basic", "Basic !!!", "Basic " + "A" * 5, "Basic Og=="])
def test_credentials_that_hold_no_key_are_a_bad_key(sent: str) -> None:
    assert extract_key({b"authorization": sent.encode()}, b"") == ("", False)


def test_each_form_is_accepted_over_rest(api: ApiClient, community: Community, key: MakeKey) -> None:
    text = key("forums.list")
    for headers in (
        {"Authorization": f"Bearer {text}"},
        {"Authorization": basic(f"{text}:")},
        {"Authorization": basic(text)},
        {"X-API-Key": text},
    ):
        assert api.get("/forums/forums", key=None, headers=headers).status_code == 200
        document = read_refusal(api.get("/forums/forums/1", key=None, headers=headers), 403, "NO_PERMISSION")
        assert document["missingOperation"] == "forums.get"


@pytest.mark.either_engine
def test_no_key_is_asked_for_by_name(api: ApiClient) -> None:
    answer = api.get("/forums/forums", key=None)
    assert read_refusal(answer, 401, "NO_API_KEY")["errorCode"] == "2S290/6"
    assert answer.headers["www-authenticate"] == 'Bearer realm="trellis"'


BAD_KEYS = [
    "",
    "x",
    KEY,
    KEY[:-1],
    KEY + "x",
    KEY.upper(),
    "null",
    "trl_é_",
    "\x80\xff",
    "a" * 8000,
    f"{KEY}, Bearer {KEY}",
    "' OR 1=1 --",
]


def test_every_bad_key_is_answered_alike(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(bad_key_limit=1000)
    good = key("*")
    wrong_secret = good[:20] + ("A" if good[20] != "A" else "B") + good[21:]
    swapped = key("*")[:13] + good[13:]
    answers = [api.get("/forums/forums", key=text, headers={"X-Request-Id": "same"}) for text in (*BAD_KEYS, wrong_secret, swapped)]
    for answer in answers:
        assert read_refusal(answer, 401, "INVALID_API_KEY")["errorCode"] == "3S290/7"
        assert "www-authenticate" in answer.headers
    assert {answer.content for answer in answers} == {answers[0].content}
    twice = [("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {good}")]
    read_refusal(api.get("/forums/forums", key=None, headers=twice), 401, "INVALID_API_KEY")


@pytest.mark.either_engine
def test_a_key_in_the_url_is_refused_unless_the_operator_allows_it(api: ApiClient, community: Community) -> None:
    for path in (f"/forums/forums?key={api.key}", f"/forums/forums?page=1&key={api.key}", "/forums/forums?key=", "/nowhere?key=x"):
        for header in (None, api.key):
            document = read_refusal(api.get(path, key=header), 403, "CANNOT_USE_KEY_AS_URL_PARAM")
            assert document["errorCode"] == "2S290/B"
            assert api.key not in str(document)
    read_refusal(api.post(f"/forums/forums?key={api.key}", {"name": "News"}), 403, "CANNOT_USE_KEY_AS_URL_PARAM")


def test_a_key_in_the_url_works_where_the_operator_allows_it(make_api: MakeApiClient, community: Community, key: MakeKey) -> None:
    api = make_api(key_in_url=True)
    assert api.get(f"/forums/forums?key={api.key}", key=None).status_code == 200
    assert api.get(f"/forums/forums/{community.news}?key={api.key}", key=None).status_code == 200
    assert api.post(f"/forums/forums?key={api.key}", {"name": "By URL"}, key=None).status_code == 201
    assert api.delete(f"/forums/forums/{community.betas}?key={api.key}", key=None).status_code == 200
    read_refusal(api.get("/forums/forums?key=x", key=None), 401, "INVALID_API_KEY")
    read_refusal(api.get("/forums/forums", key=None), 401, "NO_API_KEY")
    nobody = key([])
    read_refusal(api.get(f"/forums/forums?key={api.key}", key=nobody), 403, "NO_PERMISSION")


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["k%65y", "%6bey", "%6Be%79", "ke%79", "%6B%65%79"])
def test_a_key_in_the_url_is_one_however_its_name_is_encoded(make_api: MakeApiClient, community: Community, name: str) -> None:
    refusing, taking = make_api(), make_api(key_in_url=True)
    for path in (f"/forums/forums?{name}={refusing.key}", f"/forums/forums?page=1&{name}="):
        document = read_refusal(refusing.get(path), 403, "CANNOT_USE_KEY_AS_URL_PARAM")
        assert refusing.key not in str(document)
    read_refusal(refusing.post(f"/forums/forums?{name}={refusing.key}", {"name": "No"}), 403, "CANNOT_USE_KEY_AS_URL_PARAM")
    for _ in range(2):  # such an answer is not kept, and one that is kept is not given without a key
        assert taking.get(f"/forums/forums?{name}={taking.key}", key=None).status_code == 200
    read_refusal(taking.get(f"/forums/forums?{name}=x", key=None), 401, "INVALID_API_KEY")
    assert taking.key not in taking.get(f"/forums/forums?perPage=1&{name}={taking.key}", key=None).headers["link"]


@pytest.mark.either_engine
def test_a_parameter_that_only_looks_like_a_key_is_none(api: ApiClient, community: Community) -> None:
    for query in ("akey=1", "KEY=1", "api_key=1", "keys=1", "%4bey=1", "k%2565y=1", "x=key=1"):
        read_refusal(api.get(f"/forums/forums?{query}"), 400, "UNKNOWN_PARAMETER")


def test_a_key_is_good_only_from_its_addresses(api: ApiClient, community: Community, key: MakeKey) -> None:
    text = key("forums.*", addresses=["192.0.2.0/24", "2001:db8::/32", CLIENT_ADDRESS])
    for address in ("192.0.2.1", "192.0.2.255", "2001:db8:ffff::1", "::ffff:192.0.2.7", CLIENT_ADDRESS):
        assert api.get("/forums/forums", key=text, address=address).status_code == 200
    for address in ("192.0.3.1", "2001:db9::1", "::ffff:192.0.3.7", "testclient", "-", ""):
        document = read_refusal(api.get("/forums/forums", key=text, address=address), 403, "IP_ADDRESS_NOT_ALLOWED")
        assert document["errorCode"] == "2S290/8"


def test_a_wrong_address_is_told_only_to_who_has_the_whole_key(api: ApiClient, key: MakeKey) -> None:
    text = key("forums.*", addresses=["192.0.2.1"])
    wrong = text[:-1] + ("0" if text[-1] != "0" else "1")
    read_refusal(api.get("/forums/forums", key=wrong), 401, "INVALID_API_KEY")
    read_refusal(api.get("/forums/forums", key=text), 403, "IP_ADDRESS_NOT_ALLOWED")
