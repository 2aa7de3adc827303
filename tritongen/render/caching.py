"""The response cache: answers that are given again without asking the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritongen.render.findings import Findings, Key
from tritongen.spec import ModelSpec
from tritongen.spec.server import Server


def add_response_cache(config: Any, model: ModelSpec, server: Server | None, findings: Findings) -> None:
    """Write `response_cache`, and say what it needs of the server.

    An error for a model with a sequence batcher or decoupled responses, whose answers depend on more than the request (`ValidateModelConfig`,
    core/src/model_config_utils.cc, refuses both); without effect where the key was written for all models.
    """
    key: Key = ("response_cache",) if model.response_cache else ("config", "response_cache") if _is_laid_over(model) else ()
    if not key:
        return
    other = _uncacheable(model)
    if other is None:
        config.response_cache.enable = True
        if server is not None and server.cache is not None:
            return
        findings.advice(
            "TG409",
            key,
            "the response cache works only in a server with a cache",
            consequence="without one nothing is cached, and Triton does not say so",
            hint="write server: {cache: {size: 256MiB}}, say, for `tritongen serve` and a rendered deployment, which have 64MiB by themselves; start any other"
            " tritonserver with --cache-config=local,size=BYTES",
        )
    elif findings.is_inherited(key):
        findings.idle(key, f"response_cache is left out for this model: it has {other}", hint="write response_cache: false for it")
    else:
        findings.error(
            "TG408",
            key,
            f"response_cache is on, and config: has {other}, at {findings.locate(('config', other.partition('.')[0]))}",
            consequence="Triton refuses to load the model: its answers depend on more than the request",
            hint="remove one of the two",
        )


def wants_cache(model: ModelSpec) -> bool:
    """Whether the model is served with a response cache, where the server has one."""
    return (model.response_cache or _is_laid_over(model)) and _uncacheable(model) is None


def _is_laid_over(model: ModelSpec) -> bool:
    cache = model.config.get("response_cache")
    return isinstance(cache, Mapping) and cache.get("enable") is True


def _uncacheable(model: ModelSpec) -> str | None:
    if "sequence_batching" in model.config:
        return "sequence_batching"
    policy = model.config.get("model_transaction_policy")
    return "model_transaction_policy.decoupled" if isinstance(policy, Mapping) and policy.get("decoupled") is True else None
