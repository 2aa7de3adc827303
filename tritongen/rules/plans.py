"""Rules: TensorRT plans, as far as a repository shows them. The engine itself is not opened: only TensorRT can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tritongen.diagnostics import Location
from tritongen.modelconfig import DataType, ModelInstanceGroup
from tritongen.repository.stamp import read_stamp
from tritongen.rules.built_plans import build_hint, plan_place
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule
from tritongen.signature.modelfile import recognise, recognise_text
from tritongen.signature.plan import TENSORRT_RTX, read_plan_header

_SOURCE = "tensorrt_backend/src"
_TYPES = frozenset({"TYPE_FP32", "TYPE_FP16", "TYPE_BF16", "TYPE_INT8", "TYPE_UINT8", "TYPE_INT32", "TYPE_INT64", "TYPE_BOOL"})
_SINCE_10 = frozenset({"TYPE_INT64", "TYPE_BF16"})
_PLAN_MAGIC = (b"ptrt", b"ftrt")
_SMALLEST_ONNX = b"\x08"  # the field ir_version, which writers put first


def plans_to_build(context: ModelContext) -> frozenset[str]:
    """Paths of plans, relative to the model's folder, that tritongen's stamp in the config says are built on the target."""
    stamp = read_stamp(context.text.decode("utf-8", "replace")) if context.text.startswith(b"#") else None
    return frozenset(path.as_posix() for path in stamp.kept) if stamp is not None else frozenset()


def _no_plan(context: ModelContext) -> Iterator[Finding]:
    for path, plan in context.plans.items():
        name = PurePosixPath(path).name
        for problem in plan.problems:
            yield Finding(problem.message, plan.key, f"build the plan (trtexec --saveEngine={name}) and put it there", plan_place(context, path))
        if plan.head is not None and (kind := _kind(*plan.head)):
            hint = f"build a plan from it (trtexec --onnx=... --saveEngine={name})" if "ONNX" in kind else "put the plan there"
            yield Finding(f"{path} is {kind}, not a TensorRT plan", plan.key, hint, plan_place(context, path))


def _kind(head: bytes, size: int) -> str:
    """What a file is that is surely no plan; empty where it may be one."""
    if head.startswith(_PLAN_MAGIC):
        return ""
    header = read_plan_header(head)
    if header is not None and header.kind == TENSORRT_RTX:
        return f"a plan of TensorRT-RTX {header.version}".rstrip()
    known = recognise(head, size) or recognise_text(head)
    if known is not None:
        return known[1].removeprefix("the file is ").partition(", not ")[0]
    return "an ONNX model" if head.startswith(_SMALLEST_ONNX) and b"\x12" in head[:4] + head[4:64] else ""


def _not_built(context: ModelContext) -> Iterator[Finding]:
    if not context.is_plan or context.folder is None or context.folder.truncated:
        return
    folders = frozenset(context.versions.loaded.values())
    for path in sorted(plans_to_build(context)):
        folder, _, name = path.partition("/")
        if folder not in folders or path in context.folder.entries:
            continue
        capabilities = [key for key, value in context.config.cc_model_filenames.items() if value == name]
        whose = f", which GPUs of compute capability {capabilities[0]} load" if capabilities else ""
        message = f"{path}{whose} is not built yet: its config says that it is made on the machine that serves it"
        yield Finding(message, ("default_model_filename",), build_hint(context), Location(str(context.folder.path / path)))


def _optional(context: ModelContext) -> Iterator[Finding]:
    for index, tensor in enumerate(context.config.input if context.is_plan else ()):
        if tensor.optional:
            yield Finding(
                f"input '{tensor.name}' is optional, which the tensorrt backend does not support", ("input", index, "optional"), "remove optional: true"
            )


def _types(context: ModelContext) -> Iterator[Finding]:
    release = context.server.release
    for role in ("input", "output") if context.is_plan else ():
        for index, tensor in enumerate(getattr(context.config, role)):
            name = DataType.Name(tensor.data_type) if tensor.data_type in DataType.values() else ""
            key: Key = (role, index, "data_type")
            if name in ("", "TYPE_INVALID"):
                continue
            if name not in _TYPES:
                allowed = ", ".join(sorted(_TYPES))
                yield Finding(f"{role} '{tensor.name}' is {name}, which no TensorRT engine has; possible are {allowed}", key, "write the engine's type")
            elif name in _SINCE_10 and release is not None and release.least_tensorrt_major < 10:
                engines = f"engines of TensorRT {release.tensorrt_text} (release {release.name})"
                message = f"{role} '{tensor.name}' is {name}; {engines} have no such inputs and outputs"
                yield Finding(message, key, "write TYPE_INT32" if name == "TYPE_INT64" else "write TYPE_FP32", consequence=Consequence.REFUSED)


def _graphs(context: ModelContext) -> Iterator[Finding]:
    largest = context.config.max_batch_size
    for index, spec in enumerate(context.config.optimization.cuda.graph_spec if context.is_plan else ()):
        key: Key = ("optimization", "cuda", "graph_spec", index)
        if not 0 <= spec.batch_size <= largest or (largest > 0 and spec.batch_size == 0):
            expected = f"1 to {largest} (max_batch_size)" if largest else "0, since max_batch_size is 0"
            yield Finding(f"graph_spec {index + 1} has batch_size {spec.batch_size}; expected {expected}", (*key, "batch_size"), f"write batch_size: {largest}")
        if spec.HasField("graph_lower_bound"):
            yield from _lower_bound(spec, (*key, "graph_lower_bound"), index)


def _lower_bound(spec: Any, key: Key, index: int) -> Iterator[Finding]:
    bound = spec.graph_lower_bound
    if bound.batch_size > spec.batch_size:
        message = f"the lower bound of graph_spec {index + 1} has batch_size {bound.batch_size}, above the spec's own {spec.batch_size}"
        yield Finding(message, (*key, "batch_size"), f"write batch_size: {min(1, spec.batch_size)}")
    if set(bound.input) != set(spec.input):
        listed, own = (", ".join(sorted(names)) or "none" for names in (bound.input, spec.input))
        yield Finding(f"the lower bound of graph_spec {index + 1} lists the inputs {listed}, and the spec lists {own}", key, "list the same inputs in both")
        return
    for name in sorted(spec.input):
        low, high = list(bound.input[name].dim), list(spec.input[name].dim)
        if len(low) != len(high) or any(not 0 <= small <= large for small, large in zip(low, high, strict=True)):
            yield Finding(
                f"the lower bound of input '{name}' is {low}, which is not within the spec's {high}",
                (*key, "input", name),
                "let every size be at most the spec's",
            )


def _devices(context: ModelContext) -> Iterator[Finding]:
    for index, group in enumerate(context.config.instance_group if context.is_plan else ()):
        if len(group.secondary_devices) > 1:
            message = f"instance group {index + 1} has {len(group.secondary_devices)} secondary devices; the tensorrt backend takes one"
            yield Finding(message, ("instance_group", index, "secondary_devices"), "keep one")


def _off_the_gpu(context: ModelContext) -> Iterator[Finding]:
    """Groups that are on the CPU as written, or that become so on a server without a GPU; KIND_GPU there is another rule's, and so are listed GPUs."""
    if not context.is_plan:
        return
    hint = "write `kind: KIND_GPU`; where there is no GPU, serve the ONNX model in place of the plan"
    for index, group in enumerate(context.config.instance_group):
        if group.kind == ModelInstanceGroup.KIND_CPU and not group.gpus:
            yield Finding(f"instance group {index + 1} is KIND_CPU, and this is a TensorRT plan, which runs on a GPU", ("instance_group", index, "kind"), hint)
        elif group.kind == ModelInstanceGroup.KIND_AUTO and not group.gpus and context.server.gpus == 0:
            message = f"instance group {index + 1} becomes KIND_CPU on a server without a GPU, and this is a TensorRT plan"
            yield Finding(message, ("instance_group", index), hint)
    if not context.config.instance_group and context.server.gpus == 0:
        yield Finding("this is a TensorRT plan, and the server has no GPU", ("platform",) if context.config.platform else ("backend",), hint)


