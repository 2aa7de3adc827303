"""pydantic's errors in people's words.

Owns the wording of every finding about a key of the spec. Codes: TG008 unknown key, TG009 something required is missing, TG010 a value of the wrong kind, TG011
a value that is not allowed, TG012 a duration or size; the checks of the spec carry their own code (TG013 to TG017).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from tritongen.sources.flow import yaml_flow
from tritongen.spec.models import ModelSpec, Precision, Spec
from tritongen.spec.values import describe

Path = tuple[str | int, ...]

_MODELCONFIG_KEYS: Mapping[str, str] = {
    "max_batch_size": "write batching: {max: 8}",
    "dynamic_batching": "write batching: {preferred: [4, 8], max_queue_delay: 2ms}",
    "preferred_batch_size": "write batching: {preferred: [4, 8]}",
    "max_queue_delay_microseconds": "write batching: {max_queue_delay: 2ms}",
    "instance_group": "write instances: [{kind: gpu, count: 2}]",
    "default_queue_policy": "write queue: {max_queue_size: 64, default_timeout: 10ms}",
    "max_queue_size": "write queue: {max_queue_size: 64}",
    "default_timeout_microseconds": "write queue: {default_timeout: 10ms}",
    "timeout_action": "write queue: {timeout_action: reject}",
    "allow_timeout_override": "write queue: {allow_timeout_override: true}",
    "priority_levels": "write queue: {priority_levels: 2}",
    "default_priority_level": "write queue: {priority_levels: 2, default_priority_level: 2}",
    "priority_queue_policy": "write queue: {priority_levels: 2, priority_queue_policy: {1: {default_timeout: 10ms}}}",
    "preserve_ordering": "write queue: {preserve_ordering: true}",
    "eager_batching": "write batching: {eager: true}",
    "gather_kernel_buffer_threshold": "write batching: {gather_kernel_buffer_threshold: 8}",
    "input_pinned_memory": "write batching: {pinned_memory: {input: false}}",
    "output_pinned_memory": "write batching: {pinned_memory: {output: false}}",
    "rate_limiter": "write instances: [{rate_limiter: {resources: [{name: gpu_memory, count: 1}]}}]",
    "host_policy": "write instances: [{host_policy: gpu_0}]",
    "secondary_devices": "write instances: [{kind: gpu, dla: 0}]",
    "intra_op_thread_count": "write cpu_threads: 4",
    "version_policy": "write versions: {policy: latest, count: 1}",
    "model_warmup": "write warmup: auto or a list of batch sizes",
    "platform": "write backend: onnxruntime or backend: tensorrt",
    "optimization": "write accelerator: tensorrt, onnxruntime: {...} or tensorrt: {...}, or put it under config:",
    "execution_accelerators": "write accelerator: tensorrt",
    "gpu_execution_accelerator": "write accelerator: tensorrt",
    "cpu_execution_accelerator": "write accelerator: openvino",
    "precision_mode": "write precision: fp16",
    "graph_optimization_level": "write onnxruntime: {graph_optimization: extended}",
    "inter_op_thread_count": "write onnxruntime: {execution_mode: parallel, inter_op_threads: 2}",
    "graph_spec": "write tensorrt: {cuda_graphs: true}",
    "graphs": "write tensorrt: {cuda_graphs: true}",
    "cuda": "write onnxruntime: {cuda: {...}}, or with backend: tensorrt, tensorrt: {cuda_graphs: true}",
    "model_operations": "write op_libraries: [/opt/ops/libmy_ops.so]",
    "op_library_filename": "write op_libraries: [/opt/ops/libmy_ops.so]",
    "input": "inputs are read from the model file; put what should differ under config:",
    "output": "outputs are read from the model file; put what should differ under config:",
    "default_model_filename": "write source: path.onnx",
    "allow_ragged_batch": "write ragged: {inputs: [x]}",
    "batch_input": "write ragged: {inputs: [x], batch_inputs: [{names: [offsets], kind: batch_accumulated_element_count_with_zero, source: x}]}",
    "batch_output": "write ragged: {inputs: [x], batch_outputs: [{names: [y], source: x}]}",
    "optional": "write optional_inputs: [x]",
}
_PLAIN_OVERLAY = ("parameters", "sequence_batching", "metric_tags", "model_transaction_policy", "model_repository_agents")

_BACKEND_SECTIONS = (("onnxruntime",), ("onnxruntime", "cuda"), ("onnxruntime", "tensorrt"), ("tensorrt",))
"""Sections whose keys people look for beside the section, under the names that ONNX Runtime has for them."""


_LIMITS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}


@dataclass(frozen=True)
class Wording:
    """What a finding says. `at_key` is True where the key itself is wrong, not its value; `beside` is the key that it disagrees with, as in `problem`."""

    code: str
    message: str
    hint: str = ""
    consequence: str = ""
    at_key: bool = False
    beside: tuple[str, ...] = ()


def word(error: ErrorDetails) -> Wording:
    """The wording for one pydantic error, without the key's name in front."""
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    path: Path = tuple(error["loc"])
    if kind == "tritongen":
        return Wording(context["code"], context["message"], context["hint"], context["consequence"], beside=context["beside"])
    if kind == "unit":
        return Wording("TG012", context["message"], context["hint"])
    if kind == "extra_forbidden":
        return _unknown_key(path)
    if kind == "missing":
        return _missing_key(path)
    if kind == "literal_error":
        return _not_a_choice(path, value, context["expected"])
    if kind in ("greater_than_equal", "less_than_equal", "greater_than", "less_than"):
        limit = next(f"{words} {_number(context[key])}" for key, words in _LIMITS.items() if key in context)
        return Wording("TG011", f"must be {limit}, and it is {value}", f"write a number that is {limit}")
    if kind == "too_short":
        return Wording("TG011", "the list is empty", "add an entry" if path == ("models",) else "add an entry, or remove the key")
    return _wrong_kind(kind, path, value, error["msg"])


