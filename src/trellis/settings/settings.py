"""Reads the settings from TRELLIS_* variables and a .env file when the program starts, and not before."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, Self

from trellis.settings.checks import require_encrypted, require_whole
from trellis.settings.fields import SettingFields
from trellis.settings.texts import DOTENV, PREFIX, SettingsError, read_dotenv, read_secret_file, variable

# Settings that may be in a file named by TRELLIS_…_FILE, where a vault or a container's secrets put them.
_MAY_BE_IN_A_FILE = ("database_url", "rate_limit_storage", "webhook_key", "second_factor_key", "metrics_token", "sso_client_secret")
# The variables for where OpenTelemetry sends spans, which reads them by itself.
_OTHER_ADDRESSES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_MAY_HOLD_A_PASSWORD = {
    "database_url",
    "rate_limit_storage",
    "webhook_key",
    "metrics_token",
    "second_factor_key",
    "sso_client_secret",
    "smtp_password",
}
_ADDRESSES = {"database_url", "rate_limit_storage"}  # they contain a password only before an @


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(SettingFields):
    """Everything that an operator can set. The variable of a field is its name in capitals after TRELLIS_."""

    @property
    def changed(self) -> dict[str, str]:
        """The settings that differ from their defaults, by variable, as they may be shown: "(set)" for possible secrets."""
        return {
            variable(name): "(set)" if name in _MAY_HOLD_A_PASSWORD else _write(value)
            for name, setting in definitions().items()
            if (value := getattr(self, name)) != setting.default
        }

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None, dotenv: str | None = DOTENV) -> Self:
        """Read the settings.

        The environment wins over the .env file, and a variable that is empty counts as not set. Raises SettingsError, with a
        sentence that names the setting, when one is unknown or malformed.
        """
        given = read_dotenv(dotenv)
        environment = os.environ if environment is None else environment
        given |= {name: text for name, text in environment.items() if text or name not in given}
        _require_capitals(given)
        values = {name.removeprefix(PREFIX).lower(): text for name, text in given.items() if name.startswith(PREFIX)}
        for name, text in values.items():
            if text is not None and not _is_utf8(text):
                raise SettingsError(f"{variable(name)} is not text in UTF-8.")
        for name in _MAY_BE_IN_A_FILE:
            if path := values.pop(f"{name}_file", None):
                if values.get(name):
                    raise SettingsError(f"{variable(name)} and {variable(name)}_FILE are both set. Set only one of them.")
                values[name] = read_secret_file(f"{variable(name)}_FILE", path)
        known = definitions()
        for name in values:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f" Did you mean {variable(near[0])}?" if near else " docs/settings.md lists the settings."
                raise SettingsError(f"{variable(name)} is not a setting of Trellis.{hint}")
        settings = cls(**{name: _parse(known[name], text) for name, text in values.items() if text})  # an empty one is not set
        require_whole(settings)
        if settings.require_tls:
            require_encrypted(settings, {name: given.get(name) or "" for name in _OTHER_ADDRESSES})
        return settings


def _require_capitals(given: Mapping[str, str | None]) -> None:
    """Refuse a setting whose name is not in capitals, and which would have no effect. Raises SettingsError."""
    known = {variable(name) for name in definitions()} | {f"{variable(name)}_FILE" for name in _MAY_BE_IN_A_FILE}
    for name in given:
        if name not in known and name.upper() in known:
            raise SettingsError(f"{name} must be in capitals: {name.upper()}.")


def _is_utf8(text: str) -> bool:
    """Return whether a variable of the environment is UTF-8; Python puts surrogates in place of bytes that are not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse(setting: "Field[Any]", text: str) -> Any:
    try:
        return setting.metadata["parse"](text)
    except ValueError as error:
        shown = "" if setting.name in _MAY_HOLD_A_PASSWORD else f" to {text!r}"
        raise SettingsError(
            f"{variable(setting.name)} is set{shown}, which is not allowed: {error}. {description(setting.name)}"
        ) from None


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def holds_secrets(dotenv: str) -> bool:
    """Return whether a settings file contains a password or another secret. Raises SettingsError."""
    given = {name.removeprefix(PREFIX).lower(): text for name, text in read_dotenv(dotenv).items()}
    return any(text and ("@" in text or name not in _ADDRESSES) for name, text in given.items() if name in _MAY_HOLD_A_PASSWORD)


def definitions() -> "dict[str, Field[Any]]":
    """Return the settings by name."""
    return {setting.name: setting for setting in fields(Settings)}


def description(name: str) -> str:
    """Return the description of a setting."""
    return str(definitions()[name].metadata["description"])
