"""The client that openapi-python-client makes of the document, used against a running service."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fixture_types import MakeKey
from tests.service_process import Service

_GENERATOR: Final = Path(sys.executable).with_name("openapi-python-client")
_PACKAGE: Final = "trellis_client"

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

Module = Callable[[str], Any]


@pytest.fixture
def module(service: Service, tmp_path: Path) -> Iterator[Module]:
    """Generate the client of the running service; give what imports a module of it."""
    (document := tmp_path / "openapi.json").write_bytes(service.client.get("openapi.json").content)
    (config := tmp_path / "config.yaml").write_text("post_hooks: []\n")  # they only tidy up
    target = tmp_path / "clients" / _PACKAGE
    target.parent.mkdir()
    options: list[str | Path] = [
        "--path",
        document,
        "--output-path",
        target,
        "--meta",
        "none",
        "--config",
        config,
        "--fail-on-warning",
    ]
    done = subprocess.run([_GENERATOR, "generate", *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(target.parent)
        yield lambda name: import_module(f"{_PACKAGE}.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == _PACKAGE]:
        del sys.modules[name]


def _check_types(folder: Path) -> None:
    """See that a program which uses the client passes mypy's strict checks."""
    shutil.copy(Path(__file__).with_name("program.py.txt"), folder / "program.py")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_client_made_of_the_document_works(module: Module, service: Service, key: MakeKey, tmp_path: Path) -> None:
    _check_types(tmp_path / "clients")
    models = module("models")
    client = module("client").AuthenticatedClient(base_url=f"{service.address}/api", token=key("*"))

    def call(operation: str, *positional: Any, **named: Any) -> Any:
        return module(f"api.{operation}").sync_detailed(*positional, client=client, **named)

    with client:
        assert "forums.create" in call("trellis.core_hello").parsed.key.operations
        assert call("forums.forums_list", per_page=1).parsed.total_results == 0

        permissions = models.ForumPermissions(view="*", reply=[3, 4])
        wanted = models.ForumInput(name="From Python", type_=models.ForumInputType.QUESTIONS, permissions=permissions)
        assert call("forums.forums_create", body=wanted, dry_run=True).status_code == 200
        made = call("forums.forums_create", body=wanted, idempotency_key="once")
        assert (made.status_code, made.parsed.name, made.parsed.permissions.reply) == (201, "From Python", [3, 4])
        assert call("forums.forums_create", body=wanted, idempotency_key="once").parsed == made.parsed

        number = made.parsed.id
        got = call("forums.forums_get", number)
        assert got.parsed == made.parsed
        changes = models.ForumChanges(description="<p>Changed.</p>", password=None)
        changed = call("forums.forums_update", number, body=changes, if_match=got.headers["etag"])
        assert (changed.status_code, changed.parsed.description) == (200, "<p>Changed.</p>")
        stale = call("forums.forums_update", number, body=changes, if_match=got.headers["etag"])
        assert (stale.status_code, stale.parsed.error_message.value) == (412, "PRECONDITION_FAILED")

        found = call("forums.forums_list", ids=f"{number}", parent_id="root", sort_by=models.ForumsListSortBy.NAME)
        assert [record.id for record in found.parsed.results] == [number]

        assert call("forums.forums_delete", number, dry_run=True).parsed.deleted.ids == [number]
        gone = call("forums.forums_delete", number)
        assert (gone.status_code, gone.parsed) == (200, None)
        events = call("events.events_list", resource="forums", resource_id=number).parsed.results
        assert [type(one).__name__ for one in events] == ["ForumEvent"] * 3
        assert [one.type_.value for one in events] == ["forum.created", "forum.updated", "forum.deleted"]
        assert (events[1].before.description, events[1].after.description) == ("", "<p>Changed.</p>")
        assert [name.value for name in events[1].changed] == ["description"]
        tried = call("events.events_restore", events[2].seq, dry_run=True)
        assert (tried.parsed.dry_run, tried.parsed.restored.ids) == (True, [number])
        others = call("events.events_list", resource="keys").parsed.results
        assert {type(one).__name__ for one in others} == {"OtherEvent"}
        again = call("forums.forums_create", body=wanted, idempotency_key="once")
        assert (again.status_code, again.parsed.error_message.value) == (409, "IDEMPOTENCY_RECORD_GONE")
        assert again.parsed.event == events[2].seq
        missing = call("forums.forums_get", number)
        assert (missing.status_code, missing.parsed.error_code) == (404, "1F363/1")
        _send_forms(models, module("api.calendars.calendars_create"), client)


def _send_forms(models: Any, create: Any, client: Any) -> None:
    """See that forms of either encoding are taken."""
    form = create.sync(client=client, body=models.CalendarsCreateDataBody(name="As a form", color="#10b981"))
    assert (form.name, form.color) == ("As a form", "#10B981")
    parts = create.sync(client=client, body=models.CalendarsCreateFilesBody(name="In parts", allow_reviews=False))
    assert (parts.name, parts.allow_reviews) == ("In parts", False)
