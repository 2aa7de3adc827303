"""One model's spec and signature → its `ModelConfig`, with every finding on the way. Pure: no file is opened here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tritongen.batching import Batching, decide_batching
from tritongen.modelconfig import ModelConfig, merge_overlay
from tritongen.releases import DEFAULT_RELEASE, Release, find_release
from tritongen.render.accelerators import add_accelerator
from tritongen.render.backends import BACKENDS
from tritongen.render.findings import Findings
from tritongen.render.tensors import Sizes, add_tensors, concrete_sizes
from tritongen.render.warmup import add_samples, add_warmup, warmed_sizes, warmup_feeds
from tritongen.samples import Array, Feed
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.spec.models import Target

_DERIVED = {
    "name": "name",
    "platform": "backend",
    "backend": "backend",
    "max_batch_size": "batching.max",
    "default_model_filename": "source",
    "model_warmup": "warmup",
    "version_policy": "versions",
}
"""Fields that the overlay may not touch, and the key of the spec that sets them: other fields are derived from the same decision."""

_KINDS = {"auto": "KIND_AUTO", "gpu": "KIND_GPU", "cpu": "KIND_CPU", "model": "KIND_MODEL"}


@dataclass(frozen=True)
class Compiled:
    """A model's config and what goes with it.

    Attributes:
        config: the `ModelConfig`.
        batching: the decision that sizes were derived from.
        warmup_files: data files of the warmup samples, by path in the model's folder.
        feeds: the warmup samples, for a proof: batch size → inputs.
        remarks: sentences for the header of config.pbtxt.
    """

    config: Any
    batching: Batching
    warmup_files: Mapping[PurePosixPath, bytes]
    feeds: Mapping[int, Feed]
    remarks: tuple[str, ...]


def compile_model(
    model: ModelSpec,
    signature: Signature,
    target: Target,
    *,
    digest: str,
    version: int,
    samples: Mapping[str, Array],
    findings: Findings,
) -> Compiled:
    """Compile one model.

    Args:
        model: what the spec says, defaults included.
        signature: what the model file says.
        target: release and cache folder.
        digest: SHA-256 (hex) of the model with its external data; names the engine cache.
        version: the version folder that is written.
        samples: the values that the spec gives for inputs, as arrays in the model's own dtypes.
        findings: receives all that is wrong or worth knowing. With an error among it the result must not be written.
    """
    backend = BACKENDS[model.backend]
    release = find_release(target.release) if target.release else DEFAULT_RELEASE
    batching = _decide(model, signature, findings)
    config = ModelConfig(name=model.name, platform=backend.platform, backend=backend.name, max_batch_size=batching.max_batch_size)
    add_tensors(config, signature, batching, backend, release, findings)
    sizes = concrete_sizes(signature, batching, model.shapes, {name: array.shape for name, array in samples.items()}, findings)
    if batching.dynamic:
        config.dynamic_batching.preferred_batch_size.extend(batching.preferred)
        config.dynamic_batching.max_queue_delay_microseconds = batching.max_queue_delay_us
        config.dynamic_batching.SetInParent()
    _add_instances(config, model, findings)
    cache = _cache_path(model, target, release, digest, sizes)
    add_accelerator(config, model, signature, batching, sizes, cache, release, findings)
    _check_plan(model, signature, sizes, findings)
    if model.cpu_threads is not None:
        config.parameters["intra_op_thread_count"].string_value = str(model.cpu_threads)
    _add_versions(config, model, version, findings)
    _add_labels(config, model, findings)
    warmed = warmed_sizes(model, signature, batching, sizes, findings)
    files = add_warmup(config, signature, batching, warmed, sizes, samples)
    add_samples(config, samples)
    _overlay(config, model, findings)
    return Compiled(config, batching, files, warmup_feeds(signature, batching, warmed, sizes, samples), _remarks(batching))


def _decide(model: ModelSpec, signature: Signature, findings: Findings) -> Batching:
    asked = model.batching
    batching = decide_batching(signature, max_batch_size=asked.max, preferred=asked.preferred, max_queue_delay_us=asked.max_queue_delay_us)
    if asked.max == 0 or not batching.blockers:
        return batching
    reasons = "; ".join(batching.blockers)
    hint = "export the model with a variable first axis on every input and output, or write batching: none"
    if not findings.is_inherited(("batching",)) and (asked.max or asked.preferred or asked.max_queue_delay_us):
        consequence = "Triton refuses to load a model with max_batch_size above 0 whose tensors have no variable first axis"
        findings.error("TG105", ("batching",), f"the model cannot batch: {reasons}", consequence=consequence, hint=hint)
    else:
        consequence = "it is served with max_batch_size: 0, one request at a time, in the shapes of its file"
        findings.advice("TG106", ("source",), f"not batched: {reasons}", consequence=consequence, hint=hint)
    return batching


def _add_instances(config: Any, model: ModelSpec, findings: Findings) -> None:
    needs_gpu = model.backend == "tensorrt" or model.accelerator in ("tensorrt", "cuda")
    stated = "instances" in model.model_fields_set
    what = "backend: tensorrt" if model.backend == "tensorrt" else f"accelerator: {model.accelerator}"
    for index, group in enumerate(model.instances):
        # Nothing was said and only a GPU will do: say so to Triton too, which would else fall back to the CPU without a word.
        kind = "gpu" if needs_gpu and not stated else group.kind
        if needs_gpu and kind in ("cpu", "model"):
            consequence = "Triton refuses to load the model" if model.backend == "tensorrt" else "Triton ignores the accelerator without a word"
            findings.error(
                "TG107",
                ("instances", index),
                f"{what} needs instances of kind gpu, and this group is {kind}",
                consequence=consequence,
                hint="write kind: gpu, or remove the accelerator",
            )
        if model.accelerator == "openvino" and kind == "gpu":
            hint = "write kind: cpu"
            findings.error("TG107", ("instances", index), "accelerator: openvino runs on the CPU, and this group is of kind gpu", hint=hint)
        config.instance_group.add(kind=_KINDS[kind], count=group.count, gpus=group.gpus)


def _cache_path(model: ModelSpec, target: Target, release: Release | None, digest: str, sizes: Mapping[str, Sizes]) -> str:
    """An engine is good for one model file, precision, set of shapes and TensorRT: a folder for each, so that no model ever finds another's."""
    parts = [digest, model.precision, release.name if release else str(target.release), repr(sorted(sizes.items()))]
    return f"{target.engine_cache.rstrip('/')}/{model.name}/{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}"


