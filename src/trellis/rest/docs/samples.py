"""Example requests in curl, Python and JavaScript, with syntax highlighting for the page."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import Markup, escape

from trellis.http.routes import Route
from trellis.rest.docs.examples import given_of, target_of
from trellis.rest.docs.schemas import takes_body

LANGUAGES: Final[Mapping[str, str]] = {"curl": "curl", "python": "Python", "javascript": "JavaScript"}
KEY: Final = "API_KEY"  # the environment variable from which the samples read the key


def samples_of(route: Route, base_url: str) -> dict[str, str]:
    """Return the example request of a route in each language. They run as printed if the key is in the environment."""
    given = given_of(route.operation)
    body = given if takes_body(route.operation) else None
    url = example_url(route, base_url)
    if body is None and given:
        url += "?" + urlencode(given)
    return {
        "curl": _curl(route.method, url, body),
        "python": _python(route.method, url, body),
        "javascript": _javascript(route.method, url, body),
    }


def example_url(route: Route, base_url: str) -> str:
    """Return the address of the record or list in a route's example."""
    named = route.operation.path_field
    target = target_of(route.operation) if named is None else named.example
    return f"{base_url}/api{route.path}".replace(f"{{{route.verb.path_parameter}}}", str(target))


def pretty(value: Any) -> str:
    """Format JSON for readers: short lists and objects on one line."""
    return _spread(value, 0, 2, _json)


def _curl(method: str, url: str, body: Any) -> str:
    told = "" if method == ("GET" if body is None else "POST") else f" -X {method}"  # curl uses POST if there is a body
    lines = [f'curl{told} "{url}"', f'  -H "Authorization: Bearer ${KEY}"']
    if body is not None:
        text = pretty(body).replace("'", "'\\''").replace("\n", "\n  ")
        lines += ['  -H "Content-Type: application/json"', f"  -d '{text}'"]
    return " \\\n".join(lines)


def _python(method: str, url: str, body: Any) -> str:
    sent = "" if body is None else f"\n    json={_spread(body, 4, 4, _literal)},"
    return f"""\
import os

import httpx  # pip install httpx

response = httpx.{method.lower()}(
    "{url}",
    headers={{"Authorization": f"Bearer {{os.environ['{KEY}']}}"}},{sent}
)
if response.is_error:
    raise SystemExit(response.text)
print(response.json())"""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Any) -> str:
    return {True: "True", False: "False", None: "None"}[value] if value is None or isinstance(value, bool) else _json(value)


def _javascript(method: str, url: str, body: Any) -> str:
    announced = "" if body is None else '\n    "Content-Type": "application/json",'
    sent = "" if body is None else f"\n  body: JSON.stringify({_spread(body, 2, 2, _json)}),"
    how = "" if method == "GET" else f'\n  method: "{method}",'
    return f"""\
const response = await fetch("{url}", {{{how}
  headers: {{
    Authorization: `Bearer ${{process.env.{KEY}}}`,{announced}
  }},{sent}
}});
if (!response.ok) throw new Error(await response.text());
console.log(await response.json());"""


_WIDE: Final = 60


def _spread(value: Any, indent: int, step: int, literal: Any) -> str:
    """Format a value over as many lines as it needs; `literal` formats values other than lists and objects."""
    flat = _flat(value, literal)
    if not isinstance(value, dict | list) or not value or (len(flat) <= _WIDE and not isinstance(value, dict)):
        return flat
    if isinstance(value, dict) and indent and len(flat) <= _WIDE and not any(isinstance(one, dict) for one in value.values()):
        return flat
    inner = " " * (indent + step)
    if isinstance(value, dict):
        rows = [f"{json.dumps(name)}: {_spread(one, indent + step, step, literal)}" for name, one in value.items()]
    else:
        rows = [_spread(one, indent + step, step, literal) for one in value]
    first, last = ("{", "}") if isinstance(value, dict) else ("[", "]")
    comma = "," if literal is _literal else ""
    return f"{first}\n{inner}" + f",\n{inner}".join(rows) + f"{comma}\n{' ' * indent}{last}"


def _flat(value: Any, literal: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_flat(one, literal)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flat(one, literal) for one in value) + "]"
    return str(literal(value))


# --- syntax highlighting ------------------------------------------------------------------------------------------

_TEXT: Final = r'"(?:[^"\\\n]|\\.)*"'
_NUMBER: Final = r"(?<![\w.])-?\d+(?:\.\d+)?\b"
_COLOURS: Final[Mapping[str, re.Pattern[str]]] = {
    "json": re.compile(rf"(?P<name>{_TEXT}(?=\s*:))|(?P<text>{_TEXT})|(?P<value>{_NUMBER}|\b(?:true|false|null)\b)"),
    "curl": re.compile(rf"(?P<word>^curl\b)|(?P<option>(?<=\s)-[A-Za-z]\b)|(?P<text>{_TEXT}|'[^']*')"),
    "python": re.compile(
        rf"(?P<word>\b(?:import|print|from|as|if|raise)\b)|(?P<text>f?{_TEXT})|(?P<value>{_NUMBER}|\b(?:True|False|None)\b)"
    ),
    "javascript": re.compile(
        rf"(?P<word>\b(?:const|await|if|throw|new)\b)|(?P<text>{_TEXT}|`[^`]*`)|(?P<value>{_NUMBER}|\b(?:true|false|null)\b)"
    ),
}


def coloured(code: str, language: str) -> Markup:
    """Format code as HTML, with each kind of token in a span of its own class."""
    parts: list[str] = []
    end = 0
    for found in _COLOURS[language].finditer(code):
        parts += [escape(code[end : found.start()]), Markup('<span class="{}">{}</span>').format(f"c-{found.lastgroup}", found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(code[end:])])
