"""Rules: what Triton's auto-complete adds to a config, said beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from tritongen.batching import batch_blockers
from tritongen.rules.completed import DEFAULT_MAX_BATCH_SIZE, Tensor, interface
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import place
from tritongen.rules.rule import Consequence, Finding, Rule


def _relies(context: ModelContext) -> Iterator[Finding]:
    config, signature = context.config, context.signature
    if not context.server.auto_complete or not context.is_onnx or signature is None or ((config.input or config.batch_input) and config.output):
        return
    if any(tensor.shape is None for tensor in (*signature.inputs, *signature.outputs)):
        return
    served = interface(context)
    if served is None or _is_refused(context):
        return
    size = served.max_batch_size
    parts = [f"max_batch_size: {size}"] if size != config.max_batch_size else []
    parts += [
        f"{role} {_words(tensors)}" for role, given, tensors in (("input", config.input, served.inputs), ("output", config.output, served.outputs)) if not given
    ]
    scheduled = config.WhichOneof("scheduling_choice") is not None
    if size > 1 and not scheduled:
        parts.append(f"dynamic_batching with preferred_batch_size [{size}]")
    missing = " and ".join(role for role, given in (("inputs", config.input), ("outputs", config.output)) if not given)
    subject = f"the config states no {missing}" if context.has_config else "there is no config.pbtxt"
    message = f"{subject}, so Triton completes it from the model file: {'; '.join(parts)}"
    if size == DEFAULT_MAX_BATCH_SIZE != config.max_batch_size:
        message += "; a max_batch_size of 0 is taken for one that is not given"
    hint = f"write these lines into config.pbtxt, with the max_batch_size you want (max_batch_size: {size or 0} is what you get now)"
    yield Finding(message, (), hint, None if context.has_config else place(context))


def _is_refused(context: ModelContext) -> bool:
    """Whether the model is refused before anything is completed, or because of it, which other rules say."""
    config, signature = context.config, context.signature
    assert signature is not None
    preferred = config.dynamic_batching.preferred_batch_size
    return bool((config.max_batch_size > 0 and batch_blockers(signature)) or any(not 0 < size <= config.max_batch_size for size in preferred))


def _words(tensors: tuple[Tensor, ...]) -> str:
    return ", ".join(f"{tensor.name} {tensor.type_name} [{', '.join(str(dim) for dim in tensor.dims)}]" for tensor in tensors)


RULES: tuple[Rule, ...] = (
    Rule(
        "TG236",
        "left-to-auto-complete",
        Consequence.FRAGILE,
        "A config states its max_batch_size, inputs and outputs itself.",
        "Where inputs or outputs are missing, the onnxruntime backend completes the config from the model file: a model that can batch gets a "
        "max_batch_size of 4 (the server's "
        "default-max-batch-size) and dynamic batching, whether that is wanted or not, and with --disable-auto-complete-config the same model is "
        "refused or fails every request "
        "(onnxruntime_backend, AutoCompleteConfig; kserve/kserve 1466).",
        'backend: "onnxruntime"',
        'backend: "onnxruntime"\nmax_batch_size: 8\ninput [ { name: "x" data_type: TYPE_FP32 dims: [64] } ]\noutput [ { name: "y" data_type: '
        "TYPE_FP32 dims: [16] } ]",
        check=_relies,
        needs=frozenset({"signature"}),
    ),
)