def _check_plan(model: ModelSpec, signature: Signature, sizes: Mapping[str, Sizes], findings: Findings) -> None:
    if model.backend != "tensorrt":
        return
    for tensor in signature.inputs:
        if tensor.name not in sizes and tensor.name not in model.shapes:
            message = f"the sizes of {tensor.describe()} are not known, and a TensorRT plan must be built for them"
            findings.error(
                "TG108", ("shapes",), message, hint=f"add shapes: {{{tensor.name}: {{min: [...], opt: [...], max: [...]}}}}, without the batch dimension"
            )


def _add_versions(config: Any, model: ModelSpec, version: int, findings: Findings) -> None:
    versions = model.versions
    if versions.policy == "all":
        config.version_policy.all.SetInParent()
    elif versions.policy == "specific":
        config.version_policy.specific.versions.extend(versions.versions)
        if version not in versions.versions:
            consequence = "Triton would not serve the version that is written"
            findings.error(
                "TG109",
                ("versions",),
                f"version {version} is written, and versions lists {list(versions.versions)}",
                consequence=consequence,
                hint=f"add {version} to the list",
            )
    elif versions.count != 1:
        config.version_policy.latest.num_versions = versions.count


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


def _overlay(config: Any, model: ModelSpec, findings: Findings) -> None:
    for key in model.config:
        if key in _DERIVED:
            findings.error("TG130", ("config", key), f"'{key}' is derived from the spec and cannot be overlaid", hint=f"use the key {_DERIVED[key]}")
    scheduler = next((key for key in ("sequence_batching", "ensemble_scheduling") if key in model.config), None)
    if scheduler and (model.batching.preferred or model.batching.max_queue_delay_us):
        findings.error(
            "TG131",
            ("config", scheduler),
            f"{scheduler} takes the place of dynamic batching, for which batching has settings",
            hint="remove preferred and max_queue_delay from batching",
        )
    for problem in merge_overlay(config, {key: value for key, value in model.config.items() if key not in _DERIVED}):
        findings.error("TG132", ("config", *problem.path), problem.message, consequence="Triton refuses a config that it cannot parse", hint=problem.hint)


def _remarks(batching: Batching) -> tuple[str, ...]:
    if batching.blockers:
        return (f"Not batched (max_batch_size: 0, full shapes): {'; '.join(batching.blockers)}.",)
    if not batching.max_batch_size:
        return ("Batching is switched off in the spec: full shapes, one request at a time.",)
    return (f"Batches up to {batching.max_batch_size} rows; dims are those of one row.",)
