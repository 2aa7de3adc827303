"""One model's spec and signature → its `ModelConfig`, with every finding on the way. Pure: no file is opened here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tritongen.batching import Batching, decide_batching
from tritongen.modelconfig import ModelConfig, merge_overlay
from tritongen.recipe import Profile
from tritongen.render.accelerators import add_accelerator, without_shared_engines
from tritongen.render.backends import BACKENDS
from tritongen.render.caching import add_response_cache
from tritongen.render.effects import effective
from tritongen.render.findings import Findings
from tritongen.render.instances import add_instances
from tritongen.render.onnxruntime import add_onnxruntime
from tritongen.render.optional import add_optional_inputs, unbatched
from tritongen.render.origins import check_overlay
from tritongen.render.plan_config import judge_plan
from tritongen.render.plans import add_tensorrt
from tritongen.render.precision import judge_precision
from tritongen.render.profiles import plan_profiles, sizes_key
from tritongen.render.ragged import add_ragged, as_requested, ragged_feeds
from tritongen.render.scheduling import add_scheduling, few_sizes
from tritongen.render.sequences import check_sequences, leave_out_filled
from tritongen.render.tensors import Sizes, add_tensors, check_symbols, concrete_sizes, inferred_remarks, shapes_hint
from tritongen.render.threads import add_threads
from tritongen.render.versions import add_versions
from tritongen.render.warmup import add_samples, add_warmup, follow_inputs, warmed_sizes, warmup_feeds
from tritongen.rewrite import may_rebatch
from tritongen.samples import Array, Feed
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.server import Server
from tritongen.spec.target import Target

_DERIVED = {
    "name": "name",
    "platform": "backend",
    "backend": "backend",
    "max_batch_size": "batching.max",
    "default_model_filename": "source",
    "version_policy": "versions",
}
"""Fields that the overlay may not touch, and the key of the spec that sets them: other fields are derived from the same decision."""


@dataclass(frozen=True)
class Compiled:
    """A model's config and what goes with it.

    Attributes:
        config: the `ModelConfig`.
        batching: the decision that sizes were derived from.
        warmup_files: data files of the warmup samples, by path in the model's folder.
        feeds: the warmup samples, for a proof: batch size → inputs.
        remarks: sentences for the header of config.pbtxt.
        profiles: those of the model's plan; none where it is served from its ONNX file.
        model: what the spec says, without the keys that have no effect.
        sizes: of every input whose variable dimensions are known, without the batch.
    """

    config: Any
    batching: Batching
    warmup_files: Mapping[PurePosixPath, bytes]
    feeds: Mapping[int, Feed]
    remarks: tuple[str, ...]
    profiles: tuple[Profile, ...]
    model: ModelSpec
    sizes: Mapping[str, Sizes]


def compile_model(
    model: ModelSpec,
    signature: Signature,
    target: Target,
    *,
    digest: str,
    versions: Sequence[int],
    samples: Mapping[str, Array],
    findings: Findings,
    stated: Signature | None = None,
    server: Server | None = None,
) -> Compiled:
    """Compile one model.

    Args:
        model: what the spec says, defaults included.
        signature: what the model file says.
        target: release and cache folder.
        digest: SHA-256 (hex) of the model's files with their external data; names the engine cache.
        versions: the version folders that the repository gets, ascending.
        samples: the values that the spec gives for inputs, as arrays in the model's own dtypes.
        findings: receives all that is wrong or worth knowing. With an error among it the result must not be written.
        stated: what the model file says by itself, where `signature` knows more.
        server: how the server is started; None where nothing is known of it.
    """
    backend = BACKENDS[model.backend]
    release = target.known_release
    model = without_shared_engines(effective(model, signature, target.release_name, findings), versions, findings)
    check_overlay(model, findings)
    graph, signature = signature, as_requested(model, signature)
    batching = unbatched(model, _decide(model, signature, findings), findings)
    config = ModelConfig(name=model.name, platform=backend.platform, backend=backend.name, max_batch_size=batching.max_batch_size)
    typed = add_tensors(config, signature, batching, backend, release, findings)
    filled = leave_out_filled(config, model)
    check_sequences(model, signature, findings)
    add_ragged(config, model, graph, batching, findings)
    add_optional_inputs(config, model, graph, backend, findings)
    sizes = _sizes(model, signature, batching, samples, findings)
    if "tensorrt" in (model.backend, model.accelerator):
        given = {name: each for name, each in sizes.items() if name not in model.known_shapes or name in model.shapes}
        check_symbols(signature, batching, given, findings)
    profiles = plan_profiles(model, signature, batching, sizes, target.release_name, findings)
    remarks = [*_remarks(batching), *typed, *filled, *inferred_remarks(stated or graph, graph), *add_scheduling(config, model, batching, findings)]
    add_instances(config, model, server, len(profiles), findings)
    judge_precision(model, target.release_name, findings)
    add_accelerator(config, model, signature, batching, sizes, target, digest, findings)
    add_onnxruntime(config, model, findings)
    add_tensorrt(config, model, signature, batching, sizes, profiles, release, server, findings)
    _check_plan(model, signature, batching, sizes, findings)
    add_versions(config, model, versions, findings)
    _add_labels(config, model, findings)
    warmed = warmed_sizes(model, signature, batching, sizes, findings)
    files = add_warmup(config, signature, batching, warmed, sizes, samples)
    add_samples(config, samples)
    add_response_cache(config, model, server, findings)
    if _overlay(config, model, findings):
        judge_plan(config, model, signature, profiles, sizes, samples, findings)
    follow_inputs(config, model)
    remarks += add_threads(config, model, target, findings)
    feeds = {} if findings.has_errors else ragged_feeds(warmup_feeds(signature, batching, warmed, sizes, samples), model, graph)
    return Compiled(config, batching, files, feeds, tuple(remarks), profiles, model, sizes)


def _decide(model: ModelSpec, signature: Signature, findings: Findings) -> Batching:
    asked = model.batching
    batching = decide_batching(
        signature,
        max_batch_size=asked.max,
        preferred=asked.preferred,
        max_queue_delay_us=asked.max_queue_delay_us,
        few_sizes=few_sizes(model, signature),
    )
    if asked.max == 0 or not batching.blockers or model.ragged is not None:  # ragged has its own finding
        return batching
    reasons = "; ".join(batching.blockers)
    hint = "export the model with a variable first axis on every input and output, or write batching: none"
    if not model.rebatch and may_rebatch(signature):
        hint = f"write rebatch: true, {hint}"
    if not findings.is_inherited(("batching",)) and (asked.max or asked.preferred or asked.max_queue_delay_us):
        consequence = "Triton refuses to load a model with max_batch_size above 0 whose tensors have no variable first axis"
        findings.error("TG105", ("batching",), f"the model cannot batch: {reasons}", consequence=consequence, hint=hint)
    else:
        consequence = "it is served with max_batch_size: 0, one request at a time, in the shapes of its file"
        findings.advice("TG106", ("source",), f"not batched: {reasons}", consequence=consequence, hint=hint)
    return batching


def _sizes(model: ModelSpec, signature: Signature, batching: Batching, samples: Mapping[str, Array], findings: Findings) -> dict[str, Sizes]:
    """The sizes of inputs; what the profiles of a plan say is judged there, each by itself."""
    names = {*model.shapes, *(tensor.name for tensor in signature.inputs)}
    shapes = {name: shape for name, shape in model.known_shapes.items() if name in names}
    return concrete_sizes(signature, batching, shapes, {name: array.shape for name, array in samples.items()}, findings, lambda name: sizes_key(model, name))


def _check_plan(model: ModelSpec, signature: Signature, batching: Batching, sizes: Mapping[str, Sizes], findings: Findings) -> None:
    if model.backend != "tensorrt" or model.ragged is not None or model.freeze or model.known_shapes.keys() - sizes.keys():
        return  # there is none for ragged inputs, freeze has asked already, and with shapes that were refused, one that is missing is no news
    unknown = [tensor for tensor in signature.inputs if tensor.name not in sizes]
    if unknown:
        message = f"the sizes of {', '.join(tensor.describe() for tensor in unknown)} are not known, and a TensorRT plan must be built for them"
        findings.error("TG108", ("shapes",), message, hint=f"add {shapes_hint(unknown, batched=batching.max_batch_size > 0, ranges=True)}")


def _add_labels(config: Any, model: ModelSpec, findings: Findings) -> None:
    outputs = {output.name: output for output in config.output}
    for name in model.labels:
        if name in outputs:
            outputs[name].label_filename = label_filename(model, name)
        else:
            findings.error(
                "TG103", ("labels", name), f"the model has no output '{name}'", hint=f"its outputs are {', '.join(repr(known) for known in outputs)}"
            )


def label_filename(model: ModelSpec, output: str) -> str:
    """The name that an output's label file gets in the model's folder."""
    return "labels.txt" if len(model.labels) == 1 else f"labels{sorted(model.labels).index(output)}.txt"


def _overlay(config: Any, model: ModelSpec, findings: Findings) -> bool:
    """Merge the overlay into the config; False where that is not possible, which is said, and the config is no whole one then."""
    for key in model.config:
        if key in _DERIVED:
            findings.error("TG130", ("config", key), f"'{key}' is derived from the spec and cannot be overlaid", hint=f"use the key {_DERIVED[key]}")
    problems = merge_overlay(config, {key: value for key, value in model.config.items() if key not in _DERIVED})
    for problem in problems:
        findings.error("TG132", ("config", *problem.path), problem.message, consequence=problem.consequence, hint=problem.hint)
    return not problems


def _remarks(batching: Batching) -> tuple[str, ...]:
    if batching.blockers:
        return (f"Not batched (max_batch_size: 0, full shapes): {'; '.join(batching.blockers)}.",)
    if not batching.max_batch_size:
        return ("Batching is switched off in the spec: full shapes, one request at a time.",)
    return (f"Batches up to {batching.max_batch_size} rows; dims are those of one row.",)
