"""Encoding the metrics in the formats of Prometheus and OpenMetrics, with the client library of Prometheus."""

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Exposed
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from trellis.http.api import BOUNDS
from trellis.metrics.sample import Sample
from trellis.metrics.table import METRICS, PREFIX, Metric

_CLASSES: Final = (*(str(bound) for bound in BOUNDS), "+Inf")


class _Collected(Collector):
    def __init__(self, sample: Sample) -> None:
        self._sample = sample

    def collect(self) -> Iterator[Exposed]:
        for metric in METRICS:
            yield _build_histogram(metric, self._sample) if metric.kind == "histogram" else _build_numbers(metric, self._sample)


def _build_numbers(metric: Metric, sample: Sample) -> Exposed:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    exposed = kind(PREFIX + metric.name, metric.doc, labels=metric.labels)
    for (name, labels), value in sample.numbers.items():
        if name == metric.name:
            exposed.add_metric(labels, value)
    return exposed


def _build_histogram(metric: Metric, sample: Sample) -> Exposed:
    exposed = HistogramMetricFamily(PREFIX + metric.name, metric.doc, labels=metric.labels)
    for (name, labels), (classes, total) in sample.histograms.items():
        if name == metric.name:
            exposed.add_metric(labels, list(zip(_CLASSES, accumulate(classes), strict=True)), total)
    return exposed


def encode(sample: Sample, accepted: str) -> tuple[bytes, str]:
    """Encode a sample in the format that the header Accept of a request asks for; return the text and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(sample))
    try:
        encoder, content_type = choose_encoder(accepted)
    except TypeError:  # the library expects a version to consist of numbers
        encoder, content_type = choose_encoder("")
    return encoder(registry), content_type
