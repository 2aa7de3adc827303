"""Options of ONNX Runtime's TensorRT provider, as Triton's `tensorrt` accelerator takes them.

Sources: onnxruntime_backend/src/onnxruntime.cc for the names that it knows; ONNX Runtime's documentation of its TensorRT provider for what they mean.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from tritongen.spec.libraries import PluginPath
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize
from tritongen.spec.values import Flag, PathText, PositiveInt, ServerPath, Size32, problem

_PREFIX_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


def _check_prefix(value: str) -> str:
    if not re.fullmatch(_PREFIX_PATTERN, value):
        raise problem(f"{value[:60]!r} cannot begin a file's name", hint="use letters, digits and _ . -")
    return value


FilePrefix = Annotated[str, AfterValidator(_check_prefix), WithJsonSchema({"type": "string", "pattern": f"^{_PREFIX_PATTERN}$"})]


class TacticSources(Strict, json_schema_extra={"examples": [{"cudnn": False, "cublas": False}]}):
    """Libraries that TensorRT may take kernels from: true adds one, false removes one; what is left out stays as TensorRT has it."""

    cudnn: Flag | None = setting("cuDNN; TensorRT up to 10.", sets="CUDNN in trt_tactic_sources", why="false saves memory")
    cublas: Flag | None = setting("cuBLAS; TensorRT up to 10.", sets="CUBLAS in trt_tactic_sources", why="false saves memory")
    cublas_lt: Flag | None = setting("cuBLASLt; TensorRT up to 10.", sets="CUBLAS_LT in trt_tactic_sources", why="false saves memory")
    edge_mask_convolutions: Flag | None = setting(
        "Convolutions with edge masks.", sets="EDGE_MASK_CONVOLUTIONS in trt_tactic_sources", why="false makes smaller engines"
    )
    jit_convolutions: Flag | None = setting(
        "Convolutions that are compiled while building.",
        sets="JIT_CONVOLUTIONS in trt_tactic_sources",
        why="false makes the build faster and the engine maybe slower",
    )


class EngineContext(Strict, json_schema_extra={"examples": [{"path": "/engine-cache/m_ctx.onnx", "embed": True}]}):
    """A model that holds the engines, written when they are built: an ONNX file that starts without building."""

    path: ServerPath = setting(
        "Absolute path inside the container to write it to.",
        default=...,
        sets="trt_ep_context_file_path of accelerator tensorrt",
        why="a place outside the model repository, which Triton would take for a change of the model",
    )
    embed: Flag = setting(
        "Whether the file holds the engines themselves, and not only their paths.",
        default=False,
        sets="trt_ep_context_embed_mode of accelerator tensorrt",
        why="one file is easier to move; engines above 2 GB do not fit into one",
    )


class TensorRTProvider(
    Strict, json_schema_extra={"examples": [{"max_workspace_size": "4GiB", "builder_optimization_level": 3, "tactic_sources": {"jit_convolutions": False}}]}
):
    """Options of the TensorRT accelerator. Precision, shapes and the cache's folder are derived from other keys."""

    max_workspace_size: SomeSize | None = setting(
        "Most scratch memory of a layer. Default: ONNX Runtime's, 1 GiB or all memory.",
        sets="max_workspace_size_bytes of accelerator tensorrt",
        why="more lets TensorRT choose faster algorithms",
    )
    min_subgraph_size: PositiveInt | None = setting(
        "Fewest nodes of a part of the graph that goes to TensorRT. Default: 1.",
        sets="trt_min_subgraph_size of accelerator tensorrt",
        why="more where the graph falls into many small parts, each with its own engine",
    )
    max_partition_iterations: PositiveInt | None = setting(
        "How often the graph is cut into parts that TensorRT can and cannot run, at most. Default: 1000.",
        sets="trt_max_partition_iterations of accelerator tensorrt",
        why="when the log says that cutting was given up",
    )
    builder_optimization_level: Annotated[int, Field(strict=True, ge=0, le=5)] | None = setting(
        "How long TensorRT looks for fast kernels, from 0 to 5. Default: 3.",
        sets="trt_builder_optimization_level of accelerator tensorrt",
        why="lower for a faster build, higher for a faster engine; 0 and 1 can be several times slower to serve",
    )
    auxiliary_streams: Annotated[int, Field(strict=True, ge=-1, le=2**31 - 1)] | None = setting(
        "Streams beside the main one; -1 lets TensorRT decide, 0 uses the least memory. Default: -1.",
        sets="trt_auxiliary_streams of accelerator tensorrt",
        why="0 where memory is short",
    )
    context_memory_sharing: Flag | None = setting(
        "Whether the engines of a model share their working memory. Default: false.",
        sets="trt_context_memory_sharing_enable of accelerator tensorrt",
        why="saves memory where the graph has several engines",
    )
    layer_norm_fp32_fallback: Flag | None = setting(
        "Whether layer normalisations written as single operators are computed in FP32 when precision is fp16. Default: false.",
        sets="trt_layer_norm_fp32_fallback of accelerator tensorrt",
        why="when a transformer's answers in fp16 are NaN or wrong",
    )
    sparsity: Flag | None = setting(
        "Whether weights with two zeros in four may use sparse tensor cores. Default: false.",
        sets="trt_sparsity_enable of accelerator tensorrt",
        why="for networks that were pruned that way",
    )
    build_heuristics: Flag | None = setting(
        "Whether kernels are guessed in place of timed. TensorRT 8 only. Default: false.",
        sets="trt_build_heuristics_enable of accelerator tensorrt",
        why="for a faster build with TensorRT 8; later ones have builder_optimization_level",
    )
    force_sequential_engine_build: Flag | None = setting(
        "Whether engines are built one after another where there are several GPUs. Default: false.",
        sets="trt_force_sequential_engine_build of accelerator tensorrt",
        why="when building on all GPUs at once fails or times badly",
    )
    detailed_build_log: Flag | None = setting(
        "Whether the log holds what TensorRT does while building. Default: false.",
        sets="trt_detailed_build_log of accelerator tensorrt",
        why="to see why a build is slow or fails",
    )
    dump_subgraphs: Flag | None = setting(
        "Whether the parts that go to TensorRT are written as ONNX files to the server's working directory. Default: false.",
        sets="trt_dump_subgraphs of accelerator tensorrt",
        why="to try a part by itself in trtexec",
    )
    tactic_sources: TacticSources = setting(
        "Libraries that TensorRT may take kernels from: true adds one, false removes one. Default: TensorRT's own choice.",
        default_factory=TacticSources,
        sets="trt_tactic_sources of accelerator tensorrt",
        why="false for cudnn and cublas saves memory; TensorRT 11 has neither",
    )
    extra_plugin_lib_paths: tuple[PluginPath, ...] = setting(
        "Libraries with TensorRT plugins: absolute paths inside the container, or plain file names that the dynamic loader finds there.",
        default=(),
        sets="trt_extra_plugin_lib_paths of accelerator tensorrt",
        why="for operators that TensorRT has only by a plugin of yours",
    )
    cuda_graph: Flag | None = setting(
        "Whether engines are captured as CUDA graphs and replayed. Default: false.",
        sets="trt_cuda_graph_enable of accelerator tensorrt",
        why="to launch many small kernels at once; ONNX Runtime wants shapes and addresses that never change for it",
    )
    engine_cache: Flag = setting(
        "Whether engines are kept in triton.engine_cache, in a folder for this model.",
        default=True,
        sets="trt_engine_cache_enable and trt_engine_cache_path of accelerator tensorrt",
        why="false only where nothing can be written: without it every start and every copy builds all engines again",
    )
    engine_cache_prefix: FilePrefix | None = setting(
        "What the names of the engines' files begin with. Default: ONNX Runtime's provider and the graph's hash.",
        sets="trt_engine_cache_prefix of accelerator tensorrt",
        why="to tell files apart",
    )
    timing_cache: Flag = setting(
        "Whether the times of kernels are kept beside the engines, so that another build is faster.",
        default=True,
        sets="trt_timing_cache_enable and trt_timing_cache_path of accelerator tensorrt",
        why="false to measure every kernel afresh",
    )
    force_timing_cache: Flag | None = setting(
        "Whether times of another GPU of the same compute capability are taken, too. Default: false.",
        sets="trt_force_timing_cache of accelerator tensorrt",
        why="to build for a fleet of like GPUs once",
    )
    int8_calibration_table_name: PathText | None = setting(
        "File with the ranges of tensors, in the engine cache's folder or by absolute path inside the container.",
        sets="int8_calibration_table_name of accelerator tensorrt",
        why="for precision int8 of a model without Q/DQ nodes",
    )
    int8_use_native_calibration_table: Flag | None = setting(
        "Whether the table is one of TensorRT's own, not one of ONNX Runtime's. Default: false.",
        sets="int8_use_native_calibration_table of accelerator tensorrt",
        why="for a table that trtexec or another tool of TensorRT has written",
    )
    dla_core: Size32 | None = setting(
        "The deep learning accelerator to run on, by number; what it cannot run stays on the GPU. Default: none.",
        sets="trt_dla_enable and trt_dla_core of accelerator tensorrt",
        why="on Jetson and Drive; precision must be fp16 or int8",
    )
    ep_context: EngineContext | None = setting(
        "Write a model that holds the engines.", sets="trt_dump_ep_context_model of accelerator tensorrt", why="to start other servers without building"
    )
