"""Settings of the onnxruntime backend: of its sessions and of the CUDA provider; `accelerator` has those of the TensorRT accelerator.

A key that is left out is not written, so that ONNX Runtime's own default holds. Sources: onnxruntime_backend/src/onnxruntime.cc for what the backend reads and
where; ONNX Runtime's documentation of its CUDA and TensorRT providers for what it means.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, ValidationInfo, WithJsonSchema, field_validator

from tritongen.spec.accelerator import TensorRTProvider
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize
from tritongen.spec.values import Flag, PositiveInt, problem

GraphOptimization = Literal["all", "extended", "basic", "off"]
ExecutionMode = Literal["sequential", "parallel"]
CudnnSearch = Literal["exhaustive", "heuristic", "default"]
ArenaExtension = Literal["next_power_of_two", "same_as_requested"]

_DEVICE_PATTERN = r"cpu:0|gpu:(0|[1-9][0-9]{0,4})"


def _check_device(value: str) -> str:
    if not re.fullmatch(_DEVICE_PATTERN, value):
        hint = "write cpu:0, or gpu: with the number of the GPU, such as gpu:0"
        raise problem(f"{value[:60]!r} is not a device of ONNX Runtime", hint=hint, consequence="every request would fail")
    return value


Device = Annotated[str, AfterValidator(_check_device), WithJsonSchema({"type": "string", "pattern": f"^({_DEVICE_PATTERN})$", "examples": ["cpu:0", "gpu:0"]})]


class CudaProvider(Strict, json_schema_extra={"examples": [{"cudnn_conv_algo_search": "heuristic", "gpu_mem_limit": "4GiB"}]}):
    """Options of ONNX Runtime's CUDA provider, for instances on GPUs, whatever the accelerator: it runs what TensorRT leaves over, too.

    Options that hold addresses or devices are not here: Triton sets them.
    """

    cudnn_conv_algo_search: CudnnSearch | None = setting(
        "How an algorithm is found for each convolution and each shape: exhaustive tries all, heuristic asks cuDNN, default takes one for all."
        " Default: exhaustive.",
        sets="parameters.cudnn_conv_algo_search",
        why="heuristic where shapes or batch sizes change often: an exhaustive search takes place for each new shape",
    )
    gpu_mem_limit: SomeSize | None = setting(
        "Most memory that the provider's arena takes on its GPU, for each copy; libraries take more beside it. Default: no limit.",
        sets="parameters.gpu_mem_limit",
        why="to fit several models on one GPU; a request that needs more fails",
    )
    arena_extend_strategy: ArenaExtension | None = setting(
        "How the arena grows: in powers of two, or by what is asked for. Default: next_power_of_two.",
        sets="parameters.arena_extend_strategy",
        why="same_as_requested takes less memory, and more time at the first requests",
    )
    do_copy_in_default_stream: Flag | None = setting(
        "Whether copies run in the stream of the computation. Default: true.",
        sets="parameters.do_copy_in_default_stream",
        why="ONNX Runtime recommends true; false has races",
    )
    cudnn_conv_use_max_workspace: Flag | None = setting(
        "Whether convolutions may take as much workspace as they want. Default: true.",
        sets="cudnn_conv_use_max_workspace of accelerator cuda",
        why="false saves memory and may choose slower algorithms",
    )
    cudnn_conv1d_pad_to_nc1d: Flag | None = setting(
        "Whether one-dimensional convolutions are padded as [N, C, 1, D] rather than [N, C, D, 1]. Default: false.",
        sets="cudnn_conv1d_pad_to_nc1d of accelerator cuda",
        why="some one-dimensional networks are faster with true",
    )
    enable_cuda_graph: Flag | None = setting(
        "Whether the graph is captured as a CUDA graph and replayed. Default: false.",
        sets="enable_cuda_graph of accelerator cuda",
        why="to launch many small kernels at once; ONNX Runtime wants shapes and addresses that never change for it",
    )
    enable_skip_layer_norm_strict_mode: Flag | None = setting(
        "Whether SkipLayerNormalization computes its sums in FP32. Default: false.",
        sets="enable_skip_layer_norm_strict_mode of accelerator cuda",
        why="for exacter answers of transformers in FP16, a little slower",
    )
    prefer_nhwc: Flag | None = setting(
        "Whether convolutions run with channels last. Default: false.",
        sets="prefer_nhwc of accelerator cuda",
        why="true may be faster for convolutional networks in FP16",
    )
    use_tf32: Flag | None = setting(
        "Whether products of FP32 matrices may be computed in TF32, with 10 bits of mantissa. Default: true.",
        sets="use_tf32 of accelerator cuda",
        why="false where answers must agree with the CPU's to more than three digits",
    )
    use_ep_level_unified_stream: Flag | None = setting(
        "Whether one CUDA stream serves all threads of a session. Default: false.",
        sets="use_ep_level_unified_stream of accelerator cuda",
        why="custom operators that keep a stream of their own may need it",
    )


class OnnxRuntime(
    Strict, json_schema_extra={"examples": [{"execution_mode": "parallel", "inter_op_threads": 2, "cuda": {"cudnn_conv_algo_search": "heuristic"}}]}
):
    """Settings of ONNX Runtime's sessions, with backend onnxruntime only. What is left out stays as ONNX Runtime has it."""

    graph_optimization: GraphOptimization = setting(
        "How much ONNX Runtime rewrites the graph when it loads it.",
        default="all",
        sets="optimization.graph.level, whose numbers mean something else than they seem to (1 is extended, 2 is off, -1 is basic)",
        why="less than all only to look for a fault of the optimiser, or where a model was optimised already",
    )
    execution_mode: ExecutionMode | None = setting(
        "Whether branches of the graph run one after another or at the same time. Default: sequential.",
        sets="parameters.execution_mode",
        why="parallel for graphs with many branches on a CPU; on a GPU ONNX Runtime makes it sequential again",
    )
    inter_op_threads: PositiveInt | None = setting(
        "Threads that run operators at the same time, for each copy; with execution_mode: parallel only. Default: with cpu_threads, the copy's share of"
        " triton.cpus; all cores for a single copy where that is not known.",
        sets="parameters.inter_op_thread_count",
        why="so that branches and operators do not ask for more threads than there are cores",
    )
    enable_mem_arena: Flag | None = setting(
        "Whether memory on the CPU is kept for later requests. Default: true.",
        sets="parameters.enable_mem_arena",
        why="false takes less memory and more time",
    )
    enable_mem_pattern: Flag | None = setting(
        "Whether the memory of a request is planned as one block, with execution_mode: sequential only. Default: true.",
        sets="parameters.enable_mem_pattern",
        why="false where shapes change with every request",
    )
    arena_shrinkage: tuple[Device, ...] = setting(
        "Devices whose memory is given back after each request, such as [cpu:0, gpu:0]; a copy without that device fails every request.",
        default=(),
        sets="parameters.memory.enable_memory_arena_shrinkage",
        why="when one large request must not keep its memory for ever",
    )
    use_device_allocator_for_initializers: Flag | None = setting(
        "Whether weights are allocated outside the arena. Default: false.",
        sets="parameters.session.use_device_allocator_for_initializers",
        why="true where the arena would round the memory of large weights up",
    )
    cuda: CudaProvider = setting(
        "Options of the CUDA provider, for instances on GPUs.",
        default_factory=CudaProvider,
        sets="parameters, and parameters of accelerator cuda",
        why="to bound memory, or to have convolutions planned faster",
    )
    tensorrt: TensorRTProvider = setting(
        "Options of the TensorRT accelerator, with accelerator: tensorrt only.",
        default_factory=TensorRTProvider,
        sets="parameters of accelerator tensorrt",
        why="to trade the time of building for the time of an answer, or to keep memory in bounds",
    )

    @field_validator("arena_shrinkage")
    @classmethod
    def _arenas_exist(cls, devices: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "cpu:0" in devices and info.data.get("enable_mem_arena") is False:
            raise problem(
                "arena_shrinkage lists cpu:0, and enable_mem_arena: false leaves it without an arena",
                code="TG015",
                consequence="ONNX Runtime refuses every request",
                hint="remove cpu:0 from arena_shrinkage, or enable_mem_arena",
                beside=("enable_mem_arena",),
            )
        return devices
