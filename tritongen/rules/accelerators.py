"""Rules: execution accelerators of the onnxruntime backend, their names, keys and values. `profiles` and `engine_caches` have the rest of the family."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from tritongen.known_issues import find_issue
from tritongen.rules import engine_caches, profiles
from tritongen.rules.context import ModelContext
from tritongen.rules.graphs import json_form
from tritongen.rules.ortload import CUDA_KEYS, CUDA_SHADOWED, TENSORRT_KEYS, Kind, Problem, accelerator_problems, has_option, onnxruntime_reads
from tritongen.rules.placement import on_gpu, tensorrt_accelerators, why_not
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_SOURCE = "onnxruntime_backend/src/onnxruntime.cc, LoadModel"
_LISTS = ("gpu_execution_accelerator", "cpu_execution_accelerator")
_WITHOUT_BF16 = find_issue("no-bf16-precision")
_RECORDED = "24.10"
_IF_CPU_BUILD = "Triton refuses to load the model where the backend is such a build; the usual image's backend loads it"
_WITHOUT = {
    "tensorrt": "a plan is built already",
    "python": "model.py decides",
    "pytorch": "LibTorch has its own settings",
    "openvino": "it is OpenVINO already",
}
"""Backends that read no accelerators, and what to say about it."""

_MEANT = {
    "trt_fp16_enable": 'precision_mode" value: "FP16',
    "trt_int8_enable": 'precision_mode" value: "INT8',
    "trt_bf16_enable": 'precision_mode" value: "BF16',
    "trt_max_workspace_size": "max_workspace_size_bytes",
    "trt_int8_calibration_table_name": "int8_calibration_table_name",
}
"""ONNX Runtime's own names of options → what the backend calls them."""


def _place(name: str) -> Key:
    return ("optimization", "execution_accelerators", name)


def _problems(context: ModelContext, *kinds: Kind) -> Iterator[Problem]:
    """Problems of a kind. An unknown machine counts as one with a GPU: why else would the list be there."""
    if context.is_onnx and context.config.optimization.HasField("execution_accelerators"):
        for problem in accelerator_problems(json_form(context.config), gpu=on_gpu(context) is not False):
            if problem.kind in kinds:
                yield problem


def _names(context: ModelContext) -> Iterator[Finding]:
    for problem in _problems(context, Kind.ACCELERATOR):
        known = " and ".join(f"'{name}'" for name in problem.choices)
        close = difflib.get_close_matches(problem.name.lower(), problem.choices, n=1)
        hint = f'write name: "{close[0]}"' if close else f"remove the entry; {known} can be named here"
        if problem.choices == ("openvino",) and problem.name in ("tensorrt", "cuda"):
            hint = "move it to gpu_execution_accelerator"
        elif problem.choices != ("openvino",) and problem.name == "openvino":
            hint = "move it to cpu_execution_accelerator"
        yield Finding(f"there is no accelerator '{problem.name}' in {problem.path[2]}; known are {known}", problem.path, hint)
    if context.is_onnx and context.server.gpus == 0:
        for index, accelerator in enumerate(context.config.optimization.execution_accelerators.cpu_execution_accelerator):
            if accelerator.name == "openvino":
                yield _openvino(context, (*_place(_LISTS[1]), index, "name"))


def _openvino(context: ModelContext, key: Key) -> Finding:
    """The one verdict that depends on how the backend was built, which no option tells: a server without GPUs may run either build."""
    message = f"accelerator 'openvino' is not in NVIDIA's onnxruntime backend as it is built for machines without GPUs (recorded with release {_RECORDED})"
    hint = "remove it, or see that the image's backend was built with OpenVINO, as that of NVIDIA's usual image is"
    return Finding(message, key, hint, consequence=Consequence.MISBEHAVES, follows=_IF_CPU_BUILD)


