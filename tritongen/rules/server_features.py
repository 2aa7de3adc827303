"""Rules: response cache, rate limiter, metrics and decoupled answers, which a server flag or a backend must support."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_HISTOGRAM = "nv_inference_first_response_histogram_ms"
_CACHE_KEY: Key = ("response_cache", "enable")


def decoupled_models(contexts: tuple[ModelContext, ...]) -> frozenset[str]:
    """Names of the models that may answer a request several times: those that say so, and ensembles with such a step."""
    found = {context.name for context in contexts if context.config.model_transaction_policy.decoupled}
    while True:
        more = {context.name for context in contexts if any(step.model_name in found for step in context.config.ensemble_scheduling.step)} - found
        if not more:
            return frozenset(found)
        found |= more


def _uncacheable(context: ModelContext, decoupled: frozenset[str]) -> str:
    if context.config.HasField("sequence_batching"):
        return "sequence_batching"
    if context.config.model_transaction_policy.decoupled:
        return "decoupled responses"
    return "a step that is decoupled" if context.name in decoupled else ""


def _refused_cache(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    decoupled = decoupled_models(contexts)
    for context in contexts:
        reason = _uncacheable(context, decoupled) if context.config.response_cache.enable else ""
        if reason:
            yield Finding(f"the response cache is enabled for a model with {reason}", _CACHE_KEY, "remove response_cache", model=context.name)


def _cache_flag(contexts: tuple[ModelContext, ...]) -> Iterator[Finding]:
    decoupled = decoupled_models(contexts)
    for context in contexts:
        if context.config.response_cache.enable and not _uncacheable(context, decoupled):
            message = "the response cache works only in a server started with --cache-config; otherwise nothing is cached, and nothing is said"
            yield Finding(message, _CACHE_KEY, "start tritonserver with --cache-config=local,size=BYTES, where BYTES holds many responses", model=context.name)


def _rate_limiter(context: ModelContext) -> Iterator[Finding]:
    for index, group in enumerate(context.config.instance_group):
        if group.rate_limiter.resources or group.rate_limiter.priority:
            message = (
                "the rate limiter works only in a server started with --rate-limit=execution_count; otherwise its settings are ignored, and nothing is said"
            )
            hint = "start tritonserver with --rate-limit=execution_count; resources are tokens that you name and count, no memory"
            yield Finding(message, ("instance_group", index, "rate_limiter"), hint)


def _metrics(context: ModelContext) -> Iterator[Finding]:
    for index, control in enumerate(context.config.model_metrics.metric_control):
        key: Key = ("model_metrics", "metric_control", index)
        label = f"metric_control number {index + 1}"
        if not control.metric_identifier.family:
            yield Finding(f"{label} names no metric family", key, f'write `metric_identifier {{ family: "{_HISTOGRAM}" }}`')
        elif control.metric_identifier.family != _HISTOGRAM:
            message = f"{label} is for '{control.metric_identifier.family}'; only the buckets of {_HISTOGRAM} can be set"
            yield Finding(message, (*key, "metric_identifier", "family"), f'write `family: "{_HISTOGRAM}"`', consequence=Consequence.IGNORED)
        if not control.HasField("histogram_options") or not control.histogram_options.buckets:
            yield Finding(f"{label} sets no histogram buckets", key, "write `histogram_options { buckets: [100, 500, 2000, 5000] }`, in milliseconds")


def _single_response(context: ModelContext) -> Iterator[Finding]:
    if context.config.model_transaction_policy.decoupled and (context.is_onnx or context.is_plan):
        message = (
            f"the model is decoupled, and the {context.resolved.backend} backend gives one response for each request: HTTP and plain gRPC fail for nothing"
        )
        yield Finding(message, ("model_transaction_policy", "decoupled"), "remove `decoupled: true`")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG275",
        "unsupported-response-cache",
        Consequence.REFUSED,
        "The response cache is for models that answer each request once, from that request alone.",
        "The core refuses it with sequence_batching and with decoupled models (`ValidateModelConfig`, core/src/model_config_utils.cc), and for an ensemble "
        "with a decoupled step when it loads "
        "(tried on 24.10).",
        "sequence_batching { }\nresponse_cache { enable: true }",
        "dynamic_batching { }\nresponse_cache { enable: true }",
        check_all=_refused_cache,
    ),
    Rule(
        "TG276",
        "response-cache-needs-a-flag",
        Consequence.FRAGILE,
        "The response cache needs a server with --cache-config.",
        "Without one there is no cache object and the model is served uncached, without a warning (triton-inference-server/server pull request 5119). With "
        "it, every request is hashed, and all-unique "
        "inputs make it slower.",
        "response_cache { enable: true }",
        "# tritonserver without --cache-config: leave response_cache out",
        check_all=_cache_flag,
    ),
    Rule(
        "TG277",
        "rate-limiter-needs-a-flag",
        Consequence.FRAGILE,
        "The rate limiter needs a server with --rate-limit=execution_count.",
        "The default is --rate-limit=off, with which a group's rate_limiter is never looked at (core/src/rate_limiter.cc; triton-inference-server/server "
        "issue 4548).",
        'instance_group [ { rate_limiter { resources [ { name: "R1" count: 2 } ] } } ]',
        "# tritonserver without --rate-limit: leave rate_limiter out\ninstance_group [ { count: 1 } ]",
        check=_rate_limiter,
    ),
    Rule(
        "TG278",
        "invalid-metric-control",
        Consequence.REFUSED,
        "A metric_control names a metric family and its histogram buckets.",
        "Triton refuses one without family or buckets (`ValidateModelConfig`, core/src/model_config_utils.cc), and logs a warning for a family other than "
        f"{_HISTOGRAM} (core/src/metric_model_reporter.cc).",
        f'model_metrics {{ metric_control [ {{ metric_identifier {{ family: "{_HISTOGRAM}" }} }} ] }}',
        f'model_metrics {{ metric_control [ {{ metric_identifier {{ family: "{_HISTOGRAM}" }} histogram_options {{ buckets: [10, 100] }} }} ] }}',
        check=_metrics,
    ),
    Rule(
        "TG279",
        "decoupled-without-streaming",
        Consequence.FAILS,
        "A model of the onnxruntime or tensorrt backend is not decoupled.",
        "These backends give one response for each request, while Triton answers HTTP (501) and plain gRPC requests (UNIMPLEMENTED) to a decoupled model "
        "with an error; only gRPC streams work "
        "(server/src/http_server.cc; tried on 24.10).",
        'backend: "onnxruntime"\nmodel_transaction_policy { decoupled: true }',
        'backend: "onnxruntime"',
        check=_single_response,
    ),
)
