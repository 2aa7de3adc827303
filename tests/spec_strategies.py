"""Random specs of one small model each, over all that a CPU can serve: mostly right ones, some with a key that does not fit.

`models(folder)` writes the files that they name; `specs()` gives their data, ready to be written as YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networks
import numpy as np
from building import build_onnx
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

Data = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A model file, and the values of keys that depend on it.

    Attributes:
        text: its description, as tests/rules/building.py reads it; empty for `networks.mlp`.
        batches: whether it has a batch axis.
        outputs: names of its outputs.
        shapes: right values of `shapes`, for a model that needs some.
        samples: right values of `samples`.
        keys: further keys that only this model takes.
        always: keys without which it cannot be served well.
    """

    text: str
    batches: bool = True
    outputs: tuple[str, ...] = ("y",)
    shapes: tuple[Data, ...] = ()
    samples: tuple[Data, ...] = ()
    keys: Mapping[str, SearchStrategy[Any]] = field(default_factory=dict)
    always: Mapping[str, SearchStrategy[Any]] = field(default_factory=dict)


def _ragged(kind: str) -> Data:
    return {
        "inputs": ["x"],
        "batch_inputs": [{"names": ["ends"], "kind": kind, "source": "x"}],
        "batch_outputs": [{"names": ["y"], "source": "x"}],
    }


KINDS = {
    "rows": Kind("", samples=({"x": [0.5] * 8},)),
    "single": Kind("", batches=False, keys={"rebatch": st.booleans()}),
    "scalar": Kind("input rate INT64 []\ninput x FP32 [512]\noutput y FP32 [512]", batches=False, samples=({"rate": 16000},)),
    "texts": Kind("input words BYTES [N, 2]\noutput y BOOL [N, 2]", samples=({"words": ["a", "b"]},)),
    "tokens": Kind(
        "input ids INT64 [N, S]\ninput mask INT64 [N, S]\noutput y FP32 [N, S, 2]\noutput pooled FP32 [N, 4]",
        outputs=("y", "pooled"),
        shapes=(
            {"ids": [16], "mask": [16]},
            {"ids": {"min": [1], "opt": [16], "max": [64]}, "mask": {"min": [1], "opt": [16], "max": [64]}},
        ),
        samples=({"ids": list(range(16)), "mask": [1] * 16}, {"ids": "ids.npy", "mask": "ids.npy"}),
    ),
    "vector": Kind("input x FP32 [N]\noutput y FP32 [N]"),
    "lengths": Kind(
        "input x FP32 [T]\ninput ends INT32 [N]\noutput y FP32 [T]",
        always={"ragged": st.sampled_from(["batch_accumulated_element_count", "batch_element_count"]).map(_ragged)},
    ),
    "default": Kind("input x FP32 [4]\noptional limit FP32 [1]\noutput y FP32 [4]", batches=False, keys={"optional_inputs": st.sampled_from([[], ["limit"]])}),
    "half": Kind("input x FP16 [N, 3]\ninput b BOOL [N, 1]\ninput u UINT8 [N, 2, 2]\noutput y FP64 [N, 3]\noutput z INT8 [N]", outputs=("y", "z")),
}


def models(folder: Path) -> None:
    """Write the model files, a sample and a label file."""
    for name, kind in KINDS.items():
        path = folder / f"{name}.onnx"
        if kind.text:
            path.write_bytes(build_onnx(kind.text))
        else:
            networks.mlp(path, batch="N" if kind.batches else 1)
    np.save(folder / "ids.npy", np.arange(16))
    (folder / "labels.txt").write_text("a\nb\nc\nd\n")


def specs() -> SearchStrategy[Data]:
    """Data of a spec; its only model is called `m`. In one of eight, one key has a value that does not fit, or may not."""
    one = st.sampled_from(range(8)).flatmap(lambda number: _doubtful() if number == 4 else st.none())
    return st.tuples(st.sampled_from(sorted(KINDS)), one).flatmap(lambda drawn: _spec(*drawn))


def doubtful_specs() -> SearchStrategy[Data]:
    """The same with such a key in each."""
    return st.tuples(st.sampled_from(sorted(KINDS)), _doubtful()).flatmap(lambda drawn: _spec(*drawn))


