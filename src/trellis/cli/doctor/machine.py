"""What `trellis doctor` checks outside the database: versions, settings, files, disk, descriptors, addresses, Redis, mail."""

import asyncio
import platform
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trellis import __version__
from trellis.cli.doctor.finding import Finding, doubtful, good, wrong
from trellis.cli.limits import count_descriptors, find_most_descriptors
from trellis.health import LEAST_DISK
from trellis.settings import DOTENV, Settings, definitions, holds_secrets, is_local, is_this_machine, variable
from trellis.store.condition import find_file
from trellis.store.sqlite import describe_wal_reset_bug, find_real_file, library_version

_LITTLE: Final = 2**30  # free bytes


def look_at_versions(settings: Settings) -> Iterator[Finding]:
    """Report the versions of Trellis, Python and SQLite, and a bug of this SQLite that loses writes."""
    yield good("versions", f"Trellis {__version__}, Python {platform.python_version()}, SQLite {library_version()}.")
    if find_file(settings) is not None and (bug := describe_wal_reset_bug()) is not None:
        what, _, action = bug.partition(". ")
        yield wrong("SQLite", f"{what}.", action)


def look_at_settings(settings: Settings) -> Iterator[Finding]:
    """Report the settings that are not at their defaults, and check whether others can read those that are secret."""
    changed = settings.changed
    yield good("settings", ", ".join(f"{name}={value}" for name, value in changed.items()) or "All are at their defaults.")
    file = Path(DOTENV)
    if file.is_file() and file.stat().st_mode & stat.S_IROTH and holds_secrets(DOTENV):
        yield doubtful(
            "settings file", f"Everybody on this machine can read {DOTENV}, which contains secrets.", f"chmod 600 {DOTENV}"
        )


def look_at_second_factors(settings: Settings) -> Iterator[Finding]:
    """Check whether the database alone is enough to make authenticator codes, if everybody needs a second factor."""
    if settings.require_second_factor and settings.second_factor_key is None:
        text = "Everybody needs a second factor, but anybody with a copy of the database can make the codes of authenticator apps."
        name = variable("second_factor_key")
        action = f"Set {name} to a long random text, and keep it: apps that are already set up have to be set up again."
        yield doubtful("second factors", text, action)


def look_at_files(settings: Settings) -> Iterator[Finding]:
    """Check the files of a SQLite database, who may read them, and the disk."""
    if (file := find_file(settings)) is None:
        return
    if not file.is_file():
        return  # the check of the database reports that
    real = find_real_file(file)
    open_files = [
        path for path in (real, Path(f"{real}-wal")) if path.exists() and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    ]
    if any(path.stat().st_mode & stat.S_IROTH for path in open_files):
        text = "Everybody on this machine can read the database, which contains the digests of keys and passwords."
        yield doubtful("files", text, f"chmod 600 {' '.join(map(str, open_files))}")
    else:
        yield good("files", f"Others on this machine cannot read {file}.")
    free = shutil.disk_usage(real.parent).free
    text = f"{_size(free)} are free where the database is, which takes {_size(file.stat().st_size)}."
    if free < LEAST_DISK:
        yield wrong("disk", text, "Free some space: writes fail once the disk is full.")
    elif free < max(_LITTLE, file.stat().st_size):
        yield doubtful("disk", text, "Free some space: a copy of the database, as for a backup or a restore, needs as much again.")
    else:
        yield good("disk", text)


def _size(size: int) -> str:
    """Format a number of bytes for operators."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.1f} MiB"


def look_at_mail(settings: Settings) -> Iterator[Finding]:
    """Check whether the mail server answers, and lets this service sign in."""
    if settings.smtp_host is None:
        yield good("mail", "No mail is sent: there is no server for it.")
        return
    from trellis.mail import MailServer, NotSent  # noqa: PLC0415  # start-up time

    try:
        text = MailServer(settings).check()
    except NotSent as refused:
        yield wrong("mail", str(refused), "Fix that, or correct the settings; mail is given up after about a day.")
        return
    if settings.public_url is None:
        action = f"Set {variable('public_url')}: without it mail has no links, and invitations are not mailed."
        yield doubtful("mail", text, action)
    elif settings.smtp_tls == "off" and not is_local(settings.smtp_host):
        yield doubtful("mail", text, f"Set {variable('smtp_tls')}: otherwise invitation links are sent unencrypted.")
    else:
        yield good("mail", text)


def look_at_descriptors(settings: Settings) -> Iterator[Finding]:
    """Check how many connections a process may have open."""
    most, needed = find_most_descriptors(), count_descriptors(settings)
    if most < needed:
        yield doubtful(
            "descriptors",
            f"A process may open {most:,} files and connections; {settings.connections:,} connections need {needed:,}.",
            f"Raise the limit (ulimit -Hn, LimitNOFILE= of systemd), or lower {variable('connections')}.",
        )
    else:
        yield good("descriptors", f"Enough for {settings.connections:,} connections.")


def look_at_addresses(settings: Settings) -> Iterator[Finding]:
    """Check the addresses under which callers and records are found, and the proxies."""
    public, community = settings.public_url, settings.community_url
    if public is None:
        yield doubtful(
            "public address",
            "It is taken from each request, so links and cookies cannot rely on https.",
            f"Set {variable('public_url')} to the address under which callers reach the service.",
        )
    elif not settings.is_https and not is_this_machine(public):
        yield wrong(
            "public address",
            f"{public} does not use https: keys and passwords can be read in transit.",
            f"Put a proxy with https in front of the service, and set {variable('public_url')} to its address.",
        )
    else:
        yield good("public address", public)
    if community == definitions()["community_url"].default:
        yield doubtful(
            "community",
            f"The addresses of records begin with {community}.",
            f"Set {variable('community_url')} to the community's own address.",
        )
    else:
        yield good("community", community)
    if settings.is_https and not settings.trusted_proxies:
        yield doubtful(
            "proxies",
            "The public address is https, so there is a proxy, but none is trusted: all callers share its address and limits.",
            f"Set {variable('trusted_proxies')} to the proxy's address.",
        )
    elif settings.trusted_proxies:
        yield good("proxies", f"Trusted: {', '.join(settings.trusted_proxies)}.")


def look_at_provider(settings: Settings) -> Iterator[Finding]:
    """Ask the provider of single sign-on, if there is one, for its metadata and its keys."""
    if settings.sso_issuer is None:
        return
    from trellis.openid import Provider, ProviderUnavailable  # noqa: PLC0415  # start-up time: few services have one

    try:
        asyncio.run(Provider(settings).find_keys())
    except ProviderUnavailable as error:
        action = f"Check {variable('sso_issuer')}, and whether this machine can reach it; meanwhile nobody can sign in there."
        yield wrong("single sign-on", f"{settings.sso_issuer}: {error}", action)
    else:
        yield good("single sign-on", f"{settings.sso_issuer} answers, and lists its keys.")


def look_at_redis(settings: Settings) -> Iterator[Finding]:
    """Check whether Redis answers within two seconds, if requests are counted in it."""
    if not settings.rate_limit_storage.startswith("redis"):
        return
    from redis import Redis, RedisError  # noqa: PLC0415  # start-up time: few services count in Redis

    try:
        with Redis.from_url(settings.rate_limit_storage, socket_timeout=2, socket_connect_timeout=2) as redis:
            redis.ping()
    except (RedisError, OSError, ValueError) as error:
        action = f"Start it, or check {variable('rate_limit_storage')}; meanwhile requests are not counted."
        yield wrong("Redis", f"It does not answer: {type(error).__name__}.", action)
    else:
        yield good("Redis", "It answers.")
