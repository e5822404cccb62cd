"""The reference and the OpenAPI document, generated from the catalogue."""

from trellis.rest.docs.openapi import document
from trellis.rest.docs.reference import Reference
from trellis.rest.docs.types import type_in_words
