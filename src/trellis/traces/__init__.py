"""Traces: spans for OpenTelemetry, and the header with which programs pass on the trace of a request."""

from trellis.traces.loading import load_traces
from trellis.traces.spans import Span, Traces
from trellis.traces.traceparent import TRACEPARENT, find_traceparent, log_fields
