"""The settings: a field for each, with its default, its parser and its description."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trellis.settings.texts import (
    choice,
    number,
    parse_counter,
    parse_database_url,
    parse_digests,
    parse_flag,
    parse_group_roles,
    parse_host,
    parse_hosts,
    parse_issuer,
    parse_listener,
    parse_name,
    parse_networks,
    parse_origins,
    parse_public_address,
    parse_scopes,
    parse_secret,
    parse_sender,
    parse_web_address,
    read_secret_file,
    variable,
)


def _setting(default: Any, parse: Callable[[str], Any], description: str) -> Any:
    return field(default=default, metadata={"parse": parse, "description": description})


def _flag(description: str, *, on: bool = False) -> Any:
    return _setting(on, parse_flag, description)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFields:
    """The fields, and values that are derived from them."""

    database_url: str = _setting(
        "sqlite:///trellis.db",
        parse_database_url,
        "Where the data is: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`.",
    )
    community_name: str = _setting("Our community", str, "The name of the community, as `/core/hello` returns it.")
    community_url: str = _setting(
        "http://localhost:8000", parse_web_address, "The community's own address; every record's `url` begins with it."
    )
    public_url: str | None = _setting(
        None,
        parse_public_address,
        "The address at which callers reach this service, without `/api`; by default, it is taken from each request.",
    )
    hsts_subdomains: bool = _flag(
        "If the public address is https: whether browsers must use https for all hosts below it "
        "too; `off` if one of them has no https.",
        on=True,
    )
    require_tls: bool = _flag(
        "Whether the service refuses to start if a connection to another machine would not be encrypted, and refuses "
        "webhooks that are not https."
    )
    rate_limit: int = _setting(6000, number(0, 10_000_000), "Requests per minute for each key; 0 means no limit.")
    rate_limit_storage: str = _setting(
        "memory://",
        parse_counter,
        "Where requests are counted: `memory://` (each process counts its own) or `redis://HOST:PORT/N` (all processes count "
        "together).",
    )
    waiting_per_key: int = _setting(
        4,
        number(1, 1000),
        "Requests of a key that may wait for events at the same time, per process; further ones are refused with 429.",
    )
    bad_key_limit: int = _setting(30, number(1, 1_000_000), "Requests without a valid key per minute from each address.")
    key_in_url: bool = _flag("Whether every key may be sent as `?key=`. URLs end up in logs: leave it off.")
    body_limit: int = _setting(1_048_576, number(1024, 1_073_741_824), "The largest request body, in bytes.")
    connections: int = _setting(
        2000,
        number(2, 1_000_000),
        "The most connections per process, at most half of them from one address; further ones are refused with 503.",
    )
    head_timeout: int = _setting(10, number(1, 600), "Seconds within which the request line and headers must arrive.")
    body_timeout: int = _setting(
        30, number(1, 3600), "Seconds within which the body of a request must arrive, plus one for every 10 KiB of it."
    )
    idle_timeout: int = _setting(75, number(1, 3600), "Seconds that a connection waits for the next request.")
    send_timeout: int = _setting(
        30, number(1, 3600), "Seconds within which the caller must read a response, plus one for every 10 KiB of it."
    )
    answer_cache: int = _setting(
        33_554_432, number(0, 17_179_869_184), "Bytes of memory per process for responses that are kept; 0 keeps none."
    )
    answers_under_way: int = _setting(
        268_435_456,
        number(0, 17_179_869_184),
        "Bytes of memory per process for large responses while callers read them, at most a quarter of it for one key.",
    )
    keep_successes: int = _setting(7, number(0, 3650), "Days for which successful requests stay in the request log.")
    keep_failures: int = _setting(30, number(0, 3650), "Days for which refused and failed requests stay in the request log.")
    request_log_size: int = _setting(
        1_073_741_824,
        number(1_048_576, 1_099_511_627_776),
        "Bytes that the request log may take; the oldest requests are deleted first.",
    )
    # At least as long as a webhook may lag (a week) and a message is retried (three days): webhooks are sent from events.
    keep_events: int = _setting(90, number(14, 36500), "Days for which events stay in the feed.")
    keep_snapshots: int = _setting(
        30, number(1, 36500), "Days for which a change can be undone, unless its event is deleted earlier (`TRELLIS_KEEP_EVENTS`)."
    )
    trusted_proxies: tuple[str, ...] = _setting(
        (),
        parse_networks,
        "Addresses or networks (CIDR) of proxies, separated by commas, whose headers X-Forwarded-For and X-Forwarded-Proto are "
        "trusted.",
    )
    cors_origins: tuple[str, ...] = _setting(
        (), parse_origins, "Origins, separated by commas, whose pages may call the API from a browser; `*` allows all of them."
    )
    proposals_per_key: int = _setting(50, number(1, 10_000), "How many proposals of one key may be open at once.")
    # Not longer than events are certain to be kept: they show what has changed since a proposal.
    proposal_days: int = _setting(7, number(1, 14), "Days for which a proposal can be approved before it expires.")
    webhook_delivery: bool = _flag(
        "Whether `trellis serve` also sends webhooks and mail; `off` leaves that to `trellis work`.", on=True
    )
    webhook_allow: tuple[str, ...] = _setting(
        (),
        parse_networks,
        "Private or local addresses or networks (CIDR), separated by commas, to which webhooks may be sent nevertheless.",
    )
    webhook_hosts: tuple[str, ...] = _setting(
        (),
        parse_hosts,
        "The only hosts to which webhooks may be sent, separated by commas; `*.example.com` means all hosts below that one. By "
        "default, any.",
    )
    webhook_key: str | None = _setting(
        None,
        parse_secret,
        "A long random text from which the secrets of webhooks are derived, so that the database alone is not enough to sign "
        "messages.",
    )
    require_second_factor: bool = _flag(
        "Whether every administrator must have a second factor: anybody who has none must set one up before anything else."
    )
    breached_passwords: str | None = _setting(
        None,
        parse_digests,
        "A file of passwords that administrators cannot choose, as haveibeenpwned-downloader writes it (SHA-1).",
    )
    second_factor_key: str | None = _setting(
        None,
        parse_secret,
        "A long random text from which the secrets of authenticator apps are derived, so that the database alone is not enough to "
        "make codes.",
    )
    smtp_host: str | None = _setting(
        None, parse_host, "The mail server through which alarms and invitations are sent; without it, no mail is sent."
    )
    smtp_port: int = _setting(587, number(1, 65_535), "The port of the mail server: usually 587 for `starttls`, 465 for `tls`.")
    smtp_tls: str = _setting(
        "starttls",
        choice("starttls", "tls", "off"),
        "How the connection to the mail server is encrypted: `starttls`, `tls` from the first byte, or `off` for a server on this "
        "machine.",
    )
    smtp_user: str | None = _setting(None, str, "The user name for the mail server; without it, mail is sent without signing in.")
    smtp_password: str | None = _setting(None, str, "The password of that user.")
    smtp_password_file: str | None = _setting(
        None, str, "A file with the password, in place of `TRELLIS_SMTP_PASSWORD`; it is read whenever mail is sent."
    )
    smtp_from: str | None = _setting(
        None, parse_sender, "The sender of all mail: an address, or `Name <address>`. Required if there is a mail server."
    )
    sso_issuer: str | None = _setting(
        None,
        parse_issuer,
        "The issuer of the OpenID provider where administrators can sign in, exactly as the provider sends it. Without it there "
        "is no single sign-on.",
    )
    sso_client_id: str | None = _setting(None, str, "The id of this service at the provider.")
    sso_client_secret: str | None = _setting(
        None,
        str,
        "The client secret from the provider; without one, this service is a public client that uses PKCE alone.",
    )
    sso_scopes: str = _setting(
        "openid profile email", parse_scopes, "The scopes that the provider is asked for, separated by spaces."
    )
    sso_name: str = _setting("single sign-on", str, "The name of the provider, which the button has after *Sign in with*.")
    sso_groups_claim: str = _setting(
        "groups",
        str,
        "The claim that contains somebody's groups; dots lead to a claim inside another one, such as `realm_access.roles`.",
    )
    sso_roles: str | None = _setting(
        None,
        parse_group_roles,
        "The role of each group, as `GROUP=ROLE` or `GROUP=ROLE:KIND,KIND`, separated by semicolons; the first one whose group "
        "somebody belongs to decides, at each sign-in. Without it, owners give roles in the panel.",
    )
    sso_new_administrators: bool = _flag(
        "Whether somebody who is unknown to Trellis becomes an administrator when they sign in and one of their groups has a role."
    )
    sso_local_sign_in: str = _setting(
        "everybody",
        choice("everybody", "owners"),
        "Who may still sign in with a password or passkey: `everybody`, or only `owners`, in case the provider is down.",
    )
    instance: str | None = _setting(
        None,
        parse_name,
        "A name that only one container has at a time, such as that of a pod: the next one with that name takes over its webhooks "
        "at once.",
    )
    keep_deliveries: int = _setting(30, number(1, 3650), "Days for which finished webhook deliveries stay in the delivery log.")
    database_pool: int = _setting(
        8, number(1, 200), "Connections to PostgreSQL per process for reading; writes and notifications have one more each."
    )
    database_connect_timeout: int = _setting(5, number(1, 600), "Seconds within which a connection to PostgreSQL must be made.")
    database_pool_timeout: int = _setting(5, number(1, 600), "Seconds that a read waits for a connection from the pool.")
    database_read_timeout: int = _setting(
        10, number(1, 3600), "Seconds that PostgreSQL may take for a statement that reads; after that, the request gets a 503."
    )
    database_write_timeout: int = _setting(
        60,
        number(1, 3600),
        "Seconds that PostgreSQL may take for a statement in a write or in `trellis check`; large deletes take a long time.",
    )
    busy_timeout: int = _setting(30, number(1, 600), "Seconds that a write waits for its turn before it is refused with 503.")
    job_timeout: int = _setting(
        20,
        number(1, 3600),
        "Seconds that one request (a batch, an apply, an undo, a copy or delete of many nodes) may keep other writes waiting.",
    )
    write_queue: int = _setting(
        500, number(1, 100_000), "Writes that may wait for their turn in a process; further ones are refused with 503 at once."
    )
    metrics_token: str | None = _setting(
        None, parse_secret, "A long random text that a monitoring system sends as a bearer token to read `/metrics`."
    )
    metrics_allow: tuple[str, ...] = _setting(
        (),
        parse_networks,
        "Addresses or networks (CIDR), separated by commas, that may read `/metrics`, with the token if one is set; if neither is "
        "set, nobody may.",
    )
    metrics_listen: str | None = _setting(
        None,
        parse_listener,
        "A separate address for `/metrics`: `ADDRESS:PORT`, or only a port, which is then open to this machine alone. The "
        "service's own port then has no metrics.",
    )
    log_format: str = _setting(
        "text", choice("text", "json"), "How the log on stderr is written: `text` for people, `json` for machines."
    )
    log_level: str = _setting(
        "info",
        choice("debug", "info", "warning", "error"),
        "The lowest level that is logged: `debug`, `info`, `warning` or `error`.",
    )
    access_log: bool = _flag("Whether the log also has a line for each request.")

    @property
    def has_metrics(self) -> bool:
        """Whether a monitoring system may read the metrics of this service."""
        return bool(self.metrics_token or self.metrics_allow)

    @property
    def is_https(self) -> bool:
        """Whether callers reach this service over https, according to its public address."""
        return (self.public_url or "").lower().startswith("https://")

    @property
    def transport_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """The response header that makes browsers insist on https from then on (RFC 6797); none if callers do not use https."""
        value = b"max-age=31536000; includeSubDomains" if self.hsts_subdomains else b"max-age=31536000"
        return ((b"strict-transport-security", value),) if self.is_https else ()

    def read_smtp_password(self) -> str:
        """Return the password for the mail server. Raises SettingsError."""
        if self.smtp_password_file is None:
            return self.smtp_password or ""
        return read_secret_file(variable("smtp_password_file"), self.smtp_password_file)