def _number(limit: float) -> str:
    """A limit, exact: whole numbers without an exponent."""
    return str(int(limit)) if limit == int(limit) else str(limit)


def _wrong_kind(kind: str, path: Path, value: object, original: str) -> Wording:
    """A value of another kind than the key takes."""
    if kind in ("int_type", "int_from_float", "int_parsing"):
        is_digits = isinstance(value, str) and value.strip().isdigit()
        return Wording(
            "TG010", f"expected a whole number, got {describe(value)}", "remove the quotes" if is_digits else "write a number without quotes or decimals"
        )
    if kind == "float_type":
        return Wording("TG010", f"expected a number, got {describe(value)}", "write a number without quotes")
    if kind == "finite_number":
        return Wording("TG010", f"expected a finite number, got {value}", "write a number that is neither infinite nor .nan")
    if kind == "bool_type":
        return Wording("TG010", f"expected true or false, got {describe(value)}", "write true or false, without quotes")
    if kind == "string_type":
        quote = isinstance(value, bool | int | float)
        return Wording("TG010", f"expected a text, got {describe(value)}", "put it in quotes" if quote else "write a text")
    if kind in ("tuple_type", "list_type"):
        hint = f"write [{value}]" if isinstance(value, str | int | float) else "write a list: [..., ...], or one entry a line, each after '- '"
        return Wording("TG010", f"expected a list, got {describe(value)}", hint)
    if kind in ("model_type", "model_attributes_type", "dict_type", "mapping_type"):
        example = _example_at(path)
        hint = f"write {path[-1]}: {yaml_flow(example)}, say" if example else "write {key: value}, or one key: value a line, indented"
        return Wording("TG010", f"expected a mapping (key: value), got {describe(value)}", hint)
    return Wording("TG010", f"{original[:1].lower()}{original[1:]}, got {describe(value)}")


def _missing_key(path: Path) -> Wording:
    parent, key = path[:-1], str(path[-1])
    keys = fields_at(parent)
    purpose = keys.get(key, "").split(". ")[0].split(": ")[0].rstrip(".:")
    return Wording("TG009", f"{key!r} is missing", f"add {key}: ({purpose[:1].lower()}{purpose[1:]})" if purpose else f"add {key}:", at_key=True)


def _plain(key: str) -> str:
    """ONNX Runtime's own name of an option (`trt_sparsity_enable`) as the spec has it (`sparsity`)."""
    lower = key.lower().replace("-", "_")
    return lower.removeprefix("trt_").removesuffix("_enable") if lower.startswith("trt_") else lower


