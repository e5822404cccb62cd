"""Parses the texts of variables. Each parser raises ValueError with the rule that the text breaks."""

import os
import re
import stat
from collections.abc import Callable
from functools import cache
from io import StringIO
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

PREFIX: Final = "TRELLIS_"  # of the variables
DOTENV: Final = ".env"  # the file of settings, in the folder where the program is started
_FLAGS: Final = dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True) | dict.fromkeys(
    ("0", "false", "f", "no", "n", "off"), False
)
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
# The user and the password in the address of a database, as SQLAlchemy finds them: the password may contain / ? # and [.
_USER: Final = re.compile(r"//[^:/@]*(:[^@]*)?@")
# The same, after which there is a further @ in the host, or before a slash in what follows it: all that is part of the password.
_UNESCAPED: Final = re.compile(r"[a-z]+://(?>[^:/]*(:[^@]*)?@)[^/?]*(@|[/?][^=@]*@[^=]*/)")
_LONGEST_SECRET: Final = 64 * 1024  # characters in its file
_SINGLE_QUOTED: Final = re.compile(r"[^=]*=[^\S\r\n]*'")  # a line of a settings file


class SettingsError(Exception):
    """A setting is unknown or malformed; the text names it and says what is allowed."""


def number(least: int, most: int) -> Callable[[str], int]:
    """Return a parser of whole numbers within these bounds."""

    def parse(text: str) -> int:
        if re.fullmatch(r"\s*[+-]?[0-9]+\s*", text, re.ASCII) and len(text) < 30 and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"must be a whole number from {least:,} to {most:,}")

    return parse


def matching(pattern: str, rule: str) -> Callable[[str], str]:
    """Return a parser of texts that match a pattern as a whole; `rule` is what the text must be."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(rule)
        return text

    return parse


# The name or the address of a machine.
parse_host: Final = matching(
    r"[A-Za-z0-9_.-]{1,253}|[0-9a-fA-F:.]{2,45}", "must be the name or the address of a machine, without a port"
)
# The sender of mail: an address, or a name and an address.
parse_sender: Final = matching(
    r"(?:[^<>@\x00-\x1f\x7f]{1,100} )?<[!-;=?A-~]{1,64}@[A-Za-z0-9.-]{1,253}>|[!-;=?A-~]{1,64}@[A-Za-z0-9.-]{1,253}",
    "must be an address such as trellis@example.com, or `Name <address>`",
)
parse_name: Final = matching(r"[A-Za-z0-9._-]{1,60}", "must be 1 to 60 letters, digits, dots, hyphens and underscores")
# The issuer of an OpenID provider. It is compared letter by letter, so nothing is removed from it.
parse_issuer: Final = matching(
    r"https://[^\s/?#]+(/[^\s?#]*)?|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/[^\s?#]*)?",
    "must be an address that begins with https:// (http:// on this machine only), without a query",
)


def parse_flag(text: str) -> bool:
    """Parse on or off."""
    if (value := _FLAGS.get(text.lower())) is None:
        raise ValueError("must be on or off")
    return value


def parse_database_url(text: str) -> str:
    """Parse the address of a database."""
    if not text.startswith(("sqlite:///", "postgresql://", "postgres://")) or text == "sqlite:///":
        raise ValueError("must begin with sqlite:/// (and name a file) or postgresql://")
    if not text.startswith("sqlite") and _UNESCAPED.match(text):  # or a part of the password is taken for the host, and shown
        raise ValueError("must have no @ in its password: write it as %40")
    return text


def parse_counter(text: str) -> str:
    """Parse the address of the storage where requests are counted."""
    if not re.fullmatch(r"memory://|rediss?://\S+", text):
        raise ValueError("must be memory:// or begin with redis:// or rediss://")
    # Otherwise, a part of the password may be taken for the port, and shown.
    if text != "memory://" and not (re.fullmatch(r"\w+://[^/?#]+([/?][^#@]*)?", text) and _has_host(text)):
        raise ValueError("must name a host and, if any, its port, and have / as %2F, ? as %3F and # as %23 in its password")
    return text


def parse_web_address(text: str) -> str:
    """Parse a web address; slashes at its end are removed."""
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text) or not _has_host(text):
        raise ValueError("must be an address that begins with http:// or https://, without blanks")
    return text.rstrip("/")


def _has_host(address: str) -> bool:
    """Return whether an address contains a host and, if it has a port, a valid one."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def parse_public_address(text: str) -> str:
    """Parse a web address that is used in response headers, which may contain only ASCII."""
    address = parse_web_address(text)
    if not address.isascii():
        raise ValueError("must be in ASCII, as browsers send it: a host such as bücher.example is xn--bcher-kva.example")
    return address


