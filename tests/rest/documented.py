"""The operations as the OpenAPI document describes them, and the records that its examples need."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
from openapi_schema_validator import OAS31Validator, oas31_format_checker
from openapi_spec_validator import validate as validate_document

from tests.fixture_types import Run
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Boolean, Choice, Field
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import operations
from trellis.core.verbs import CREATE
from trellis.http.routes import build_routes
from trellis.rest.docs.examples import EVENT, given_of

Json = dict[str, Any]

# A kind that no file of the package knows of, in about ten lines.
GALLERIES: Final = NodeKind(
    name="galleries",
    singular="photo gallery",
    title="Photo galleries",
    application="Pictures",
    path="/pictures/galleries",
    doc="Where pictures hang.",
    code="P700",
    tree=True,
    fields=(
        Field("layout", Choice({"grid": "In rows.", "wall": "As they fit."}), "How they hang.", default="grid"),
        Field("lit", Boolean(), "Whether the lights are on.", default=True, also=("is_lit",), example=False),
    ),
    options={"view": "See the pictures."},
)

_IN_ORDER: Final = (
    *("create", "get", "get_external", "list", "others"),
    *("update", "put_external", "restore", "delete_external", "delete", "batch", "change set"),
)


@dataclass(frozen=True)
class DocumentedOperation:
    """One operation as the OpenAPI document describes it."""

    document: Json
    name: str
    method: str
    path: str
    told: Json

    def answer(self, status: int) -> Json:
        """What is told of the answer with a status."""
        return resolve_reference(self.document, self.told["responses"][str(status)])

    def example(self, status: int, name: str = "answer") -> Any:
        """The example of an answer."""
        return self.answer(status)["content"]["application/json"]["examples"][name]["value"]

    def keeps(self, answer: httpx.Response) -> None:
        """See that an answer is one of those that were told: status, type, body, headers and, of a refusal, its code."""
        told = self.answer(answer.status_code)
        ours = {name.lower() for name in self.document["components"]["headers"]}
        promised = {name.lower() for name in told["headers"]}
        assert ours & set(answer.headers) <= promised, (self.name, answer.status_code)
        assert "x-request-id" in answer.headers
        if "content" not in told:
            assert answer.content == b""
            return
        content_type = answer.headers["content-type"]
        value = answer.json() if content_type.endswith("json") else answer.text
        validate(self.document, told["content"][content_type]["schema"], value)
        if answer.status_code >= 400:
            code = {"errorCode": answer.json()["errorCode"], "errorMessage": answer.json()["errorMessage"]}
            assert code in told["x-errors"], (self.name, code)


def documented_operations(document: Json) -> Iterator[DocumentedOperation]:
    """Return every operation of a document, so that the example of each finds what the ones before it left."""
    found = [
        DocumentedOperation(document, told["operationId"], method.upper(), path, told)
        for path, methods in document["paths"].items()
        for method, told in methods.items()
    ]
    yield from sorted(found, key=lambda promise: _IN_ORDER.index(_verb(promise)))


def _verb(promise: DocumentedOperation) -> str:
    resource, _, verb = promise.name.partition(".")
    if resource == "changesets":  # that of the batch
        return "change set"
    return verb if verb in _IN_ORDER else "others"


def resolve_reference(document: Json, told: Json) -> Json:
    """Follow a reference."""
    while "$ref" in told:
        at = document
        for step in told["$ref"].removeprefix("#/").split("/"):
            at = at[step]
        told = at
    return told


def validate(document: Json, schema: Json, value: Any) -> None:
    """See that a value is as a schema of the document says (JSON Schema 2020-12, formats included)."""
    whole = {**schema, "components": document["components"]}
    errors = list(OAS31Validator(whole, format_checker=oas31_format_checker).iter_errors(value))
    assert not errors, [error.message for error in errors]


def validate_additions(document: Json, known: Json) -> None:
    """Validate what a document has besides those paths and schemas that a valid one has too."""
    schemas, valid = document["components"]["schemas"], known["components"]["schemas"]
    named = {name: {} if valid.get(name) == schema else schema for name, schema in schemas.items()}
    paths = {path: told for path, told in document["paths"].items() if known["paths"].get(path) != told}
    assert paths, "it has nothing else"
    validate_document({**document, "paths": paths, "components": {**document["components"], "schemas": named}})


def create_example_records(run: Run, catalogue: Catalogue) -> None:
    """Make, as the terminal, what the examples are about and REST cannot make."""
    served = {route.operation.name for route in build_routes(catalogue)}
    create_example_proposal(run, catalogue)
    for kind in {
        route.operation.kind.name: route.operation.kind for route in build_routes(catalogue) if route.operation.kind
    }.values():
        create = next(operation for operation in operations(kind) if operation.verb is CREATE)
        if create.name not in served:
            made = run(create.name, **given_of(create))
            if "events.restore" in served:
                _make_the_event(run, kind.operation("update"), made["id"], made["name"])


def create_example_proposal(run: Run, catalogue: Catalogue) -> None:
    """Propose something, as the terminal: what a call of a key that may only propose it leads to."""
    created = [route.operation for route in build_routes(catalogue) if route.operation.kind and route.verb is CREATE]
    if created and "proposals.approve" in catalogue:
        run("proposals.create", operation=created[0].name, input={"name": "Proposed"})


def _make_the_event(run: Run, update: str, record: int, name: str) -> None:
    """Change a record until the event that the examples take back has come, which leaves it as it was."""
    while (seq := run("events.list", order="newest", limit=1)["results"][0]["seq"]) < EVENT:
        run(update, record, name=name if seq == EVENT - 1 else f"{name} {seq}")
