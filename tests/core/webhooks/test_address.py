"""Where webhooks may go: judged by URL and by address."""

from ipaddress import ip_address, ip_network

import pytest

from trellis.core.webhooks.address import NotAllowed, check_address, check_url

CLOSED = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",  # noqa: S104  # judged, not bound to
    "0.1.2.3",
    "10.0.0.5",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "192.88.99.1",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:5",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:5::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
OPEN = ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1"]


@pytest.mark.parametrize("text", CLOSED)
def test_what_is_not_on_the_open_internet_is_closed(text: str) -> None:
    with pytest.raises(NotAllowed, match="not on the public internet"):
        check_address(ip_address(text), ())


@pytest.mark.parametrize("text", OPEN)
def test_what_is_on_the_open_internet_is_open(text: str) -> None:
    check_address(ip_address(text), ())


def test_what_is_wrapped_is_connected_to_as_what_it_means() -> None:
    assert str(check_address(ip_address("::ffff:1.1.1.1"), ())) == "1.1.1.1"
    assert str(check_address(ip_address("::ffff:10.0.0.5"), (ip_network("10.0.0.0/8"),))) == "10.0.0.5"


def test_what_is_reached_through_nat64_is_connected_to_through_it() -> None:
    """Whoever is given such an address has no other way: a machine without IPv4 cannot connect to what it stands for."""
    assert str(check_address(ip_address("64:ff9b::101:101"), ())) == "64:ff9b::101:101"
    for allowed in ("10.0.0.0/8", "64:ff9b::/96"):
        assert str(check_address(ip_address("64:ff9b::a00:1"), (ip_network(allowed),))) == "64:ff9b::a00:1"


def test_the_operator_allows_networks_and_nothing_beside_them() -> None:
    allowed = tuple(map(ip_network, ("10.0.0.0/8", "fd00::/8", "127.0.0.1")))
    for text in ("10.9.8.7", "fd12::1", "127.0.0.1", "::ffff:127.0.0.1"):
        check_address(ip_address(text), allowed)
    for text in ("127.0.0.2", "192.168.1.1", "fe80::1"):
        with pytest.raises(NotAllowed):
            check_address(ip_address(text), allowed)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://hooks.example/", "https:// or http://"),
        ("file:///etc/passwd", "https:// or http://"),
        ("hooks.example/x", "https:// or http://"),
        ("//hooks.example/", "https:// or http://"),
        ("https://user:secret@hooks.example/", "user name or a password"),
        ("https://user@hooks.example/", "user name or a password"),
        ("https://hooks.example/#top", "never sent"),
        ("https://hooks.example:25/", "port 25"),
        ("https://hooks.example:0/", "port 0"),
        ("http://[2606:4700::1111]25/", "not a valid URL"),
        ("http://[2606:4700::1111]99999999999999999999/", "not a valid URL"),
        ("http://[2606:4700::1111]25:80/", "not a valid URL"),
        ("https://hooks.example:99999/", "not a valid URL"),
        ("https:///x", "no valid host"),
        ("https://-bad-.example/", "no valid host"),
        ("https://bücher.example/", "no valid host"),
        ("https://a..b/", "no valid host"),
        ("https://localhost/", "this machine or this network"),
        ("https://LOCALHOST./", "this machine or this network"),
        ("https://db.localhost/", "this machine or this network"),
        ("https://printer.local/", "this machine or this network"),
        ("http://metadata.google.internal/", "this machine or this network"),
        ("http://127.0.0.1/", "public internet"),
        ("http://[::1]/", "public internet"),
        ("http://[::ffff:127.0.0.1]/", "public internet"),
        ("http://[fe80::1%25eth0]/", "public internet"),
        ("http://2130706433/", "public internet"),
        ("http://0x7f000001/", "public internet"),
        ("http://0x7f.1/", "public internet"),
        ("http://0177.0.0.1/", "public internet"),
        ("http://127.1/", "public internet"),
        ("http://169.254.169.254/latest/meta-data/", "public internet"),
        ("http://[::1", "not a valid URL"),
        ("http://[v1.a]/", "no valid host"),
        ("http://[v1.a]:8080/", "no valid host"),
    ],
)
def test_a_url_that_leads_nowhere_good_is_refused(url: str, reason: str) -> None:
    with pytest.raises(NotAllowed, match=reason):
        check_url(url, ())


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example/x?y=1",
        "http://hooks.example",
        "https://Hooks.Example:8443/",
        "https://xn--bcher-kva.example/",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]/",
    ],
)
def test_a_good_url_is_allowed(url: str) -> None:
    check_url(url, ())


def test_local_names_wait_for_their_addresses_where_something_is_allowed() -> None:
    check_url("http://hooks.internal:8080/", (ip_network("10.0.0.0/8"),))


@pytest.mark.parametrize(
    "url",
    [
        *("https://hooks.example/x", "https://Hooks.Example.:8443/", "http://a.lantern.example/", "https://a.b.lantern.example/"),
        *("https://1.1.1.1/", "https://[2606:4700::1111]/"),
    ],
)
def test_with_a_list_of_hosts_what_is_listed_is_allowed(url: str) -> None:
    check_url(url, (), ("hooks.example", "*.lantern.example", "1.1.1.1", "2606:4700::1111"))


@pytest.mark.parametrize(
    "url",
    [
        *("https://other.example/", "https://a.hooks.example/", "https://hooks.example.other.example/", "https://lantern.example/"),
        *("https://evil-lantern.example/", "https://1.1.1.2/", "https://16843009/", "https://user.example/?hooks.example"),
    ],
)
def test_with_a_list_of_hosts_nothing_else_is(url: str) -> None:
    with pytest.raises(NotAllowed, match="not among the hosts of TRELLIS_WEBHOOK_HOSTS"):
        check_url(url, (), ("hooks.example", "*.lantern.example", "1.1.1.1"))


def test_a_list_of_hosts_opens_no_closed_address() -> None:
    with pytest.raises(NotAllowed, match="public internet"):
        check_url("https://10.0.0.5/", (), ("10.0.0.5",))


def test_where_tls_is_required_http_is_refused() -> None:
    check_url("https://hooks.example/", (), https_only=True)
    with pytest.raises(NotAllowed, match="TRELLIS_REQUIRE_TLS"):
        check_url("http://hooks.example/", (), https_only=True)