def parse_secret(text: str) -> str:
    """Parse a secret, which must be too long to guess."""
    if len(text) < 16:
        raise ValueError("must have at least 16 characters")
    return text


def parse_digests(text: str) -> str:
    """Parse the name of a file of SHA-1 digests."""
    try:
        with Path(text).open("rb") as file:
            first = file.readline(200)
    except OSError as error:
        raise ValueError(f"must name a file that can be read ({error.strerror})") from None
    if not re.match(rb"[0-9A-Fa-f]{40}(:[0-9]+)?\s*$", first):
        raise ValueError("must name a file of SHA-1 digests in hexadecimal, one a line, in order")
    return text


def parse_listener(text: str) -> str:
    """Parse an address and a port."""
    host, _, port = text.strip().rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or int(port) > 65_535 or (":" in host and not host.startswith("[")):
        raise ValueError("must be a port, or an address and a port, such as 127.0.0.1:9464 or [::1]:9464")
    return f"{host or '127.0.0.1'}:{port}"


def parse_list(text: str) -> tuple[str, ...]:
    """Parse words separated by commas."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def parse_networks(text: str) -> tuple[str, ...]:
    """Parse addresses and networks separated by commas."""
    for part in (parts := parse_list(text)):
        network = ip_network(part, strict=False)  # its error names the part and says what is wrong with it
        if "/" in part and ip_interface(part).ip != network.network_address:
            raise ValueError(
                f"{part} is an address with the length of a network: write the network, {network}, or the address alone"
            )
    return parts


def parse_hosts(text: str) -> tuple[str, ...]:
    """Parse names and addresses of machines separated by commas; `*.` before a name means all below it."""
    hosts = parse_list(text.lower())
    for host in hosts:
        if not re.fullmatch(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|[0-9a-f:.]{2,45}", host):
            raise ValueError(f"{host} is not the name or the address of a machine, such as hooks.example.com or *.example.com")
    return hosts


def parse_origins(text: str) -> tuple[str, ...]:
    """Parse origins of pages separated by commas."""
    return tuple(map(_parse_origin, parse_list(text)))


def _parse_origin(text: str) -> str:
    """Parse an origin, and return it as browsers send it: in lower case, without the usual port or a slash at the end."""
    if found := re.fullmatch(r"(https?)://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/?", text, re.IGNORECASE | re.ASCII):
        scheme, host, port = (part or "" for part in found.groups())
        return f"{scheme}://{host}{'' if port == _USUAL_PORTS[scheme.lower()] else port}".lower()
    if re.fullmatch(r"\*|null|(?!https?:)[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#]*", text, re.IGNORECASE):  # of an app or a file
        return text
    raise ValueError(f"{text} is not an origin, such as https://app.example.com, which has no path")


def choice(*allowed: str) -> Callable[[str], str]:
    """Return a parser that accepts one of these words."""

    def parse(text: str) -> str:
        if (chosen := text.strip().lower()) in allowed:
            return chosen
        raise ValueError(f"must be one of {', '.join(allowed)}")

    return parse


def parse_scopes(text: str) -> str:
    """Parse OAuth scopes separated by blanks or commas."""
    if "openid" not in (scopes := re.split(r"[\s,]+", text.strip())):
        raise ValueError("must have openid among its words, which have blanks between")
    return " ".join(dict.fromkeys(scopes))


def parse_group_roles(text: str) -> str:
    """Parse which role each group has: `GROUP=ROLE; GROUP=ROLE:KIND,KIND`. Return it tidied, for `split_group_roles`."""
    pairs = [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]
    for pair in pairs:
        group, _, role = pair.rpartition("=")
        if not group.strip() or not re.fullmatch(r"[a-z-]+(:[a-z]+(,[a-z]+)*)?", role.strip()):
            raise ValueError(f"{pair} is not of the form GROUP=ROLE or GROUP=ROLE:KIND,KIND; there are semicolons between several")
    return "; ".join(pairs)


def split_group_roles(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return groups, each with its role and the kinds that it is for, from the text that `parse_group_roles` returned."""
    found = []
    for pair in filter(None, text.split("; ")):
        group, _, given = pair.rpartition("=")
        role, _, kinds = given.strip().partition(":")
        found.append((group.strip(), role, tuple(kinds.split(",")) if kinds else ()))
    return tuple(found)


