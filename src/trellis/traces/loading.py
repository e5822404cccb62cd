"""Loading OpenTelemetry if traces are configured. A service without traces does not load it."""

import logging
import os
from collections.abc import Mapping
from typing import Final

from trellis.traces.spans import Traces

log = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HTTP: Final = "http/protobuf"


def load_traces(environment: Mapping[str, str] = os.environ) -> Traces | None:
    """Return the traces of this process; None unless OpenTelemetry's variables name an endpoint and spans can be sent there."""
    name = next((name for name in _ENDPOINTS if environment.get(name)), None)
    if name is None or _is_off(environment):
        return None
    if not environment[name].lower().startswith(("http://", "https://")):
        log.warning("There are no traces: %s must begin with http:// or https://.", name)
        return None
    protocol = next((environment[name] for name in _PROTOCOLS if environment.get(name)), _HTTP)
    if protocol != _HTTP:
        log.warning("There are no traces: they are sent by OTLP over HTTP (%s), and %s is asked for.", _HTTP, protocol)
        return None
    try:
        from trellis.traces.sending import SentTraces  # noqa: PLC0415  # its packages are an extra that may not be installed
    except ImportError as error:
        log.warning(
            "There are no traces: OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages for them are not there (%s). Install "
            "trellis-community[traces].",
            error,
        )
        return None
    try:
        return SentTraces()
    except ValueError as error:
        log.warning("There are no traces: a variable of OpenTelemetry has a wrong value (%s).", error)
        return None


def _is_off(environment: Mapping[str, str]) -> bool:
    return environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or environment.get("OTEL_TRACES_EXPORTER") == "none"
