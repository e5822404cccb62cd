"""The metrics that a monitoring system such as Prometheus reads at /metrics."""

from trellis.metrics.app import PATH, Metrics