def _doubtful() -> SearchStrategy[tuple[str, Any]]:
    return st.sampled_from(_DOUBTED).flatmap(lambda key: st.tuples(st.just(key), _DOUBTFUL[key]))


def _spec(name: str, doubtful: tuple[str, Any] | None) -> SearchStrategy[Data]:
    kind = KINDS[name]
    keys = {**_KEYS, **kind.keys}
    fixed: dict[str, SearchStrategy[Any]] = {"name": st.just("m"), "source": st.just(f"{name}.onnx"), **kind.always}
    if kind.samples:
        keys["samples"] = st.sampled_from(kind.samples)
    if kind.shapes:
        fixed["shapes"] = st.sampled_from(kind.shapes)
    keys["labels"] = st.dictionaries(st.sampled_from(kind.outputs), st.just("labels.txt"), max_size=2)
    if kind.batches:
        keys |= {"batching": _batching(), "warmup": st.sampled_from(["auto", "none"] if kind.always else ["auto", "none", [1]])}
    if doubtful is not None:
        key, value = doubtful
        keys.pop(key, None)
        fixed[key] = st.just(value)
    model = st.fixed_dictionaries(fixed, optional=keys)
    return st.fixed_dictionaries({"version": st.just(1), "triton": _TRITON, "models": st.tuples(model).map(list)}, optional={"defaults": _DEFAULTS})


def _mapping(**optional: SearchStrategy[Any]) -> SearchStrategy[Data]:
    return st.fixed_dictionaries({}, optional=optional)


def _batching() -> SearchStrategy[Any]:
    def sized(most: int) -> SearchStrategy[Data]:
        return _mapping(
            max=st.just(most),
            preferred=st.sampled_from(["auto", "none", [most]]),
            max_queue_delay=st.sampled_from(["0us", "50us", "1ms", "1s"]),
            eager=st.booleans(),
            pinned_memory=_mapping(input=st.booleans(), output=st.booleans()),
            gather_kernel_buffer_threshold=st.integers(1, 100),
        )

    return st.just("auto") | st.integers(4, 16).flatmap(sized)


_POLICY: dict[str, SearchStrategy[Any]] = {
    "max_queue_size": st.integers(1, 500),
    "default_timeout": st.sampled_from(["5ms", "100ms", "2s"]),
    "timeout_action": st.sampled_from(["reject", "delay"]),
    "allow_timeout_override": st.booleans(),
}


def _queue() -> SearchStrategy[Data]:
    def ranked(levels: int) -> SearchStrategy[Data]:
        level = st.integers(1, levels)
        policies = st.dictionaries(level.map(str), _mapping(**_POLICY), max_size=2)
        return _mapping(**_POLICY, priority_levels=st.just(levels), default_priority_level=level, priority_queue_policy=policies)

    ordered = _mapping(max_queue_size=st.integers(1, 500), overload=st.just("none"), preserve_ordering=st.booleans())
    return _mapping(**_POLICY) | ordered | st.integers(2, 4).flatmap(ranked)


_GROUP = _mapping(
    kind=st.sampled_from(["auto", "cpu"]),
    count=st.sampled_from([1, 1, 2]),
    host_policy=st.sampled_from(["cpu", "numa_0"]),
    rate_limiter=_mapping(
        resources=st.lists(st.fixed_dictionaries({"name": st.sampled_from(["memory", "licence"]), "count": st.integers(1, 4)}), max_size=1),
        priority=st.integers(1, 5),
    ),
)
_VERSIONS = st.sampled_from([{"policy": "latest", "count": 2}, {"policy": "all"}, {"policy": "latest"}, {}])
_OVERLAYS = st.sampled_from(
    [
        {},
        {"metric_tags": {"team": "vision"}},
        {"optimization": {"priority": "PRIORITY_MAX"}},
        {"model_transaction_policy": {"decoupled": False}},
    ]
)
_TRITON = st.fixed_dictionaries({"release": st.just("24.10")}, optional={"cpus": st.integers(1, 4)})
"""The release of the embedded server, so that the rules judge for the one that answers."""