def _without_effect(context: ModelContext) -> Iterator[Finding]:
    accelerators = context.config.optimization.execution_accelerators
    backend = context.resolved.backend
    if backend in _WITHOUT and not context.is_ensemble:
        for name in _LISTS:
            if getattr(accelerators, name):
                message = f"{name} has no effect: the {backend} backend reads no accelerators ({_WITHOUT[backend]})"
                yield Finding(message, _place(name), f"remove {name}")
    if not context.is_onnx:
        return
    if accelerators.gpu_execution_accelerator and on_gpu(context) is False:
        listed = ", ".join(f"'{accelerator.name}'" for accelerator in accelerators.gpu_execution_accelerator)
        hint = "write instance_group [ { kind: KIND_GPU } ], or remove gpu_execution_accelerator"
        yield Finding(f"gpu_execution_accelerator {listed} has no effect: {why_not(context)}", _place(_LISTS[0]), hint)
    for index, accelerator in enumerate(accelerators.cpu_execution_accelerator):
        if accelerator.name == "openvino" and accelerator.parameters:
            keys = ", ".join(sorted(accelerator.parameters))
            key = (*_place(_LISTS[1]), index, "parameters")
            yield Finding(f"the backend reads no parameters of 'openvino' ({keys}); the device is always the CPU", key, "remove them")


def _keys(context: ModelContext) -> Iterator[Finding]:
    for problem in _problems(context, Kind.ACCELERATOR_KEY):
        meant = _MEANT.get(problem.name) or next(iter(difflib.get_close_matches(problem.name, problem.choices, n=1)), "")
        hint = f'write key: "{meant}"' if meant else "remove it: the set of keys is closed, and other options of ONNX Runtime cannot be reached"
        yield Finding(f"accelerator 'tensorrt' has no parameter '{problem.name}'", problem.path, hint)
    yield from _options(context)


def _options(context: ModelContext) -> Iterator[Finding]:
    """Options that the release's ONNX Runtime does not have, or not yet."""
    release = context.server.release
    if not context.is_onnx or on_gpu(context) is False or release is None or release.onnxruntime is None:
        return
    for index, accelerator in enumerate(context.config.optimization.execution_accelerators.gpu_execution_accelerator):
        known = {"cuda": CUDA_KEYS, "tensorrt": frozenset(TENSORRT_KEYS)}.get(accelerator.name, frozenset())
        for name in sorted(accelerator.parameters):
            key = (*_place(_LISTS[0]), index, "parameters", name)
            if name in known and not has_option(name, release.onnxruntime):
                message = f"release {release.name} has ONNX Runtime {release.onnxruntime}, which has no '{name}' yet"
                yield Finding(message, key, "remove it, or use a newer release")
            elif accelerator.name == "cuda" and name not in known:
                close = difflib.get_close_matches(name, sorted(known), n=1)
                yield Finding(f"ONNX Runtime's CUDA provider has no option '{name}'", key, f'write key: "{close[0]}"' if close else "remove it")


def _values(context: ModelContext) -> Iterator[Finding]:
    for problem in _problems(context, Kind.ACCELERATOR_VALUE):
        upper = problem.found.upper()
        hint = f'write value: "{upper}"' if problem.name == "precision_mode" and upper in problem.expected.split(" or ") else f"write {problem.expected}"
        yield Finding(f"{problem.name} is '{problem.found}'; expected {problem.expected}", problem.path, hint)
    release = context.server.release
    for key, accelerator in tensorrt_accelerators(context):
        for name, value in sorted(accelerator.parameters.items()):
            kind = TENSORRT_KEYS.get(name, ("", ""))[0]
            refused = any(problem.path[-1] == name for problem in _problems(context, Kind.ACCELERATOR_VALUE))
            if kind and not refused and not onnxruntime_reads(kind, value):
                message = f"{name} is '{value}': the backend takes it, and hands it to ONNX Runtime as it is, which does not"
                yield Finding(message, (*key, "parameters", name), "write 1 or 0" if kind == "switch" else "write digits alone")
        if accelerator.parameters.get("precision_mode") == "BF16" and release is not None and _WITHOUT_BF16.holds_in(release):
            yield Finding(f"in release {release.name} {_WITHOUT_BF16.text}", (*key, "parameters", "precision_mode"), _WITHOUT_BF16.advice)


def _shadowed(context: ModelContext) -> Iterator[Finding]:
    if not context.is_onnx or on_gpu(context) is False:
        return
    for index, accelerator in enumerate(context.config.optimization.execution_accelerators.gpu_execution_accelerator):
        for name in CUDA_SHADOWED if accelerator.name == "cuda" else ():
            if name in accelerator.parameters:
                instead = "the value in the config's parameters" if name in context.config.parameters else "the default"
                message = f"{name} of accelerator 'cuda' is overwritten: {instead} is used"
                hint = f'write parameters {{ key: "{name}" value: {{ string_value: "..." }} }} at the top of the config instead; it takes other words there'
                yield Finding(message, (*_place(_LISTS[0]), index, "parameters", name), hint)


