"""The commands about operations: run any of them, undo one, list their routes, print the OpenAPI document."""

from trellis.cli.operations.listing import openapi, routes
from trellis.cli.operations.running import run_app
from trellis.cli.operations.undo import restore
