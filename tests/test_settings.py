"""The settings: where they come from, and that a wrong one stops the start with a sentence that names it."""

import os
import re
from dataclasses import FrozenInstanceError
from errno import EACCES
from pathlib import Path
from urllib.parse import quote

import pytest

from trellis.compose import compose
from trellis.settings import PREFIX, Settings, SettingsError, definitions, description, variable


def load(**given: str) -> Settings:
    return Settings.load({PREFIX + name: value for name, value in given.items()}, None)


def test_nothing_needs_to_be_set() -> None:
    settings = load()
    assert settings.database_url == "sqlite:///trellis.db"
    assert (settings.rate_limit, settings.bad_key_limit, settings.key_in_url) == (6000, 30, False)
    assert (settings.keep_successes, settings.keep_failures, settings.body_limit) == (7, 30, 1_048_576)


def test_variables_become_values_of_their_types() -> None:
    settings = load(
        DATABASE_URL="postgresql://trellis@localhost/trellis",
        RATE_LIMIT="0",
        KEY_IN_URL="true",
        COMMUNITY_URL="https://lantern.example/community/",
        TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8,",
        CORS_ORIGINS="*",
    )
    assert settings.database_url == "postgresql://trellis@localhost/trellis"
    assert settings.rate_limit == 0
    assert settings.key_in_url is True
    assert settings.community_url == "https://lantern.example/community"
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert settings.cors_origins == ("*",)


def test_variables_of_others_are_none_of_our_business() -> None:
    assert Settings.load({"PATH": "/bin", "RATE_LIMIT": "7"}, None).rate_limit == 6000


@pytest.mark.parametrize(
    "name", ["trellis_database_url", "Trellis_Database_Url", "TRELLIS_database_url", "trellis_database_url_file"]
)
def test_a_setting_that_is_not_in_capitals_is_refused(tmp_path: Path, name: str) -> None:
    told = f"^{name} must be in capitals: {name.upper()}\\.$"
    with pytest.raises(SettingsError, match=told):
        Settings.load({name: "sqlite:///other.db"}, None)
    (tmp_path / ".env").write_text(f"{name}=sqlite:///other.db\n")
    with pytest.raises(SettingsError, match=told):
        Settings.load({}, str(tmp_path / ".env"))


def test_a_variable_of_another_program_may_begin_alike() -> None:
    given = {"trellis": "1", "trellis_port": "8000", "trellisdatabase_url": "x", "rate_limit": "7"}
    assert Settings.load(given, None) == Settings()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("RATELIMIT", "TRELLIS_RATE_LIMIT"),
        ("DATABASE_URI", "TRELLIS_DATABASE_URL"),
        ("KEEP_SUCCESS", "TRELLIS_KEEP_SUCCESSES"),
    ],
)
def test_an_unknown_setting_is_named_with_the_nearest_name(name: str, near: str) -> None:
    with pytest.raises(SettingsError, match=f"^TRELLIS_{name} is not a setting of Trellis. Did you mean {near}\\?$"):
        load(**{name: "7"})


def test_an_unknown_setting_like_no_other_points_to_the_list() -> None:
    with pytest.raises(SettingsError, match=r"^TRELLIS_XYZZY is not a setting of Trellis. docs/settings.md lists the settings.$"):
        load(XYZZY="1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RATE_LIMIT", "many"),
        ("RATE_LIMIT", "-1"),
        ("BAD_KEY_LIMIT", "0"),
        ("BODY_LIMIT", "12"),
        ("KEEP_FAILURES", "3651"),
        ("BUSY_TIMEOUT", "0"),
        ("DATABASE_POOL", "201"),
        ("KEY_IN_URL", "perhaps"),
        ("COMMUNITY_URL", "lantern.example"),
        ("COMMUNITY_URL", "https://lantern.example/a b"),
        ("PUBLIC_URL", "ftp://lantern.example"),
        ("PUBLIC_URL", "https://[::1"),
        ("PUBLIC_URL", "https://lantern.example:https"),
        ("COMMUNITY_URL", "http://:8000"),
        ("TRUSTED_PROXIES", "127.0.0.1,gateway"),
    ],
)
def test_a_malformed_setting_is_named_with_what_was_given_and_what_it_is_for(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**{name: value})
    sentence = str(refused.value)
    assert sentence.startswith(f"TRELLIS_{name} is set to ")
    assert value in sentence
    assert description(name.lower()) in sentence


