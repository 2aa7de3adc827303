"""Rules: `max_batch_size` and the sizes that the dynamic batcher is to form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritongen.rules.completed import max_batch_size
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule


def _negative(context: ModelContext) -> Iterator[Finding]:
    size = context.config.max_batch_size
    if size < 0:
        yield Finding(
            f"max_batch_size is {size}; expected 0 or more", ("max_batch_size",), "write 0 for a model without batching, or the largest batch that it takes"
        )


def preferred_problems(sizes: Any, limit: int, key: Key) -> Iterator[Finding]:
    """Preferred batch sizes that the core refuses: 0 or less, or above max_batch_size (as it is written, before anything is completed)."""
    for index, size in enumerate(sizes):
        if size <= 0:
            yield Finding(f"preferred batch size {size} in {list(sizes)} is not positive", (*key, index), "remove it; sizes are 1 to max_batch_size")
        elif size > limit >= 0:
            unsaid = "; without max_batch_size there is no batching" if limit == 0 else ""
            yield Finding(
                f"preferred batch size {size} is above max_batch_size {limit}{unsaid}",
                (*key, index),
                f"write max_batch_size: {max(sizes)} or more, or remove {size}",
            )


def _preferred(context: ModelContext) -> Iterator[Finding]:
    sizes = context.config.dynamic_batching.preferred_batch_size
    yield from preferred_problems(sizes, context.config.max_batch_size, ("dynamic_batching", "preferred_batch_size"))


def _without_batches(context: ModelContext) -> Iterator[Finding]:
    size = max_batch_size(context)
    if not context.config.HasField("dynamic_batching") or size not in (0, 1):
        return
    batching = context.config.dynamic_batching
    refused = any(not 0 < preferred <= context.config.max_batch_size for preferred in batching.preferred_batch_size)
    if refused or _has_queue_features(batching):
        return
    delay = f", and max_queue_delay_microseconds {batching.max_queue_delay_microseconds} delays nothing" if batching.max_queue_delay_microseconds else ""
    message = f"dynamic_batching with max_batch_size {size} forms no batches{delay}"
    hint = "set max_batch_size above 1 where the model's first axis is variable (dims are then written without it), or remove dynamic_batching"
    yield Finding(message, ("dynamic_batching",), hint)


def _has_queue_features(batching: Any) -> bool:
    """Whether the batcher is there for its queue: order, priorities, timeouts and limits work without batches too."""
    return bool(batching.preserve_ordering or batching.priority_levels or batching.HasField("default_queue_policy") or batching.priority_queue_policy)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG260",
        "negative-max-batch-size",
        Consequence.REFUSED,
        "max_batch_size is 0 or more.",
        "Triton refuses a negative one ('must be non-negative', `ValidateModelConfig`, core/src/model_config_utils.cc); 0 means no batching, there is no "
        "'unlimited'.",
        "max_batch_size: -1",
        "max_batch_size: 8",
        check=_negative,
    ),
    Rule(
        "TG261",
        "invalid-preferred-batch-size",
        Consequence.REFUSED,
        "Preferred batch sizes are 1 to max_batch_size.",
        "Triton compares them when it reads the config, before auto-complete fills in a max_batch_size (`ValidateModelConfig`, "
        "core/src/model_config_utils.cc; tried on 24.10). With max_batch_size 0 or "
        "none at all, any preferred size is refused, while a bare `dynamic_batching {}` is not.",
        "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [16] }",
        "max_batch_size: 16\ndynamic_batching { preferred_batch_size: [16] }",
        check=_preferred,
    ),
    Rule(
        "TG262",
        "batching-without-batches",
        Consequence.IGNORED,
        "dynamic_batching needs a max_batch_size above 1, unless it is there for its queue.",
        "With max_batch_size 0 or 1 every batch is one request, and Triton says nothing about it (core/src/dynamic_batch_scheduler.cc). Order, priorities, "
        "timeouts and queue limits do work.",
        "max_batch_size: 0\ndynamic_batching { max_queue_delay_microseconds: 1000 }",
        "max_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 1000 }",
        check=_without_batches,
    ),
)