def _home(plain: str, path: Path) -> str:
    """Where a key of a backend's section belongs that stands somewhere else in a model; empty where it is none."""
    inside = tuple(path[2:-1] if path[0] == "models" else path[1:-1])
    if inside and inside not in _BACKEND_SECTIONS:
        return ""
    if plain in get_args(Precision):
        return f"write precision: {plain}, beside accelerator: tensorrt"
    for section in _BACKEND_SECTIONS:
        if section != inside and plain in fields_at(("models", 0, *section)):
            opened = "".join(f"{part}: {{" for part in section)
            return f"it belongs elsewhere: {opened}{plain}: ...{'}' * len(section)}"
    return ""


def _unknown_key(path: Path) -> Wording:
    """The closest valid key, or where the setting belongs."""
    key = str(path[-1])
    known = fields_at(path[:-1])
    plain = _plain(key)
    close = [plain] if plain in known else difflib.get_close_matches(key.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    in_model = "batching" in known
    if key in fields_at(("models", 0)) and not in_model:
        hint = f"{key!r} is a key of a model: indent it below its '- name:'"
    elif in_model and key in _MODELCONFIG_KEYS:
        hint = _MODELCONFIG_KEYS[key]
    elif in_model and key in _PLAIN_OVERLAY:
        hint = f"put fields of Triton's ModelConfig under config: config: {{{key}: ...}}"
    elif home := _home(plain, path):
        hint = home
    elif close:
        hint = f"did you mean {close[0]!r}?"
    else:
        hint = f"the keys here are: {', '.join(known)}"
    return Wording("TG008", f"there is no key {key[:60]!r}", hint, at_key=True)


def _not_a_choice(path: Path, value: object, expected: str) -> Wording:
    """A text that is none of the allowed ones. `expected` is pydantic's list, such as `'a', 'b' or 'c'`."""
    choices = [choice.strip("' ") for choice in expected.replace(" or ", ", ").split(",")]
    code = "TG011" if isinstance(value, str) else "TG010"
    close = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.5) if isinstance(value, str) else []
    hint = f"did you mean {close[0]!r}?" if close else f"write one of {', '.join(choices)}"
    return Wording(code, f"expected one of {', '.join(choices)}; got {describe(value)}", hint)


def fields_at(path: Sequence[str | int]) -> dict[str, str]:
    """The valid keys at this place of a spec with their descriptions; empty where the keys are free (tensor names) or no mapping is expected."""
    model = _part_at(path)
    if model is None:
        return {}
    first = {"name": "", "source": ""} if model is ModelSpec else {}  # the keys that everybody starts with
    return first | {field.alias or name: field.description or "" for name, field in model.model_fields.items()}


def _example_at(path: Sequence[str | int]) -> Any:
    """What a mapping at this place may look like; None where that is not known, or is too much for a line."""
    model = _part_at(path)
    extra = model.model_config.get("json_schema_extra") if model is not None and path and isinstance(path[-1], str) else None
    examples = extra.get("examples") if isinstance(extra, dict) else None
    return examples[0] if isinstance(examples, list) and len(path) > 1 else None


def _part_at(path: Sequence[str | int]) -> type[BaseModel] | None:
    """The part of a spec that is expected at this place; None where it is none, or the keys are free."""
    model: type[BaseModel] | None = Spec
    rest = list(path)
    names_first = False
    while rest and model is not None:
        part = rest.pop(0)
        field = next((field for name, field in model.model_fields.items() if (field.alias or name) == part), None)
        if field is None:
            return None
        names_first = _is_mapping(field.annotation)
        model = _model_inside(field.annotation)
        while rest and (isinstance(rest[0], int) or names_first):
            names_first = names_first and isinstance(rest[0], int)
            rest.pop(0)
    return None if names_first else model


def _is_mapping(annotation: Any) -> bool:
    return isinstance(origin := get_origin(annotation), type) and issubclass(origin, Mapping)


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    """The first pydantic model in an annotation such as `tuple[Annotated[M, ...], ...]`."""
    if get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, BaseModel):  # Python 3.10 takes tuple[X] for a class
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_inside(part)) is not None), None)


def key_name(path: Sequence[str | int]) -> str:
    """A path as people write it, within its model: `batching.preferred, item 2`, `instances.count`."""
    parts = list(path[2:] if len(path) > 1 and path[0] == "models" and isinstance(path[1], int) else path)
    name = ".".join(part[:60] for part in parts if isinstance(part, str) and part != "[key]")
    return f"{name}, item {parts[-1] + 1}" if name and isinstance(parts[-1], int) else name