@pytest.mark.parametrize("address", ["https://пример.example", "https://bücher.example", "https://lantern.example/größe"])
def test_an_address_that_no_header_can_hold_is_refused_before_anything_is_served(address: str) -> None:
    with pytest.raises(SettingsError, match=r"^TRELLIS_PUBLIC_URL .* must be in ASCII, as browsers send it"):
        load(PUBLIC_URL=address)
    assert load(COMMUNITY_URL=address).community_url == address  # which only bodies have
    assert load(PUBLIC_URL="https://xn--bcher-kva.example").public_url == "https://xn--bcher-kva.example"


@pytest.mark.parametrize("name", ["TRUSTED_PROXIES", "WEBHOOK_ALLOW"])
@pytest.mark.parametrize(
    ("given", "network"),
    [("127.0.0.1/8", "127.0.0.0/8"), ("10.0.0.0/8, fd00::1/8", "fd00::/8"), ("10.1.2.3/255.0.0.0", "10.0.0.0/8")],
)
def test_an_address_with_the_length_of_a_network_is_refused_with_the_network(name: str, given: str, network: str) -> None:
    with pytest.raises(SettingsError, match=f"write the network, {network}, or the address alone"):
        load(**{name: given})


def test_networks_and_addresses_are_accepted() -> None:
    given = ("127.0.0.0/8", "127.0.0.1", "127.0.0.1/32", "fd00::/8", "::1", "10.0.0.0/255.0.0.0")
    assert load(TRUSTED_PROXIES=", ".join(given)).trusted_proxies == given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://trellis:hunter2@localhost/trellis"),
        ("DATABASE_URL", "sqlite:///"),
        ("RATE_LIMIT_STORAGE", "memcached://:hunter2@localhost"),
    ],
)
def test_a_setting_that_may_hold_a_password_is_named_but_not_shown(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**{name: value})
    assert str(refused.value).startswith(f"TRELLIS_{name} is set, which is not allowed: ")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__  # nor in the traceback


@pytest.mark.parametrize(
    "password", ["p@wSECRET", "p@", "@wSECRET", "p@w@SECRET", "p@w/SECRET", "p@w?SECRET", "p@w#SECRET:", "p:@SECRET"]
)
@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
@pytest.mark.parametrize("user", ["u", "u@server"])
def test_an_unescaped_at_in_the_password_of_the_database_is_refused_and_not_shown(scheme: str, user: str, password: str) -> None:
    with pytest.raises(SettingsError, match="must have no @ in its password: write it as %40") as refused:
        load(DATABASE_URL=f"{scheme}://{user}:{password}@127.0.0.1:1/x")
    assert "SECRET" not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u@server:password@host/db",
        "postgresql://u@server@host/db",
        "postgresql://u:p%40w@[::1]:5432/db",
        "postgresql://u:p/w?x#y[z@host:1,other:2/db?sslmode=verify-full",
        "postgresql://u:p@host/my@db?sslrootcert=/etc/ca.pem",
        "postgresql://u:p@/db?host=@/run/postgresql",
        "postgresql://host/db?user=a@b",
        "postgresql:///db",
        "sqlite:////srv/a@b/c@d.db",
    ],
)
def test_an_at_elsewhere_in_the_address_of_the_database_is_none_in_the_password(address: str) -> None:
    assert load(DATABASE_URL=address).database_url == address


def test_a_setting_in_another_encoding_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^TRELLIS_COMMUNITY_NAME is not text in UTF-8.$"):
        load(COMMUNITY_NAME=os.fsdecode(b"Caf\xe9"))


def test_settings_do_not_change_once_they_are_read() -> None:
    settings = load()
    with pytest.raises(FrozenInstanceError):
        settings.rate_limit = 1  # type: ignore[misc]  # that is the point


def test_the_file_names_other_variables_but_not_within_single_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "given")
    (tmp_path / ".env").write_text(
        "WORD='a${GIVEN}b'\n"
        "\nexport TRELLIS_COMMUNITY_NAME = 'a${GIVEN}b'  # ${GIVEN}\n"
        'TRELLIS_SMTP_USER="${GIVEN} ${WORD} ${NONE:-none}"\n'
        "TRELLIS_SMTP_PASSWORD=${GIVEN}'${NONE}'\n"
        "TRELLIS_SSO_NAME='it\\'s ${GIVEN}'\n"
    )
    settings = Settings.load({}, str(tmp_path / ".env"))
    assert settings.community_name == "a${GIVEN}b"
    assert settings.smtp_user == "given a${GIVEN}b none"
    assert settings.smtp_password == "given''"
    assert settings.sso_name == "it's ${GIVEN}"


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TRELLIS_RATE_LIMIT=10\nTRELLIS_COMMUNITY_NAME='The Lantern'\nOTHER=1\n")
    settings = Settings.load({"TRELLIS_RATE_LIMIT": "20"}, str(tmp_path / ".env"))
    assert settings.rate_limit == 20
    assert settings.community_name == "The Lantern"


