"""Rules: models of the vLLM backend, whose version folder holds the engine's arguments in place of a model.

Source: vllm_backend/src/model.py, `_init_engine_args` and `_validate_device_config`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tritongen.diagnostics import Location
from tritongen.modelconfig import ModelInstanceGroup
from tritongen.rules.context import ModelContext
from tritongen.rules.folders import fully_seen, loaded_folders, place
from tritongen.rules.rule import Consequence, Finding, Rule
from tritongen.signature.modelfile import recognise_pointer

ENGINE_ARGUMENTS = "model.json"
"""The file that the backend reads in the version's folder."""

_EXAMPLE = '{"model": "<name on a hub, or a path>"}'
_BOTH = frozenset({"config", "folder"})


def _is_vllm(context: ModelContext) -> bool:
    return context.config.backend == "vllm" and not context.config.runtime


def _read(text: bytes) -> Any:
    """The value in a JSON file. Raises ValueError for what Python's `json` does not read, with the reason."""
    pointer = recognise_pointer(text, len(text))
    if pointer:
        raise ValueError(pointer[1])
    try:
        return json.loads(text.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} (counted from 0) is no UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _arguments(context: ModelContext) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and content of each version's file that is an object, as it must be."""
    for number, file in context.models.items() if _is_vllm(context) else ():
        if file.text is not None:
            try:
                value = _read(file.text)
            except ValueError:
                continue
            if isinstance(value, dict):
                yield f"{context.versions.loaded[number]}/{ENGINE_ARGUMENTS}", value


def _missing(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    if not _is_vllm(context) or not fully_seen(folder):
        return
    for version in loaded_folders(context):
        facts = folder.entries.get(f"{version}/{ENGINE_ARGUMENTS}")
        if facts is not None and facts.kind == "file":
            continue
        others = [name for name in folder.files_in(version) if name.endswith(".json")]
        beside = ENGINE_ARGUMENTS in folder.entries
        found = "; one lies beside it, in the model's folder" if beside else f"; it holds {', '.join(others[:4])}" if others else ""
        hint = f"mv {folder.at(ENGINE_ARGUMENTS)} {folder.at(version)}" if beside else f"write {folder.at(f'{version}/{ENGINE_ARGUMENTS}')}: {_EXAMPLE}"
        yield Finding(
            f"version {version} has no {ENGINE_ARGUMENTS}, from which the vLLM backend takes its engine's arguments{found}", (), hint, place(context, version)
        )


def _invalid(context: ModelContext) -> Iterator[Finding]:
    for number, file in context.models.items() if _is_vllm(context) else ():
        if file.text is None:
            continue
        path = f"{context.versions.loaded[number]}/{ENGINE_ARGUMENTS}"
        where = place(context, path)
        try:
            value = _read(file.text)
        except ValueError as error:
            if isinstance(error, json.JSONDecodeError):
                lines = error.doc.splitlines()
                where = Location(where.path, error.lineno, error.colno, lines[error.lineno - 1] if error.lineno <= len(lines) else None)
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            yield Finding(f"{path} is no valid JSON: {reason}", hint=f"write {_EXAMPLE}; JSON has neither comments nor trailing commas", location=where)
            continue
        if not isinstance(value, dict):
            yield Finding(f"{path} holds {_kind(value)}, and an object with the engine's arguments is expected", hint=f"write {_EXAMPLE}", location=where)


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number", type(None): "null"}
    return names[type(value)]


def _no_model(context: ModelContext) -> Iterator[Finding]:
    for path, arguments in _arguments(context):
        if "model" not in arguments:
            message = f'{path} names no "model"; vLLM then loads a model of its own choice, a small one for demonstrations'
            yield Finding(message, hint='add `"model": "<name on a hub, or a path>"`', location=place(context, path))


def _not_decoupled(context: ModelContext) -> Iterator[Finding]:
    if _is_vllm(context) and not context.server.auto_complete and not context.config.model_transaction_policy.decoupled:
        yield Finding(
            "the model is not decoupled, which the vLLM backend demands and this server does not add (--disable-auto-complete-config)",
            ("model_transaction_policy", "decoupled"),
            "write `model_transaction_policy { decoupled: true }`",
        )


def _one_gpu(context: ModelContext) -> Iterator[Finding]:
    groups = [index for index, group in enumerate(context.config.instance_group) if group.kind == ModelInstanceGroup.KIND_GPU]
    for path, arguments in _arguments(context):
        sizes = [arguments.get(key, 1) for key in ("tensor_parallel_size", "pipeline_parallel_size")]
        if groups and all(type(size) is int for size in sizes) and sizes[0] * sizes[1] > 1:
            message = f"instances are KIND_GPU, of one GPU each, and {path} spreads the engine over {sizes[0] * sizes[1]}"
            yield Finding(message, ("instance_group", groups[0], "kind"), "write `kind: KIND_MODEL`, which leaves the choice of GPUs to vLLM")


RULES: tuple[Rule, ...] = (
    Rule(
        "TG393",
        "vllm-without-engine-arguments",
        Consequence.REFUSED,
        "Each version of a vLLM model has a model.json.",
        "The vLLM backend reads its engine's arguments from <version>/model.json and fails without it: \"'model.json' containing vllm engine args must be "
        'provided" (vllm_backend/src/model.py, _init_engine_args).',
        'backend: "vllm"  # and 1/ is empty',
        'backend: "vllm"  # with 1/model.json',
        check=_missing,
        needs=_BOTH,
    ),
    Rule(
        "TG394",
        "vllm-engine-arguments-that-are-none",
        Consequence.REFUSED,
        "A vLLM model's model.json is one JSON object.",
        "The backend passes what Python's json reads on to AsyncEngineArgs as keyword arguments, and fails where there are none "
        "(vllm_backend/src/model.py, _init_engine_args).",
        '["facebook/opt-125m"]',
        '{"model": "facebook/opt-125m"}',
        check=_invalid,
        needs=_BOTH,
    ),
    Rule(
        "TG395",
        "vllm-without-model",
        Consequence.MISBEHAVES,
        'A vLLM model\'s model.json names the "model".',
        "It is an argument with a default in vLLM (EngineArgs.model): without it the server downloads and serves a small public model.",
        '{"gpu_memory_utilization": 0.5}',
        '{"model": "facebook/opt-125m", "gpu_memory_utilization": 0.5}',
        check=_no_model,
        needs=_BOTH,
    ),
    Rule(
        "TG396",
        "vllm-not-decoupled",
        Consequence.REFUSED,
        "A vLLM model is decoupled, where the server completes no configs.",
        "'vLLM Triton backend must be configured to use decoupled model transaction policy'. With auto-complete the backend sets it itself "
        "(vllm_backend/src/model.py, _init_engine_args).",
        'backend: "vllm"  # --disable-auto-complete-config',
        'backend: "vllm"\nmodel_transaction_policy { decoupled: true }',
        check=_not_decoupled,
    ),
    Rule(
        "TG397",
        "vllm-of-several-gpus-on-one",
        Consequence.REFUSED,
        "A vLLM model that is spread over several GPUs is KIND_MODEL.",
        "'KIND_GPU is currently for single-GPU models' (vllm_backend/src/model.py, _validate_device_config).",
        'instance_group { kind: KIND_GPU }  # and "tensor_parallel_size": 2',
        'instance_group { kind: KIND_MODEL }  # and "tensor_parallel_size": 2',
        check=_one_gpu,
        needs=_BOTH,
    ),
)