_DEFAULTS = _mapping(versions=_VERSIONS, warmup=st.sampled_from(["auto", "none"]), instances=_GROUP)
_KEYS: dict[str, SearchStrategy[Any]] = {
    "queue": _queue(),
    "slo": st.sampled_from([{"p99": "2s"}, {"p50": "1s", "p99": "10s"}, {"error_rate": "0.5%"}]),
    "instances": _GROUP | st.lists(_GROUP, min_size=1, max_size=2),
    "cpu_threads": st.integers(1, 2),
    "versions": _VERSIONS,
    "version": st.sampled_from([1, 3, "auto"]),
    "config": _OVERLAYS,
    "response_cache": st.booleans(),
    "onnxruntime": _mapping(
        graph_optimization=st.sampled_from(["all", "extended", "basic", "off"]),
        execution_mode=st.sampled_from(["sequential", "parallel"]),
        inter_op_threads=st.integers(1, 2),
        enable_mem_pattern=st.booleans(),
        arena_shrinkage=st.sampled_from([[], ["cpu:0"]]),
        use_device_allocator_for_initializers=st.booleans(),
    ),
    "prove": st.sampled_from(["auto", False]),
    "optimize": st.sampled_from(["none", "offline", {"level": "extended"}]),
}
_DOUBTFUL: dict[str, SearchStrategy[Any]] = {
    "config": st.sampled_from(
        [
            {"sequence_batching": {"direct": {}}},
            {"sequence_batching": {"oldest": {"max_candidate_sequences": 4, "preferred_batch_size": [999]}}},
            {"response_cache": {"enable": True}, "model_transaction_policy": {"decoupled": True}},
            {"instance_group": [{"kind": "KIND_CPU", "gpus": [0]}]},
            {"dynamic_batching": {"priority_levels": 2, "default_priority_level": 3}},
            {"dynamic_batching": {"preferred_batch_size": [999]}},
            {"dynamic_batching": {"preserve_ordering": True, "priority_levels": 2, "default_priority_level": 1}},
            {"dynamic_batching": {"priority_levels": 2}},
            {"input": [{"name": "other", "data_type": "TYPE_FP32", "dims": [1]}]},
            {"output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [3, 3, 3]}]},
            {"output": [{"name": "y", "data_type": "TYPE_INT8"}]},
            {"parameters": {"intra_op_thread_count": {"string_value": "many"}}},
            {"optimization": {"graph": {"level": 1}}},
            {"optimization": {"execution_accelerators": {"cpu_execution_accelerator": [{"name": "tpu"}]}}},
            {"max_batch_size": 4},
            {"no_such_field": 1},
            {"model_metrics": {}},
            {"batch_input": [{"kind": "BATCH_ELEMENT_COUNT", "target_name": ["n"], "data_type": "TYPE_FP64", "source_input": ["x"]}]},
            {"model_metrics": {"metric_control": [{"metric_identifier": {"family": ""}}]}},
        ]
    ),
    "batching": st.sampled_from(["none", {"max": 4}, {"max": 4, "preferred": [8]}, {"max": 0, "preferred": [1]}, {"max": 0, "max_queue_delay": "1ms"}]),
    "queue": st.sampled_from(
        [
            {"priority_levels": 2, "default_priority_level": 3},
            {"preserve_ordering": True, "priority_levels": 2},
            {"preserve_ordering": True, "timeout_action": "delay", "default_timeout": "1ms"},
            {"overload": "reject"},
            {"default_priority_level": 1},
        ]
    ),
    "instances": st.sampled_from([{"kind": "cpu", "gpus": [0]}, {"kind": "auto", "gpus": [0]}, {"kind": "model"}, {"kind": "cpu", "profiles": [0]}]),
    "warmup": st.sampled_from([[64], [1, 2], [0]]),
    "versions": st.sampled_from([{"policy": "specific", "versions": [9]}, {"policy": "all", "count": 2}]),
    "samples": st.sampled_from([{"nothing": 1}, {"x": [1]}, {"words": [1, 2, 3]}]),
    "shapes": st.sampled_from([{"x": [7]}, {"nothing": [1]}, {"ids": [16]}]),
    "labels": st.just({"nothing": "labels.txt"}),
    "onnxruntime": st.sampled_from([{"arena_shrinkage": ["gpu:0"]}, {"enable_mem_arena": False, "arena_shrinkage": ["cpu:0"]}]),
    "rebatch": st.just(True),
    "freeze": st.just(True),
    "prove": st.just(True),
    "optional_inputs": st.sampled_from([["x"], ["nothing"]]),
    "ragged": st.sampled_from([_ragged("batch_item_shape"), _ragged("batch_element_count"), {"inputs": ["x"]}]),
    "response_cache": st.just(True),
    "sources": st.just({1: "rows.onnx", 2: "single.onnx"}),
}
_DOUBTED = ("config", "config", "config", *_DOUBTFUL)
"""What is laid over the config comes more often: it reaches Triton as it is."""


def gpu_specs() -> SearchStrategy[Data]:
    """Data of a spec that needs a GPU: accelerators of ONNX Runtime, and TensorRT plans."""
    return st.tuples(st.sampled_from(["rows", "tokens"]), st.sampled_from([*_RELEASES])).flatmap(lambda drawn: _gpu_spec(*drawn))


def _gpu_spec(name: str, release: str) -> SearchStrategy[Data]:
    kind = KINDS[name]
    fixed = {"name": st.just("m"), "source": st.just(f"{name}.onnx")}
    if kind.shapes:
        fixed["shapes"] = st.sampled_from(kind.shapes)
    common = {"batching": _batching(), "queue": _queue(), "slo": _KEYS["slo"], "warmup": st.sampled_from(["auto", "none"])}
    accelerated = st.fixed_dictionaries(
        {**fixed, "accelerator": st.sampled_from(["cuda", "tensorrt"])},
        optional={**common, "instances": _GPU_GROUP, "precision": _PRECISIONS, "onnxruntime": _mapping(cuda=_CUDA, tensorrt=_TENSORRT)},
    )
    plan = st.fixed_dictionaries(
        {**fixed, "backend": st.just("tensorrt")}, optional={**common, "instances": _GPU_GROUP, "precision": _PRECISIONS, "tensorrt": _PLAN}
    )
    target = st.fixed_dictionaries({"release": st.just(release)}, optional={"engine_cache": st.just("/var/cache/engines")})
    return st.fixed_dictionaries({"version": st.just(1), "triton": target, "models": st.tuples(accelerated | plan).map(list)})


_RELEASES = ("24.01", "24.10", "25.08", "26.05", "26.08")
_PRECISIONS = st.sampled_from(["fp32", "tf32", "fp16", "bf16", "int8"])
_GPU_GROUP = st.fixed_dictionaries({"kind": st.just("gpu")}, optional={"count": st.integers(1, 3), "gpus": st.sampled_from([[0], [0, 1]])})
_CUDA = _mapping(
    cudnn_conv_algo_search=st.sampled_from(["exhaustive", "heuristic", "default"]),
    gpu_mem_limit=st.just("4GiB"),
    arena_extend_strategy=st.sampled_from(["next_power_of_two", "same_as_requested"]),
    use_tf32=st.booleans(),
    prefer_nhwc=st.booleans(),
)
_TENSORRT = _mapping(
    max_workspace_size=st.sampled_from(["512MiB", "4GiB"]),
    builder_optimization_level=st.integers(0, 5),
    auxiliary_streams=st.integers(-1, 3),
    sparsity=st.booleans(),
    engine_cache=st.booleans(),
    timing_cache=st.booleans(),
    cuda_graph=st.booleans(),
    tactic_sources=_mapping(cudnn=st.booleans(), jit_convolutions=st.booleans()),
)
_PLAN = _mapping(
    cuda_graphs=st.sampled_from([True, False, {"lower_bounds": True}]),
    busy_wait_events=st.booleans(),
    stream_priority=st.sampled_from(["max", "min"]),
    execution_context_allocation_strategy=st.sampled_from(["static", "on_profile_change"]),
    profiles=st.lists(st.sampled_from([{}, {"batch": 1}, {"batch": 4}, {"batch": 64}]), min_size=1, max_size=3),
    build=_mapping(
        max_workspace_size=st.just("1GiB"),
        compute_capabilities=st.sampled_from([["8.6"], ["8.6", "9.0"]]),
        hardware_compatibility=st.sampled_from(["ampere_plus", "same_compute_capability"]),
        version_compatible=st.booleans(),
        refit=st.booleans(),
        gpu_fallback=st.booleans(),
    ),
)
