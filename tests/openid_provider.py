"""An OpenID provider that does what it is told: a good one, until a test makes it hostile."""

import base64
import hashlib
import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

from joserfc import jws, jwt
from joserfc.jwk import RSAKey

from tests.local_server import LocalServer, QuietHandler

CLIENT = "https://community.example/: trellis für alle"
SECRET = "a secret / with + what basic must encode"


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  # the standard library's name
        self._answer("")

    def do_POST(self) -> None:  # noqa: N802  # as above
        self._answer(self.rfile.read(int(self.headers.get("content-length", 0))).decode())

    def _answer(self, body: str) -> None:
        provider: OpenIdProvider = self.server.owner
        path = urlsplit(self.path).path
        provider.asked[path] += 1
        provider.wait(path)
        status, answer = provider.answer(path, dict(parse_qsl(body)), self.headers)
        raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class OpenIdProvider(LocalServer):
    """A provider. `asked` counts requests by path.

    `metadata`, `claims` and `header` are put over what a good one would say; `signs` makes an ID token of header and claims;
    `answers` take the place of what a path says; a path in `slow` waits until `go_on` is set. `published` are the keys it names.
    """

    handler: ClassVar[type[QuietHandler]] = _Handler

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.key = _new_key("one")
        self.published = [self.key]
        self.asked: Counter[str] = Counter()
        self.metadata: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.userinfo: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.signs: Callable[[dict[str, Any], dict[str, Any]], str] = self._sign
        self.answers: dict[str, tuple[int, Any]] = {}
        self.slow: set[str] = set()
        self.go_on = threading.Event()
        self.subject = "248289761001"
        self._codes: dict[str, dict[str, str]] = {}

    @property
    def issuer(self) -> str:
        """Its issuer."""
        return f"http://127.0.0.1:{self.port}/realm"

    def rotate(self) -> None:
        """Sign with another key from now on, and name both."""
        self.key = _new_key(secrets.token_hex(4))
        self.published.append(self.key)

    def sign_in(self, address: str, **query: str) -> str:
        """Sign somebody in who was sent to this address; return the address to which they are sent back."""
        asked = {name: values[-1] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        answer = {"code": code, "state": asked["state"], "iss": self.issuer, **query}
        return f"{asked['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value})}"

    def wait(self, path: str) -> None:
        """Wait where a test has made this path slow."""
        if path in self.slow:
            self.go_on.wait(120)

    def answer(self, path: str, form: Mapping[str, str], headers: Any) -> tuple[int, Any]:
        """Answer a request."""
        name = path.removeprefix("/realm")
        if name in self.answers:
            return self.answers[name]
        if name == "/.well-known/openid-configuration":
            return 200, self._describe()
        if name == "/jwks":
            return 200, {"keys": [{**key.as_dict(private=False), "use": "sig"} for key in self.published]}
        if name == "/token":
            return self._exchange(form, headers)
        if name == "/userinfo" and headers.get("authorization", "").startswith("Bearer "):
            return 200, {"sub": self.subject, **self.userinfo}
        return 404, {}

    def _describe(self) -> dict[str, Any]:
        ends = {"authorization_endpoint": "/auth", "token_endpoint": "/token", "jwks_uri": "/jwks", "end_session_endpoint": "/end"}
        return {
            "issuer": self.issuer,
            **{name: self.issuer + path for name, path in ends.items()},
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "id_token_signing_alg_values_supported": ["RS256"],
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        } | self.metadata

    def _exchange(self, form: Mapping[str, str], headers: Any) -> tuple[int, Any]:
        asked = self._codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        if asked is None or asked["code_challenge"] != challenge or asked["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        if headers.get("authorization", "") != _basic():
            return 401, {"error": "invalid_client"}
        now = int(self.now())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "auth_time": now,
            "nonce": asked["nonce"],
        }
        token = self.signs({"alg": "RS256", "kid": self.key.kid} | self.header, claims | self.claims)
        return 200, {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer", "id_token": token}

    def _sign(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        return jwt.encode(header, {name: value for name, value in claims.items() if value is not None}, self.key)


def unsigned(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Make an ID token that nobody has signed."""
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims))
    return ".".join((*parts, ""))


def sign_nested(header: dict[str, Any], _claims: dict[str, Any]) -> str:
    """Make an ID token that is signed well, but whose claims are nested deeply."""
    return jws.serialize_compact(header, b"[" * 40_000, _new_key("one"))


@cache  # to make one takes longer than most tests
def _new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid})


def _basic() -> str:
    return "Basic " + base64.b64encode(f"{quote(CLIENT, safe='')}:{quote(SECRET, safe='')}".encode()).decode()