def test_a_mistake_in_the_file_is_named_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TRELLIS_RATE_LIMITT=10\n")
    with pytest.raises(SettingsError, match="TRELLIS_RATE_LIMITT is not a setting"):
        Settings.load({}, str(tmp_path / ".env"))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("TRELLIS_RATE_LIMIT=5\n\nTRELLIS_BAD_KEY_LIMIT 7\n", "Line 3 of the settings file .* is not of the form NAME=VALUE"),
        ("# mine\nTRELLIS_COMMUNITY_NAME='The Lantern\n", "Line 2 .* or a quote in it does not end"),
        ("OTHER\nTRELLIS_ACCESS_LOG\n", "Line 2 .* has no value: write TRELLIS_ACCESS_LOG=VALUE"),
        (b"TRELLIS_COMMUNITY_NAME=Caf\xe9\n", "is not text in UTF-8"),
    ],
)
def test_a_line_of_the_file_that_cannot_be_read_is_named(tmp_path: Path, written: str | bytes, told: str) -> None:
    (tmp_path / ".env").write_bytes(written if isinstance(written, bytes) else written.encode())
    with pytest.raises(SettingsError, match=told):
        Settings.load({}, str(tmp_path / ".env"))


def test_a_folder_that_may_not_be_looked_into_is_named_as_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(EACCES, os.strerror(EACCES))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(SettingsError, match=r"^The settings file .env cannot be read: Permission denied.$"):
        Settings.load({})


def test_a_setting_that_is_set_to_nothing_is_not_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TRELLIS_RATE_LIMIT=\n")
    settings = Settings.load({"TRELLIS_PUBLIC_URL": "", "TRELLIS_COMMUNITY_NAME": ""}, str(tmp_path / ".env"))
    assert (settings.rate_limit, settings.public_url, settings.community_name) == (6000, None, "Our community")


def test_a_variable_that_is_set_to_nothing_leaves_what_the_file_says(tmp_path: Path) -> None:
    """Such as one that a container's configuration passes on, whether it was given or not."""
    (tmp_path / ".env").write_text("TRELLIS_RATE_LIMIT=10\n")
    assert Settings.load({"TRELLIS_RATE_LIMIT": ""}, str(tmp_path / ".env")).rate_limit == 10
    with pytest.raises(SettingsError, match="TRELLIS_RATE_LIMITT is not a setting"):
        Settings.load({"TRELLIS_RATE_LIMITT": ""}, str(tmp_path / ".env"))


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert Settings.load({}, str(tmp_path / ".env")) == load()


def test_the_process_and_its_folder_are_looked_at_when_nothing_else_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("TRELLIS_RATE_LIMIT=10\nTRELLIS_BAD_KEY_LIMIT=11\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRELLIS_BAD_KEY_LIMIT", "12")
    settings = Settings.load()
    assert (settings.rate_limit, settings.bad_key_limit) == (10, 12)


def test_every_setting_says_in_a_sentence_what_it_is_for() -> None:
    described = {name: description(name) for name in definitions()}
    assert [name for name, text in described.items() if not re.fullmatch(r"[A-Z].*\.", text)] == []
    assert len(described) >= 15


def test_a_setting_is_named_as_its_variable() -> None:
    assert variable("rate_limit") == "TRELLIS_RATE_LIMIT"


SSO = {"TRELLIS_SSO_ISSUER": "https://id.example", "TRELLIS_SSO_CLIENT_ID": "x", "TRELLIS_PUBLIC_URL": "https://panel.example"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"TRELLIS_SSO_ISSUER": "http://id.example"}, "begins with https://"),
        ({"TRELLIS_SSO_CLIENT_ID": ""}, "TRELLIS_SSO_CLIENT_ID is not"),
        ({"TRELLIS_PUBLIC_URL": ""}, "TRELLIS_PUBLIC_URL is not: the provider sends people back to an address below it"),
        ({"TRELLIS_SSO_SCOPES": "profile"}, "must have openid"),
        ({"TRELLIS_SSO_NEW_ADMINISTRATORS": "on"}, "needs TRELLIS_SSO_ROLES"),
        ({"TRELLIS_SSO_ROLES": "staff"}, "not of the form GROUP=ROLE"),
        ({"TRELLIS_SSO_ROLES": "cn=staff,dc=x=king"}, "there is no role king"),
        ({"TRELLIS_SSO_ROLES": "staff=auditor:forums"}, "the role auditor is for all kinds"),
        ({"TRELLIS_SSO_ROLES": "staff=structure-editor:planets"}, "planets is none of"),
    ],
)
def test_single_sign_on_is_whole_or_refused(changes: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(told)):
        compose(Settings.load(SSO | changes, None))