def _cuda_elsewhere(context: ModelContext) -> Iterator[Finding]:
    if context.is_onnx and context.config.optimization.HasField("cuda"):
        message = "optimization.cuda has no effect: CUDA graphs and the other settings there are those of the tensorrt backend"
        hint = 'remove it; for the accelerator, write parameters { key: "trt_cuda_graph_enable" value: "1" } inside gpu_execution_accelerator \'tensorrt\''
        yield Finding(message, ("optimization", "cuda"), hint)


_PLAN = 'platform: "tensorrt_plan"\nmax_batch_size: 8\n'
_FOLDER = frozenset({"folder"})

RULES: tuple[Rule, ...] = (
    Rule(
        "TG350",
        "no-plan",
        Consequence.REFUSED,
        "Every file that a TensorRT model can load is a plan.",
        f"TensorRT cannot deserialize anything else ({_SOURCE}/loader.cc); a renamed ONNX file is the usual case. On a GPU that cc_model_filenames "
        "names, Triton loads that file in place of default_model_filename, so that a test on another GPU does not show it.",
        "model/1/model.plan   # an ONNX file under another name",
        "model/1/model.plan   # written by trtexec --saveEngine",
        _no_plan,
        needs=_FOLDER,
    ),
    Rule(
        "TG351",
        "plan-not-built-yet",
        Consequence.REFUSED,
        "A plan that is built on the target is there when the model is served.",
        "tritongen renders the config and a build script; the plan depends on the GPU and the release, so it is made where it runs. Until then "
        "Triton refuses to load the model.",
        "# tritongen-kept: 1/model.plan   (and no model/1/model.plan)",
        "# tritongen-kept: 1/model.plan   (and the file is there)",
        _not_built,
        needs=_FOLDER,
    ),
    Rule(
        "TG352",
        "optional-input-of-a-plan",
        Consequence.REFUSED,
        "Inputs of a TensorRT plan are not optional.",
        f"The backend refuses optional inputs: an engine needs every input ({_SOURCE}/instance_state.cc).",
        _PLAN + 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] optional: true } ]',
        _PLAN + 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]',
        _optional,
    ),
    Rule(
        "TG353",
        "dtype-no-engine-has",
        Consequence.REFUSED,
        "Inputs and outputs of a plan have data types that TensorRT engines have.",
        f"The backend maps FP32, FP16, BF16, INT8, UINT8, INT32, INT64 and BOOL ({_SOURCE}/tensorrt_utils.cc); INT64 and BF16 only since TensorRT "
        "10 (release 24.05).",
        _PLAN + 'input [ { name: "x" data_type: TYPE_FP64 dims: [ 64 ] } ]',
        _PLAN + 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]',
        _types,
    ),
    Rule(
        "TG354",
        "cuda-graph-outside-the-model",
        Consequence.REFUSED,
        "CUDA graph specs stay within max_batch_size, and their lower bounds within the specs.",
        "batch_size is 0 exactly where max_batch_size is 0, else 1 to max_batch_size; a lower bound lists the same inputs, none of them larger "
        f"({_SOURCE}/instance_state.cc).",
        _PLAN + "optimization { cuda { graphs: true graph_spec [ { batch_size: 16 } ] } }",
        _PLAN + "optimization { cuda { graphs: true graph_spec [ { batch_size: 8 } ] } }",
        _graphs,
    ),
    Rule(
        "TG355",
        "two-secondary-devices",
        Consequence.REFUSED,
        "An instance group of a plan has at most one secondary device.",
        f"The tensorrt backend takes one DLA core ({_SOURCE}/model_state.cc).",
        _PLAN + "instance_group [ { kind: KIND_GPU secondary_devices [ { kind: KIND_NVDLA device_id: 0 }, { kind: KIND_NVDLA device_id: 1 } ] } ]",
        _PLAN + "instance_group [ { kind: KIND_GPU secondary_devices [ { kind: KIND_NVDLA device_id: 0 } ] } ]",
        _devices,
    ),
    Rule(
        "TG356",
        "cuda-settings-without-a-plan",
        Consequence.IGNORED,
        "optimization.cuda is given to TensorRT plans.",
        "CUDA graphs, busy waiting and the copy stream are read by the tensorrt backend; the onnxruntime backend does not look at them "
        "(onnxruntime_backend/src/onnxruntime.cc).",
        'platform: "onnxruntime_onnx"\noptimization { cuda { graphs: true } }',
        _PLAN + "optimization { cuda { graphs: true } }",
        _cuda_elsewhere,
    ),
    Rule(
        "TG357",
        "plan-off-the-gpu",
        Consequence.REFUSED,
        "Every instance group of a plan is on a GPU.",
        f"'TensorRT backend supports only GPU device' ({_SOURCE}/instance_state.cc). KIND_AUTO, and a config without groups, become KIND_CPU on a server "
        "without a GPU (core/src/model_config_utils.cc, NormalizeInstanceGroup).",
        _PLAN + "instance_group [ { kind: KIND_CPU } ]",
        _PLAN + "instance_group [ { kind: KIND_GPU } ]",
        _off_the_gpu,
    ),
)
