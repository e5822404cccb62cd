"""The panel's own style sheets and scripts, at URLs that change with their content, so browsers may cache them for a year."""

import asyncio
import hashlib
import re
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
_TEXTS: Final = re.compile(r"texts-([A-Za-z-]{2,20})\.json")


class Static:
    """All files, in memory. Their path contains one digest of all files, so modules can import each other by plain names.

    The texts of scripts in each language are served with them, such as `texts-de.json`.
    """

    def __init__(self, base: str) -> None:
        self._files = {file.name: file.read_bytes() for file in _find_files() if file.suffix in _TYPES}
        digest = hashlib.sha256()
        for name, content in (*self._files.items(), *read_script_catalogues().items()):
            digest.update(name.encode() + b"\0" + content)
        self._digest = digest.hexdigest()[:12]
        self._base = base

    def address(self, name: str) -> str:
        """Return the URL of a file. Raises LookupError for an unknown name, which is a programming error."""
        if name not in self._files:
            raise LookupError(name)
        return f"{self._base}/{self._digest}/{name}"

    async def serve(self, request: Request) -> Response:
        """Respond with a file. A URL from before an upgrade returns the current file, which is not cached."""
        name = request.path_params["name"]
        content = self._files.get(name)
        if texts := _TEXTS.fullmatch(name):
            content = await asyncio.to_thread(encode_script_texts, texts[1])
        if content is None:
            return Response("There is no such file.\n", 404, media_type="text/plain")
        kind = _TYPES[Path(name).suffix]
        kept = "public, max-age=31536000, immutable" if request.path_params["digest"] == self._digest else "no-store"
        headers = {"cache-control": kept} | ({"service-worker-allowed": f"{PREFIX}/"} if name == _WORKER else {})
        return Response(content, headers=headers, media_type=kind)


def _find_files() -> list[Path]:
    """Return the panel's own files, and those that it shares with the reference."""
    return sorted(file for folder in (_FOLDER, SHARED) for file in folder.iterdir())
