"""Spans as an application would have them: one provider for whoever runs tests, since OpenTelemetry lets nobody set another one up."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


def provider() -> TracerProvider:
    """The provider; it is set up the first time."""
    found = trace.get_tracer_provider()
    if not isinstance(found, TracerProvider):
        found = TracerProvider()
        trace.set_tracer_provider(found)
    return found


@contextlib.contextmanager
def collected() -> Iterator[InMemorySpanExporter]:
    """The spans that are over; none is kept after the block, where other tests send many requests."""
    exporter = InMemorySpanExporter()
    provider().add_span_processor(SimpleSpanProcessor(exporter))
    try:
        yield exporter
    finally:
        exporter.shutdown()
        exporter.clear()
