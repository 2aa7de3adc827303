"""OpenTelemetry spans around requests, where opentelemetry-api is installed: W3C's trace context goes along, so that Triton's own spans join."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_NO_SPAN: contextlib.AbstractContextManager[dict[str, str]] = contextlib.nullcontext({})


def span(model: str, url: str) -> contextlib.AbstractContextManager[dict[str, str]]:
    """A client span for one request; the headers that pass its context on. An error that leaves the block is recorded there.

    Without opentelemetry-api, or before the application has set a provider of spans up, there are none.
    """
    if "opentelemetry.trace" not in sys.modules:
        return _NO_SPAN
    provider = _provider()
    return _NO_SPAN if provider is None else _span(_tracer(provider), model, url)


def _provider() -> Any:
    """The application's provider of spans; None where it has set none up, for which it would have imported the module."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider


@lru_cache(maxsize=1)
def _tracer(provider: Any) -> Any:
    return provider.get_tracer("tritongen")


@contextlib.contextmanager
def _span(tracer: Any, model: str, url: str) -> Iterator[dict[str, str]]:
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    with tracer.start_as_current_span(
        f"infer {model}", kind=SpanKind.CLIENT, attributes={"rpc.system": "triton", "triton.model": model, "server.address": url}
    ):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        yield carrier


@contextlib.contextmanager
def detached_span(model: str, url: str) -> Iterator[dict[str, str]]:
    """The span of a stream: it is never the current one, since the caller's own code runs between the answers."""
    provider = _provider()
    if provider is None:
        yield {}
        return
    from opentelemetry import propagate, trace

    attributes = {"rpc.system": "triton", "triton.model": model, "server.address": url}
    opened = _tracer(provider).start_span(f"stream {model}", kind=trace.SpanKind.CLIENT, attributes=attributes)
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=trace.set_span_in_context(opened))
    try:
        yield carrier
    except Exception as error:
        opened.record_exception(error)
        opened.set_status(trace.StatusCode.ERROR, type(error).__name__)
        raise
    finally:
        opened.end()
