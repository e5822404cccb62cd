"""One frozen settings object, read from TRELLIS_* variables and a .env file when the program starts, and not before."""

import difflib
import os
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_network
from typing import Annotated, Any, Self

from dotenv import dotenv_values
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

PREFIX = "TRELLIS_"
_MAY_HOLD_A_PASSWORD = {"database_url", "rate_limit_storage", "webhook_key"}


class SettingsError(Exception):
    """A setting is unknown or malformed; the text names it and says what is allowed."""


class Settings(BaseSettings):
    """Everything that an operator can set. Names of variables are the fields' names in capitals behind TRELLIS_."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    database_url: str = Field(
        "sqlite:///trellis.db",
        description="Where the data is: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`.",
    )
    community_name: str = Field("Our community", min_length=1, description="The community's name, told by `/core/hello`.")
    community_url: str = Field(
        "http://localhost:8000",
        pattern=r"^https?://[^\s/]+(/[^\s]*)?$",
        description="The community's own address; every record's `url` begins with it.",
    )
    public_url: str | None = Field(
        None,
        pattern=r"^https?://[^\s/]+(/[^\s]*)?$",
        description="The address under which callers reach this service, without `/api`; by default what each request says.",
    )
    rate_limit: int = Field(6000, ge=0, le=10_000_000, description="Requests per minute and key; 0 is off.")
    rate_limit_storage: str = Field(
        "memory://",
        pattern=r"^(memory://|rediss?://\S+)$",
        description="Where requests are counted: `memory://` (each process for itself) or `redis://HOST:PORT/N` (all together).",
    )
    bad_key_limit: int = Field(30, ge=1, le=1_000_000, description="Requests with a bad key per minute and address.")
    key_in_url: bool = Field(default=False, description="Whether `?key=` is accepted. URLs end up in logs: leave it off.")
    body_limit: int = Field(1_048_576, ge=1024, le=1_073_741_824, description="The largest request body, in bytes.")
    connections: int = Field(
        2000,
        ge=2,
        le=1_000_000,
        description="The most connections per process, and for one address half of them; further ones are answered 503.",
    )
    head_timeout: int = Field(10, ge=1, le=600, description="Seconds for a request's line and headers to come.")
    body_timeout: int = Field(30, ge=1, le=3600, description="Seconds for its body, and one more for every 10 KiB of it.")
    idle_timeout: int = Field(75, ge=1, le=3600, description="Seconds for which a connection waits for the next request.")
    send_timeout: int = Field(30, ge=1, le=3600, description="Seconds for an answer to be read, and one more for every 10 KiB.")
    answer_cache: int = Field(
        33_554_432, ge=0, le=17_179_869_184, description="Bytes of memory per process for answers; 0 keeps none."
    )
    keep_successes: int = Field(7, ge=0, le=3650, description="Days for which successful requests stay in the request log.")
    keep_failures: int = Field(30, ge=0, le=3650, description="Days for which refused and failed requests stay in it.")
    # At least as long as a webhook may lag (a week) and a message be tried again (three days): webhooks are sent from them.
    keep_events: int = Field(90, ge=14, le=36500, description="Days for which events stay in the feed.")
    keep_snapshots: int = Field(30, ge=1, le=36500, description="Days for which a change can be undone.")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Addresses or CIDRs, separated by commas, whose X-Forwarded-For and -Proto headers are believed.",
    )
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Origins, separated by commas, whose pages may call the API from a browser; `*` is all of them."
    )
    webhook_delivery: bool = Field(
        default=True,
        description="Whether `trellis serve` sends webhooks too; `off` leaves that to `trellis work`.",
    )
    webhook_allow: Annotated[tuple[str, ...], NoDecode] = Field(
        (),
        description="Private or local addresses or CIDRs, separated by commas, to which webhooks may go all the same.",
    )
    webhook_key: str | None = Field(
        None,
        min_length=16,
        description="A long random text from which webhooks' secrets are made, so that the database alone cannot sign.",
    )
    keep_deliveries: int = Field(30, ge=1, le=3650, description="Days for which finished webhook deliveries stay in their log.")
    database_pool: int = Field(8, ge=1, le=200, description="Connections to PostgreSQL per process, the writer's apart.")
    busy_timeout: int = Field(30, ge=1, le=600, description="Seconds for which a write waits for its turn before 503.")

    @field_validator("database_url")
    @classmethod
    def _known_engine(cls, value: str) -> str:
        if not value.startswith(("sqlite:///", "postgresql://", "postgres://")) or value == "sqlite:///":
            raise ValueError("must begin with sqlite:/// (and name a file) or postgresql://")
        return value

    @field_validator("trusted_proxies", "cors_origins", "webhook_allow", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return tuple(filter(None, (part.strip() for part in value.split(",")))) if isinstance(value, str) else value

    @field_validator("trusted_proxies", "webhook_allow")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for part in value:
            ip_network(part, strict=False)
        return value

    @field_validator("community_url", "public_url")
    @classmethod
    def _no_trailing_slash(cls, value: str | None) -> str | None:
        return value.rstrip("/") if value else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values from `load` alone: it has looked at every name."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None, dotenv: str | None = ".env") -> Self:
        """Read the settings.

        The environment wins over the .env file, and a variable that is empty counts as not set. Raises SettingsError, with a
        sentence that names the setting, when one is unknown or malformed.
        """
        given: dict[str, Any] = dict(dotenv_values(dotenv)) if dotenv else {}
        given |= os.environ if environment is None else environment
        values = {name.removeprefix(PREFIX).lower(): v for name, v in given.items() if name.startswith(PREFIX)}
        for name in values:
            if name not in cls.model_fields:
                near = difflib.get_close_matches(name, cls.model_fields, 1)
                hint = f" Did you mean {variable(near[0])}?" if near else " The README lists the settings."
                raise SettingsError(f"{variable(name)} is not a setting of Trellis.{hint}")
        try:
            return cls(**{name: value for name, value in values.items() if value})  # set to nothing is not set
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            problem = str(first["msg"]).removeprefix("Value error, ")
            described = cls.model_fields[name].description
            shown = "" if name in _MAY_HOLD_A_PASSWORD else f" to {first['input']!r}"
            raise SettingsError(f"{variable(name)} is set{shown}, which is not allowed: {problem}. {described}") from None


@cache
def variable(name: str) -> str:
    """Give the environment variable of a field: `rate_limit` → `TRELLIS_RATE_LIMIT`."""
    return PREFIX + name.upper()
