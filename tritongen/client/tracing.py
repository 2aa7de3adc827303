"""OpenTelemetry spans around requests, where opentelemetry-api is installed: W3C's trace context goes along, so that Triton's own spans join."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from tritongen.client.endpoint import Endpoint, checked_headers
from tritongen.client.flow import Headers

MODULE = "opentelemetry.trace"
"""What an application has imported that has a provider of spans."""


class Span:
    """One request's span.

    Attributes:
        headers: those that pass its context on.
    """

    def __init__(self, opened: Any, headers: Headers) -> None:
        self._opened = opened
        self.headers = headers

    def asks(self, endpoint: Endpoint) -> None:
        """The request goes to this server: the last one is the one that answered, or failed (OpenTelemetry's conventions for `server.address`)."""
        self._opened.set_attribute("server.address", endpoint.host)
        self._opened.set_attribute("server.port", endpoint.port)


@contextlib.contextmanager
def span(model: str) -> Iterator[Span | None]:
    """A client span for one request. An error that leaves the block is recorded there.

    Without opentelemetry-api, or before the application has set a provider of spans up, there are none.
    """
    provider = _provider()
    if provider is None:
        yield None
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    with _tracer(provider).start_as_current_span(f"infer {model}", kind=SpanKind.CLIENT, attributes=_attributes(model)) as opened:
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        yield Span(opened, carrier)


def joined_headers(own: Mapping[str, str] | None, span: Span | None) -> Headers:
    """A request's own headers, as `check_options` left them, and those of its span. A caller who sends a trace context along goes on with that trace.

    Raises InputError (TG069) for headers of the span that cannot be sent.
    """
    given = own or {}
    carried = {} if span is None or "traceparent" in given else checked_headers(span.headers)
    return {**carried, **given}


def _provider() -> Any:
    """The application's provider of spans; None where it has set none up, for which it would have imported the module."""
    trace = sys.modules.get(MODULE)
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider) else provider


@lru_cache(maxsize=1)
def _tracer(provider: Any) -> Any:
    return provider.get_tracer("tritongen")


def _attributes(model: str) -> dict[str, str]:
    return {"rpc.system": "triton", "triton.model": model}


@contextlib.contextmanager
def detached_span(model: str) -> Iterator[Span | None]:
    """The span of a stream: it is never the current one, since the caller's own code runs between the answers."""
    provider = _provider()
    if provider is None:
        yield None
        return
    from opentelemetry import propagate, trace

    opened = _tracer(provider).start_span(f"stream {model}", kind=trace.SpanKind.CLIENT, attributes=_attributes(model))
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=trace.set_span_in_context(opened))
    try:
        yield Span(opened, carrier)
    except Exception as error:
        opened.record_exception(error)
        opened.set_status(trace.StatusCode.ERROR, type(error).__name__)
        raise
    finally:
        opened.end()
