"""Rules: settings of the batcher that load and work, and cost time. Advice only: measure before and after."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.rules.completed import max_batch_size
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.rules.shapes import written

_SHORTEST_DELAY_US = 100
_LONGEST_DELAY_US = 100_000


def _delays(context: ModelContext) -> Iterator[tuple[Key, int]]:
    """Every queue delay that is set, in microseconds, and where; none where no batches are formed."""
    if max_batch_size(context) in (0, 1):
        return
    config = context.config
    for key, message in (
        (("dynamic_batching",), config.dynamic_batching),
        (("sequence_batching", "oldest"), config.sequence_batching.oldest),
        (("sequence_batching", "direct"), config.sequence_batching.direct),
    ):
        if message.max_queue_delay_microseconds:
            yield (*key, "max_queue_delay_microseconds"), message.max_queue_delay_microseconds


def _short(context: ModelContext) -> Iterator[Finding]:
    for key, delay in _delays(context):
        if delay < _SHORTEST_DELAY_US:
            message = f"a queue delay of {delay} µs is too short to gather requests; were {delay} ms meant?"
            yield Finding(message, key, f"write {delay * 1000} for {delay} ms, or leave the delay out: requests that wait anyway are combined without it")


def _long(context: ModelContext) -> Iterator[Finding]:
    for key, delay in _delays(context):
        if delay > _LONGEST_DELAY_US:
            message = f"a queue delay of {delay} µs is {delay / 1000:g} ms: each request that finds no company is answered that much later"
            yield Finding(message, key, "write a delay well below the model's own latency, such as 2000 for 2 ms")


def _variable(context: ModelContext) -> Iterator[Finding]:
    if not context.config.HasField("dynamic_batching") or max_batch_size(context) in (0, 1):
        return
    variable = [tensor for tensor in context.config.input if -1 in tensor.dims and not tensor.allow_ragged_batch]
    if variable:
        names = ", ".join(f"'{tensor.name}' {written(tensor.dims)}" for tensor in variable)
        message = f"only requests of equal shape are combined, and these inputs vary: {names}; a request of another shape closes the batch"
        index = next(index for index, tensor in enumerate(context.config.input) if -1 in tensor.dims and not tensor.allow_ragged_batch)
        yield Finding(message, ("input", index, "dims"), "pad requests to a few fixed lengths on the client, or fix the dims")


def _capped(context: ModelContext) -> Iterator[Finding]:
    sizes = list(context.config.dynamic_batching.preferred_batch_size)
    limit = context.config.max_batch_size
    if not sizes or min(sizes) <= 0 or max(sizes) >= limit:
        return
    message = f"the largest preferred batch size is {max(sizes)} and max_batch_size is {limit}: under load, batches stop at {max(sizes)}"
    hint = f"add {limit} to preferred_batch_size, or leave preferred_batch_size out where no few sizes are faster than others"
    yield Finding(message, ("dynamic_batching", "preferred_batch_size"), hint)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG370",
        "queue-delay-below-100-us",
        Consequence.SLOW,
        "A queue delay is at least 100 µs.",
        "The unit is microseconds. People write 50 for 50 ms, and see no effect (triton-inference-server/server issue 7205). Since 2022 batches grow until "
        "they are executed, so that under load no "
        "delay is needed at all.",
        "dynamic_batching { max_queue_delay_microseconds: 50 }",
        "dynamic_batching { max_queue_delay_microseconds: 5000 }",
        check=_short,
    ),
    Rule(
        "TG371",
        "queue-delay-above-100-ms",
        Consequence.SLOW,
        "A queue delay is at most 100 ms.",
        "A request that finds no others waits for the whole delay: one client that sends one request after another had 122 ms instead of 22 ms with a delay "
        "of 100 ms (measured).",
        "dynamic_batching { max_queue_delay_microseconds: 500000 }",
        "dynamic_batching { max_queue_delay_microseconds: 5000 }",
        check=_long,
    ),
    Rule(
        "TG372",
        "variable-dims-in-batches",
        Consequence.SLOW,
        "Inputs of a model with dynamic batching have fixed dims.",
        "A batch is one full matrix: requests are combined only where inputs with a -1 have equal shapes (core/src/scheduler_utils.cc). With six lengths in "
        "turn, 24 of 24 requests ran alone (measured).",
        'max_batch_size: 8\ninput [ { name: "ids" data_type: TYPE_INT64 dims: [-1] } ]\ndynamic_batching { }',
        'max_batch_size: 8\ninput [ { name: "ids" data_type: TYPE_INT64 dims: [128] } ]\ndynamic_batching { }',
        check=_variable,
    ),
    Rule(
        "TG373",
        "preferred-sizes-cap-batches",
        Consequence.SLOW,
        "The largest preferred batch size is max_batch_size.",
        "While preferred sizes are given, the batcher stops at the largest one; larger batches form only when the queue delay has passed. With preferred "
        "[4] and max_batch_size 8, batches "
        "of 24 waiting requests were 1, 4, 4, 4, 4, 4, 3 (measured; core/src/dynamic_batch_scheduler.cc).",
        "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [4] }",
        "max_batch_size: 8\ndynamic_batching { }",
        check=_capped,
    ),
)