def _nested(name: str, accelerator: str, parameters: str = "") -> str:
    return f'optimization {{ execution_accelerators {{ {name} [ {{ name: "{accelerator}"{parameters} }} ] }} }}'


_ONNX = 'platform: "onnxruntime_onnx"\ninstance_group [ { kind: KIND_GPU } ]\n'

RULES: tuple[Rule, ...] = (
    Rule(
        "TG290",
        "unknown-accelerator",
        Consequence.REFUSED,
        "Accelerators have the names that the onnxruntime backend knows.",
        "'tensorrt' and 'cuda' for GPU instances, 'openvino' in the CPU list, in lower case; anything else is 'unknown Execution Accelerator' "
        f"({_SOURCE}; recorded by running "
        "NVIDIA's backend of release 24.10, whose CPU build has no 'openvino' either).",
        _ONNX + _nested(_LISTS[0], "TensorRT"),
        _ONNX + _nested(_LISTS[0], "tensorrt"),
        _names,
    ),
    Rule(
        "TG291",
        "accelerator-without-effect",
        Consequence.IGNORED,
        "Accelerators are given where a backend reads them.",
        "The GPU list is read for GPU instances of the onnxruntime backend alone, the parameters of 'openvino' never, and other backends read "
        f"neither list ({_SOURCE}). "
        "The config still shows them, so the model looks accelerated.",
        'platform: "onnxruntime_onnx"\ninstance_group [ { kind: KIND_CPU } ]\n' + _nested(_LISTS[0], "tensorrt"),
        _ONNX + _nested(_LISTS[0], "tensorrt"),
        _without_effect,
    ),
    Rule(
        "TG292",
        "unknown-accelerator-parameter",
        Consequence.REFUSED,
        "The parameters of accelerators are among those that the backend and the release's ONNX Runtime know.",
        f"For 'tensorrt' the set is closed: 'unknown parameter ... is provided for TensorRT Execution Accelerator' ({_SOURCE}). Some have other names than in "
        "ONNX Runtime. Those of 'cuda' are handed to ONNX Runtime, which refuses what it does not know. Older versions know fewer (measured in the provider "
        "libraries of ONNX Runtime 1.16 to 1.28).",
        _ONNX + _nested(_LISTS[0], "tensorrt", ' parameters { key: "trt_fp16_enable" value: "1" }'),
        _ONNX + _nested(_LISTS[0], "tensorrt", ' parameters { key: "precision_mode" value: "FP16" }'),
        _keys,
    ),
    Rule(
        "TG293",
        "accelerator-parameter-value",
        Consequence.REFUSED,
        "The values of an accelerator's parameters are ones that the backend and ONNX Runtime read.",
        f"precision_mode is FP32, FP16, BF16 (from 26.02 on) or INT8, in capitals ({_SOURCE}). The backend takes 'on' for a switch and forwards "
        "the word; ONNX Runtime knows 0, 1, "
        "true and false only (core/common/parse_string.h), and whole numbers without anything behind them.",
        _ONNX + _nested(_LISTS[0], "tensorrt", ' parameters { key: "precision_mode" value: "fp16" }'),
        _ONNX + _nested(_LISTS[0], "tensorrt", ' parameters { key: "precision_mode" value: "FP16" }'),
        _values,
    ),
    Rule(
        "TG294",
        "shadowed-cuda-parameter",
        Consequence.IGNORED,
        "The four settings that the backend reads from the config's parameters are not given to accelerator 'cuda'.",
        f"{', '.join(CUDA_SHADOWED)} are overwritten with the config's own parameters, or with defaults where it has none ({_SOURCE}).",
        _ONNX + _nested(_LISTS[0], "cuda", ' parameters { key: "gpu_mem_limit" value: "2147483648" }'),
        _ONNX + 'parameters { key: "gpu_mem_limit" value: { string_value: "2147483648" } }',
        _shadowed,
    ),
    *profiles.RULES,
    *engine_caches.RULES,
)
