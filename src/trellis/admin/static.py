"""The panel's own style sheets and scripts, at URLs that change with their content, so browsers may cache them for a year."""

import asyncio
import gzip
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.http.design import STATIC as SHARED
from trellis.languages import encode_script_texts, read_script_catalogues

_FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
_WORKER: Final = "answers.js"  # the script that watches over all pages of the panel, though it is in this folder
_SHARED: Final = "panel.js"  # the script that every page loads
_TEXTS: Final = re.compile(r"texts-([A-Za-z-]{2,20})\.json")
_READS_GZIP: Final = re.compile(r"(?:^|,)\s*gzip\s*(?:$|,|;(?!\s*q=0(?:\.0*)?\s*(?:$|,)))", re.IGNORECASE)  # "gzip;q=0" says no
_IMPORT: Final = re.compile(r'^import (\{ [\w, ]+ \}) from "\./([a-z]+)\.js";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:(?:async )?function|class|const) (\w+))", re.MULTILINE)


class Static:
    """All files, in memory. Their path contains one digest of all files, so scripts can name each other by plain names.

    The texts of scripts in each language are served with them, such as `texts-de.json`.
    """

    def __init__(self, base: str) -> None:
        self._files = {file.name: file.read_bytes() for file in _find_files() if file.suffix in _TYPES}
        self._served: dict[str, tuple[bytes, bytes]] = {}  # what has been asked for: as it is, and compressed
        digest = hashlib.sha256(Path(__file__).read_bytes())  # this module decides how scripts are joined
        for name, content in (*self._files.items(), *read_script_catalogues().items()):
            digest.update(name.encode() + b"\0" + content)
        self._digest = digest.hexdigest()[:12]
        self._base = base

    def address(self, name: str) -> str:
        """Return the URL of a file. Raises LookupError for an unknown name, which is a programming error."""
        if name not in self._files and not _TEXTS.fullmatch(name):
            raise LookupError(name)
        return f"{self._base}/{self._digest}/{name}"

    async def serve(self, request: Request) -> Response:
        """Respond with a file. A URL from before an upgrade returns the current file, which is not cached."""
        name = request.path_params["name"]
        if name not in self._served and (forms := await asyncio.to_thread(self._prepare, name)):
            self._served[name] = forms
        if name not in self._served:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        content, compressed = self._served[name]
        kept = "public, max-age=31536000, immutable" if request.path_params["digest"] == self._digest else "no-store"
        headers = {"cache-control": kept, "vary": "accept-encoding"}
        if name == _WORKER:
            headers["service-worker-allowed"] = f"{PREFIX}/"
        if _READS_GZIP.search(request.headers.get("accept-encoding", "")):
            headers["content-encoding"] = "gzip"
            content = compressed
        return Response(content, headers=headers, media_type=_TYPES[Path(name).suffix])

    def _prepare(self, name: str) -> tuple[bytes, bytes] | None:
        texts = _TEXTS.fullmatch(name)
        content = encode_script_texts(texts[1]) if texts else self._files.get(name)
        if content is not None and name.endswith(".js") and name != _WORKER:
            content = join_modules(name, self._files).encode()
        return None if content is None else (content, gzip.compress(content))


def join_modules(name: str, files: Mapping[str, bytes]) -> str:
    """Return a script together with the modules that it imports, each in a block of its own, after those that it needs itself.

    A browser learns of a module only from one that imports it: on a slow line, it would wait for each in turn. The modules of the
    script that every page loads are imported from that script, so that each module runs once.
    """
    shared = _list_modules(_SHARED, files)
    if name == _SHARED:
        return "export const modules = {};\n" + "".join(map(_enclose, shared, shared.values()))
    own = {one: source for one, source in _list_modules(name, files).items() if one not in shared}
    return f'import {{ modules }} from "./{_SHARED}";\n' + "".join(map(_enclose, own, own.values()))


def _list_modules(name: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the source of a script and of all modules that it imports, in the order in which they run."""
    found: dict[str, str] = {}

    def add(one: str) -> None:
        source = files[one].decode()
        for _, other in _IMPORT.findall(source):
            if f"{other}.js" not in found:
                add(f"{other}.js")
        found[one] = source

    add(name)
    return found


def _enclose(name: str, source: str) -> str:
    exported = ", ".join(_EXPORT.findall(source))
    block = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", source))
    return f"{{ // {name}\n{block}modules.{name.removesuffix('.js')} = {{ {exported} }};\n}}\n"


def _find_files() -> list[Path]:
    """Return the panel's own files, and those that it shares with the reference."""
    return sorted(file for folder in (_FOLDER, SHARED) for file in folder.iterdir())