def test_an_issuer_keeps_its_slash_and_the_secret_is_not_shown() -> None:
    settings = Settings.load(SSO | {"TRELLIS_SSO_ISSUER": "https://id.example/", "TRELLIS_SSO_CLIENT_SECRET": "hush"}, None)
    assert settings.sso_issuer == "https://id.example/"
    assert "hush" not in str(settings.changed)


@pytest.mark.parametrize(
    "name", ["DATABASE_URL", "RATE_LIMIT_STORAGE", "WEBHOOK_KEY", "SECOND_FACTOR_KEY", "METRICS_TOKEN", "SSO_CLIENT_SECRET"]
)
def test_a_secret_may_be_in_a_file(name: str, tmp_path: Path) -> None:
    secret = {"DATABASE_URL": "postgresql://trellis:hunter2@db/trellis", "RATE_LIMIT_STORAGE": "rediss://:hunter2@redis/0"}
    text = secret.get(name, "a long text, hunter2")
    file = tmp_path / "secret"
    file.write_text(f"{text}\n")
    assert getattr(load(**{f"{name}_FILE": str(file)}), name.lower()) == text
    with pytest.raises(SettingsError, match=f"^TRELLIS_{name} and TRELLIS_{name}_FILE are both set\\. Set only one of them\\.$"):
        load(**{f"{name}_FILE": str(file), name: text})
    file.write_text("\n")
    with pytest.raises(SettingsError, match=f"^The file that TRELLIS_{name}_FILE names is empty.$"):
        load(**{f"{name}_FILE": str(file)})
    with pytest.raises(SettingsError, match=f"^The file that TRELLIS_{name}_FILE names cannot be read: "):
        load(**{f"{name}_FILE": str(tmp_path / "nowhere")})
    with pytest.raises(SettingsError, match=f"^The file that TRELLIS_{name}_FILE names has more than 65,536 characters\\.$"):
        load(**{f"{name}_FILE": "/dev/zero"})


def test_a_malformed_secret_in_a_file_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("mysql://trellis:hunter2@localhost/trellis")
    with pytest.raises(SettingsError, match=r"^TRELLIS_DATABASE_URL is set, which is not allowed: ") as refused:
        load(DATABASE_URL_FILE=str(tmp_path / "url"))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("password", ["hunter2#x", "hunter2/x", "hunter2?x", "7#hunter2", "[hunter2"])
def test_a_password_in_the_address_of_redis_is_not_taken_for_another_part_of_it(password: str) -> None:
    for user in ("", "trellis"):
        with pytest.raises(SettingsError, match=r"must name a host .* %2F") as refused:
            load(RATE_LIMIT_STORAGE=f"redis://{user}:{password}@redis.example:6379/0")
        assert "hunter2" not in str(refused.value)
        load(RATE_LIMIT_STORAGE=f"redis://{user}:{quote(password, safe='')}@redis.example:6379/0")
    for wrong in ("redis://redis.example:port/0", "redis://redis.example:65536", "redis://[::1/0", "redis://:6379"):
        with pytest.raises(SettingsError, match=r"must name a host"):
            load(RATE_LIMIT_STORAGE=wrong)


