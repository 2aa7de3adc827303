"""TG180 to TG185: settings of the onnxruntime and tensorrt backends, and memory, found by `tritongen render`."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

ENTRIES = (
    CodeEntry(
        "TG180",
        "key-and-overlay-of-one-field",
        None,
        "A field of the config is set by a key of the spec or by `config:`, not by both.",
        "One of the two would be lost, and whoever reads the spec would not know which. A key that comes from `defaults` gives way to the model's own overlay.",
        "Keep the key, whose values are checked.",
        'onnxruntime: {execution_mode: parallel}\nconfig: {parameters: {execution_mode: {string_value: "0"}}}',
        "onnxruntime: {execution_mode: parallel}",
    ),
    CodeEntry(
        "TG181",
        "arena-of-another-device",
        Consequence.FAILS,
        "The devices of arena_shrinkage are devices of every copy.",
        "Before each request ONNX Runtime looks for the arena of every listed device in the session of the copy, and fails the request where it has none"
        " (onnxruntime/core/session/inference_session.cc; tried on the CPU with gpu:0).",
        "List cpu:0 and the GPU that all copies run on.",
        "instances: {kind: cpu}\nonnxruntime: {arena_shrinkage: [gpu:0]}",
        "instances: {kind: cpu}\nonnxruntime: {arena_shrinkage: [cpu:0]}",
    ),
    CodeEntry(
        "TG182",
        "cuda-graph-in-onnxruntime",
        Consequence.FRAGILE,
        "ONNX Runtime's CUDA graphs are for inputs that stay where they are.",
        "ONNX Runtime's documentation wants shapes and addresses of inputs and outputs that never change. Triton's onnxruntime backend gives each"
        " execution buffers of its own; nothing says that it keeps them.",
        "Leave it off, or serve a plan: the tensorrt backend captures a graph for each size and copies into its own buffers.",
        "onnxruntime: {cuda: {enable_cuda_graph: true}}",
        "backend: tensorrt\ntensorrt: {cuda_graphs: true}",
    ),
    CodeEntry(
        "TG183",
        "batches-without-a-graph",
        Consequence.SLOW,
        "Every batch size that is formed has a CUDA graph.",
        "A graph serves one size, or with a lower bound also smaller ones, padded (tensorrt_backend/src/instance_state.cc). Without preferred sizes the batcher"
        " forms whatever is there.",
        "Let the preferred sizes be derived, or write `cuda_graphs: {lower_bounds: true}`.",
        "backend: tensorrt\nbatching: {max: 8, preferred: none}\ntensorrt: {cuda_graphs: true}",
        "backend: tensorrt\nbatching: {max: 8}\ntensorrt: {cuda_graphs: true}",
    ),
    CodeEntry(
        "TG184",
        "plan-that-trtexec-cannot-build",
        None,
        "The build script can tell trtexec all about a plan.",
        "trtexec takes shapes as a list that it splits at commas, without quotes, and before TensorRT 10 one profile and no plan without weights. The script "
        "fails for such a plan, and builds the others.",
        "Build it with `tritongen build` on the GPU that serves it, or give the input another name in the ONNX file.",
    ),
    CodeEntry(
        "TG185",
        "more-than-the-gpu-holds",
        Consequence.FAILS,
        "The models of a spec are estimated to fit into `triton.gpu_memory`.",
        "Weights, what is alive at the largest batch and room for kernels are added up for all copies on a GPU, from the graphs, and more rather than less.",
        "Lower `batching.max`, the counts of `instances` or the max sizes of `shapes`; `tritongen estimate` shows the parts and the largest batches that fit.",
    ),
)
