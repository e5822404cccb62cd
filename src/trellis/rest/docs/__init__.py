"""The reference and the OpenAPI document, generated from the catalogue."""

from trellis.rest.docs.openapi import document
from trellis.rest.docs.reference import Reference

__all__ = ["Reference", "document"]