ENCRYPTED = {"REQUIRE_TLS": "on", "PUBLIC_URL": "https://api.lantern.example"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "postgresql://trellis:hunter2@db.example/trellis"),
        ("DATABASE_URL", "postgres://trellis:hunter2@db.example/trellis?sslmode=require"),
        ("DATABASE_URL", "postgresql://localhost,db.example/trellis"),
        ("DATABASE_URL", "postgresql://localhost:hunter2/x@db.example/trellis"),
        ("DATABASE_URL", "postgresql://[::1/trellis"),
        ("DATABASE_URL", "postgresql://localhost/trellis?hostaddr=192.0.2.1"),
        ("DATABASE_URL", "postgresql:///trellis"),  # which libpq's own variables may lead anywhere
        ("DATABASE_URL", "postgresql://localhost/trellis?service=elsewhere"),
        ("RATE_LIMIT_STORAGE", "redis://:hunter2@redis.example:6379/0"),
        ("SMTP_TLS", "off"),
        ("PUBLIC_URL", "http://api.lantern.example"),
        ("PUBLIC_URL", ""),
    ],
)
def test_where_tls_is_required_no_connection_to_another_machine_goes_without(name: str, value: str) -> None:
    mail = {"SMTP_HOST": "mail.example", "SMTP_FROM": "trellis@mail.example"}
    with pytest.raises(SettingsError, match=f"^TRELLIS_REQUIRE_TLS is on: TRELLIS_{name} ") as refused:
        load(**ENCRYPTED | mail | {name: value})
    assert "hunter2" not in str(refused.value)
    load(**ENCRYPTED | mail | {name: value, "REQUIRE_TLS": "off"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "sqlite:///trellis.db"),
        ("DATABASE_URL", "postgresql://trellis@db.example/trellis?sslmode=verify-full&sslrootcert=ca.pem"),
        ("DATABASE_URL", "postgresql://trellis:a[b/c?d#e@db.example/trellis?sslmode=verify-full"),
        ("DATABASE_URL", "postgresql://trellis:a/b@localhost/trellis"),
        ("DATABASE_URL", "postgresql://trellis@127.0.0.1:5432/trellis"),
        ("DATABASE_URL", "postgresql://trellis@[::1]:5432/trellis"),
        ("DATABASE_URL", "postgresql:///trellis?host=/run/postgresql"),
        ("DATABASE_URL", "postgresql://%2Frun%2Fpostgresql/trellis"),
        ("RATE_LIMIT_STORAGE", "rediss://redis.example/0"),
        ("RATE_LIMIT_STORAGE", "redis://localhost:6379/0"),
        ("SMTP_TLS", "off"),  # without a mail server
    ],
)
def test_where_tls_is_required_this_machine_and_what_is_encrypted_are_well(name: str, value: str) -> None:
    assert load(**ENCRYPTED | {name: value}).require_tls


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.2", "::1"])
def test_a_mail_server_on_this_machine_needs_no_tls(host: str) -> None:
    mail = {"SMTP_HOST": host, "SMTP_FROM": "trellis@mail.example", "SMTP_TLS": "off", "SMTP_USER": "trellis", "SMTP_PASSWORD": "x"}
    assert load(**ENCRYPTED | mail).smtp_host == host


@pytest.mark.parametrize("address", ["http://localhost:8000", ""])
def test_where_tls_is_required_the_public_address_has_it_on_this_machine_too(address: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**ENCRYPTED | {"PUBLIC_URL": address})
    assert str(refused.value) == "TRELLIS_REQUIRE_TLS is on: TRELLIS_PUBLIC_URL must begin with https://."
    with pytest.raises(SettingsError, match=r"must begin with rediss://, unless it points to this machine\.$"):
        load(**ENCRYPTED | {"RATE_LIMIT_STORAGE": "redis://redis.example:6379/0"})


def test_where_tls_is_required_so_are_traces() -> None:
    given = {PREFIX + name: value for name, value in ENCRYPTED.items()}
    for address in ("https://collector.example:4318", "http://127.0.0.1:4318", ""):
        Settings.load(given | {"OTEL_EXPORTER_OTLP_ENDPOINT": address}, None)
    with pytest.raises(
        SettingsError, match=r"^TRELLIS_REQUIRE_TLS is on: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must begin with https://"
    ):
        Settings.load(given | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector.example:4318"}, None)


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://App.example/", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://localhost:80", "http://localhost"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:5173/", "http://[::1]:5173"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("file://", "file://"),
        ("null", "null"),
    ],
)
def test_an_origin_is_the_one_that_browsers_send(given: str, origin: str) -> None:
    assert load(CORS_ORIGINS=f"https://other.example, {given}").cors_origins == ("https://other.example", origin)


@pytest.mark.parametrize(
    "given", ["app.example", "https://app.example/page", "https://*.app.example", "https://", "https://bücher.example"]
)
def test_what_no_browser_sends_as_an_origin_is_refused(given: str) -> None:
    with pytest.raises(
        SettingsError, match=r"^TRELLIS_CORS_ORIGINS is set to .* is not an origin, such as https://app.example.com"
    ):
        load(CORS_ORIGINS=given)


def test_hosts_of_webhooks_are_names_and_addresses() -> None:
    assert load(WEBHOOK_HOSTS="Hooks.example, *.lantern.example,192.0.2.1,2001:db8::1").webhook_hosts == (
        *("hooks.example", "*.lantern.example", "192.0.2.1", "2001:db8::1"),
    )
    for wrong in ("https://hooks.example", "hooks.example:443", "*", "hooks.*", "a b"):
        with pytest.raises(SettingsError, match="is not the name or the address of a machine"):
            load(WEBHOOK_HOSTS=wrong)