def is_this_machine(address: str) -> bool:
    """Return whether an address such as `redis://localhost:6379` leads to this machine."""
    try:
        return is_local(urlsplit(address).hostname or "")
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Return whether a host, given by its name or address, is this machine."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_encrypted_database(url: str) -> bool:
    """Return whether a database is on this machine, according to its address, or has its certificate verified.

    Settings that libpq would take from its own variables or a service file are ignored.
    """
    if url.startswith("sqlite"):
        return True
    try:
        parts = urlsplit(_USER.sub("//", url, count=1))
    except ValueError:  # an invalid address, which the database layer refuses
        return False
    options = parse_qs(parts.query)
    if options.get("sslmode", [""])[-1] == "verify-full":
        return True
    hosts = [re.sub(r":[0-9]*$", "", host).strip("[]") for host in parts.netloc.split(",")]
    named = [
        unquote(host) for host in (*hosts, *",".join(options.get("host", []) + options.get("hostaddr", [])).split(",")) if host
    ]
    return bool(named) and "service" not in options and all(host.startswith("/") or is_local(host) for host in named)


def read_secret_file(name: str, path: str) -> str:
    """Return the text of the file that a setting names, without blanks around it. Raises SettingsError."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            secret = file.read(_LONGEST_SECRET + 1)  # a device may have no end
    except (OSError, ValueError) as error:  # a name with a NUL, or a text that is not UTF-8
        raise SettingsError(f"The file that {name} names cannot be read: {error}.") from None
    if len(secret) > _LONGEST_SECRET:
        raise SettingsError(f"The file that {name} names has more than {_LONGEST_SECRET:,} characters.")
    if not (secret := secret.strip()):
        raise SettingsError(f"The file that {name} names is empty.")
    return secret


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # it may exist or not, for example in a folder that this user may not look into
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None


def read_dotenv(path: str | None) -> dict[str, str | None]:
    """Return the variables in a settings file; none if there is no such file. Raises SettingsError."""
    if path is None or not _is_file(path):
        return {}
    from dotenv.parser import parse_stream  # noqa: PLC0415  # start-up time: the file rarely exists
    from dotenv.variables import parse_variables  # noqa: PLC0415  # the same

    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingsError(f"The settings file {path} is not text in UTF-8.") from None
    values: dict[str, str | None] = {}
    for line in parse_stream(StringIO(text)):
        at = line.original.line + len(line.original.string) - len(line.original.string.lstrip("\n"))
        if line.error:
            raise SettingsError(
                f"Line {at} of the settings file {path} is not of the form NAME=VALUE, or a quote in it does not end."
            )
        if line.value is None and (line.key or "").startswith(PREFIX):
            raise SettingsError(f"Line {at} of the settings file {path} has no value: write {line.key}=VALUE.")
        if line.key is not None:
            is_literal = line.value is None or _SINGLE_QUOTED.match(line.original.string)  # `${…}` is kept, as in a shell
            parts = () if is_literal else parse_variables(line.value or "")
            values[line.key] = line.value if is_literal else "".join(part.resolve(os.environ | values) for part in parts)
    return values


@cache
def variable(name: str) -> str:
    """Return the environment variable of a field: `rate_limit` → `TRELLIS_RATE_LIMIT`."""
    return PREFIX + name.upper()
