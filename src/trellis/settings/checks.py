"""Refuses settings that contradict each other, or that would send data to another machine unencrypted."""

from collections.abc import Mapping

from trellis.settings.fields import SettingFields
from trellis.settings.texts import SettingsError, is_encrypted_database, is_local, is_this_machine, variable


def require_encrypted(settings: SettingFields, other_addresses: Mapping[str, str]) -> None:
    """Refuse settings and other addresses that would send data to another machine unencrypted. Raises SettingsError."""
    redis, elsewhere = settings.rate_limit_storage, ", unless it points to this machine"
    wanted = {
        "database_url": (is_encrypted_database(settings.database_url), f"needs sslmode=verify-full in its address{elsewhere}"),
        "rate_limit_storage": (not redis.startswith("redis:") or is_this_machine(redis), f"must begin with rediss://{elsewhere}"),
        "smtp_tls": (
            settings.smtp_tls != "off" or is_local(settings.smtp_host or "localhost"),
            f"must not be off, unless {variable('smtp_host')} is this machine",
        ),
        "public_url": (settings.is_https, "must begin with https://"),
    }
    told = {variable(name): judged for name, judged in wanted.items()}
    for name, url in other_addresses.items():
        told[name] = (not url or url.startswith("https://") or is_this_machine(url), f"must begin with https://{elsewhere}")
    for name, (holds, what) in told.items():
        if not holds:
            raise SettingsError(f"{variable('require_tls')} is on: {name} {what}.")


def require_whole(settings: SettingFields) -> None:
    """Require the settings without which others have no effect. Raises SettingsError."""
    _require_whole_mail(settings)
    if settings.sso_issuer is None:
        return
    if settings.sso_client_id is None:
        raise SettingsError("TRELLIS_SSO_ISSUER is set and TRELLIS_SSO_CLIENT_ID is not. The provider issues it.")
    if settings.public_url is None:
        raise SettingsError(
            "TRELLIS_SSO_ISSUER is set and TRELLIS_PUBLIC_URL is not: the provider sends people back to an address below it, "
            "/admin/sign-on/callback, which has to be registered there."
        )
    if settings.sso_new_administrators and not settings.sso_roles:
        raise SettingsError("TRELLIS_SSO_NEW_ADMINISTRATORS needs TRELLIS_SSO_ROLES: without it, nobody would get a role.")


def _require_whole_mail(settings: SettingFields) -> None:
    """Refuse mail settings that do not fit together. Raises SettingsError."""
    if settings.smtp_host is None:
        return
    if settings.smtp_from is None:
        raise SettingsError("TRELLIS_SMTP_HOST is set, but not TRELLIS_SMTP_FROM: give the address that mail comes from.")
    if settings.smtp_password and settings.smtp_password_file:
        raise SettingsError("TRELLIS_SMTP_PASSWORD and TRELLIS_SMTP_PASSWORD_FILE are both set. Set only one of them.")
    if settings.smtp_user and not (settings.smtp_password or settings.smtp_password_file):
        raise SettingsError("TRELLIS_SMTP_USER is set, but neither TRELLIS_SMTP_PASSWORD nor TRELLIS_SMTP_PASSWORD_FILE.")
    if settings.smtp_user and settings.smtp_tls == "off" and not is_local(settings.smtp_host):
        raise SettingsError("TRELLIS_SMTP_TLS is off, and TRELLIS_SMTP_USER is set: the password would be sent unencrypted.")
