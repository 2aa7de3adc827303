"""How Triton runs a model: backend and accelerator, batches and their queue, copies and threads, warmup, versions."""

from __future__ import annotations

from typing import Literal

from tritongen.spec.batching import Batching, BatchingField
from tritongen.spec.conversion import Conversion
from tritongen.spec.instances import InstanceGroup, InstancesField
from tritongen.spec.onnxruntime import OnnxRuntime
from tritongen.spec.queue import Queue
from tritongen.spec.slo import Slo
from tritongen.spec.strict import Strict, setting
from tritongen.spec.tensorrt import TensorRT
from tritongen.spec.values import Flag, ModelVersion, PositiveInt, Warmup
from tritongen.spec.versions import PolicyField, VersionPolicy

Backend = Literal["onnxruntime", "tensorrt"]
Accelerator = Literal["none", "cuda", "tensorrt", "openvino"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "int8"]


class Serving(Strict):
    """How Triton runs a model."""

    backend: Backend = setting(
        "What runs the model. onnxruntime serves the ONNX file; tensorrt serves a plan that is built from it.",
        default="onnxruntime",
        sets="backend and platform",
        why="a plan is the fastest on NVIDIA GPUs, and is built for one TensorRT and one kind of GPU; the ONNX file runs everywhere",
    )
    accelerator: Accelerator = setting(
        "What ONNX Runtime hands the graph to: cuda and tensorrt on GPUs, openvino on CPUs. With backend onnxruntime only.",
        default="none",
        sets="optimization.execution_accelerators",
        why="tensorrt is often twice as fast as cuda, for minutes of building at the first start; what it cannot run stays on cuda",
    )
    precision: Precision = setting(
        "Arithmetic of what runs on a GPU. fp32 keeps all 24 bits (a plan is built without TF32; TensorRT as an accelerator uses TF32 all the same, unless"
        " the server runs with NVIDIA_TF32_OVERRIDE=0). tf32 lets TensorRT round what it multiplies to 11 bits. fp16 converts the model's file, compares its"
        " answers with the original's, and serves it. bf16 and int8 leave the choice to TensorRT, layer by layer: accelerator tensorrt or backend tensorrt.",
        default="fp32",
        sets="the graph in the version folder for fp16, precision_mode where the release heeds it, or how the plan is built",
        why="fp16 halves time and memory where the last digits of an answer do not matter; tf32 needs no other file, and Ampere or a newer GPU",
    )
    conversion: Conversion = setting(
        "How the file is converted, and what its answers are held to; with precision fp16 only.",
        default_factory=Conversion,
        sets="the graph in the version folder",
        why="where the converted model is refused for its answers, or clients are to send FP16",
    )
    batching: BatchingField = setting(
        "How requests are put together: auto (the default), none, or a mapping.",
        default_factory=Batching,
        sets="max_batch_size and dynamic_batching",
        why="to bound batches, or to wait for fuller ones; what is left out is decided from the model",
    )
    queue: Queue = setting(
        "What happens to requests that wait: limits, timeouts, priorities, order. Default: they wait for as long as it takes, in the order they came.",
        default_factory=Queue,
        sets="dynamic_batching.default_queue_policy and the fields beside it",
        why="to answer in time whom one answers at all",
    )
    slo: Slo | None = setting(
        "The longest that requests may take, by percentile, and the part that may fail, as {p99: 20ms, error_rate: 0.1%}. Default: nothing is promised.",
        sets="no field; delays and timeouts are judged by it, and queue.overload is derived from it",
        why="to be told at once of a setting that cannot keep the promise",
    )
    instances: InstancesField = setting(
        "Copies of the model and where they run: a list of groups, or a single group. Default: one copy of kind auto;"
        " with backend tensorrt, accelerator tensorrt or accelerator cuda one of kind gpu, on each GPU.",
        default_factory=lambda: (InstanceGroup(),),
        sets="instance_group",
        why="to place models on devices, and to run several requests at once",
    )
    cpu_threads: PositiveInt | None = setting(
        "Threads inside one operator, for each copy; with backend onnxruntime only. Default: all cores for a single copy; copies on the CPU share"
        " triton.cpus, and so do the two pools of execution_mode: parallel.",
        sets="parameters.intra_op_thread_count",
        why="on a CPU: copies times threads beyond the number of cores make everything slower",
    )
    onnxruntime: OnnxRuntime = setting(
        "Settings of ONNX Runtime: of its sessions, of the CUDA provider and of the TensorRT accelerator; with backend onnxruntime only.",
        default_factory=OnnxRuntime,
        sets="parameters, optimization.graph and optimization.execution_accelerators",
        why="to tune one of them; what is left out stays as ONNX Runtime has it",
    )
    tensorrt: TensorRT = setting(
        "Settings of Triton's tensorrt backend; with backend tensorrt only.",
        default_factory=TensorRT,
        sets="optimization.cuda, optimization.priority and parameters",
        why="CUDA graphs, above all",
    )
    response_cache: Flag = setting(
        "Whether answers are kept, and given again to requests that are equal to the last bit, in the server's cache (`server.cache`; a"
        " server that is started otherwise needs --cache-config). Default: false.",
        default=False,
        sets="response_cache.enable",
        why="for slow models that are asked the same again and again",
    )
    warmup: Warmup = setting(
        "Batch sizes to run once while loading: auto ({1, max} and the preferred sizes), none, or a list.",
        default="auto",
        sets="model_warmup",
        why="none for a faster start; a list where other sizes are the usual ones. Each sample is run in ONNX Runtime before it is written",
    )
    versions: PolicyField = setting(
        "Which version folders Triton serves. Default: the latest one.",
        default_factory=VersionPolicy,
        sets="version_policy",
        why="to serve several versions at once, or a certain one",
    )
    version: ModelVersion = setting(
        "The version folder to write: a number (replaced in place), or auto (new weights get the next one; of earlier ones those stay that `versions` serves: "
        "by default none, with `versions: {count: 2}` one, with `policy: all` all; back to a number, they go).",
        default=1,
        sets="the name of the version folder",
        why="auto never writes over the weights that are served; with versions it keeps those before, so that one can go back",
    )

    @property
    def timed_slo(self) -> Slo | None:
        """The slo, where it promises times and not only a rate of errors."""
        return self.slo if self.slo is not None and self.slo.times_us else None
