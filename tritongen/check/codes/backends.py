"""TG127 to TG129 and TG180 to TG187: settings of the onnxruntime and tensorrt backends, and memory, found by `tritongen render`."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry
from tritongen.rules.rule import Consequence

ENTRIES = (
    CodeEntry(
        "TG127",
        "gpu-that-no-plan-is-for",
        Consequence.REFUSED,
        "The release's TensorRT knows the GPUs that a plan is to be built for, and they have what the build asks for.",
        "TensorRT 10.5 took Volta (7.0) away, 10.8 brought Blackwell (10.0 and above), 10.9 same_compute_capability; its release notes. ampere_plus is for 8.0 "
        "and above. Jetson and Drive have two deep learning accelerators, and a model has one plan, for one of them or for the GPU.",
        "Name GPUs that the release serves, and settings that they can build.",
        'triton: {release: "25.08"}\ntensorrt: {build: {compute_capabilities: ["7.0"]}}',
        'triton: {release: "25.08"}\ntensorrt: {build: {compute_capabilities: ["8.6"]}}',
    ),
    CodeEntry(
        "TG128",
        "profile-twice",
        Consequence.SLOW,
        "The profiles of a plan differ.",
        "Each profile that a copy uses has a context with working memory of its own (tensorrt_backend/src/instance_state.cc), and the first that fits a "
        "request is taken.",
        "Remove one, or tune it for another batch or other shapes.",
        "tensorrt: {profiles: [{batch: 8}, {batch: 8}]}",
        "tensorrt: {profiles: [{batch: 4}, {batch: 8}]}",
    ),
    CodeEntry(
        "TG129",
        "no-cache-for-several-versions",
        Consequence.SLOW,
        "A model whose engines are kept has one version that is served.",
        "All versions have one config, and so one cache. ONNX Runtime names engines by the names in the graph, which are those of every version of a network, "
        "and not by its weights (`TRTGenerateId` of its TensorRT provider), so that the cache is left out.",
        "Serve one version, give each a model of its own, or build a plan for each with `backend: tensorrt`.",
        "accelerator: tensorrt\nversions: {policy: all}",
        "accelerator: tensorrt\nversions: {policy: latest, count: 1}",
    ),
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
        "trtexec takes shapes as a list that it splits at commas, without quotes: the script fails for such a plan, and builds the others. Before TensorRT 10 "
        "it takes one profile, and no plan without weights; since `tritongen build` needs TensorRT 10, nothing builds these. Profiles that were derived become "
        "one.",
        "Build it with `tritongen build` on the GPU that serves it, or give the input another name in the ONNX file; with several profiles, or without "
        "weights, use release 24.05 or newer.",
    ),
    CodeEntry(
        "TG185",
        "more-than-the-gpu-holds",
        Consequence.FAILS,
        "The models of a spec are estimated to fit into `triton.gpu_memory`.",
        "Weights, what is alive at the largest batch and room for kernels are added up for all copies on a GPU, from the graphs, and more rather than less.",
        "Lower `batching.max`, the counts of `instances` or the max sizes of `shapes`; `tritongen estimate` shows the parts and the largest batches that fit.",
    ),
    CodeEntry(
        "TG186",
        "config-outside-the-plan",
        Consequence.REFUSED,
        "What `config:` states of inputs and warmup samples, and what `samples` gives, lies within the plan's profiles.",
        "Triton holds the dims of every input against each profile that a copy uses, and refuses the model where one does not take them; a warmup sample that "
        "fits none fails, and the model with it, as do values of a shape tensor outside its range (tensorrt_backend/src/instance_state.cc).",
        "Leave dims and warmup samples out, which follow from the model, `shapes` and `tensorrt.shape_tensors`, or write what the plan takes.",
        "shapes: {x: {min: [1], opt: [8], max: [32]}}\nconfig: {input: [{name: x, dims: [33]}]}",
        "shapes: {x: {min: [1], opt: [8], max: [32]}}",
    ),
    CodeEntry(
        "TG187",
        "engine-built-by-a-client",
        Consequence.SLOW,
        "The TensorRT accelerator has its engine before the model is ready.",
        "ONNX Runtime builds an engine in the first run that needs one. A warmup is such a run, while the model is loaded; else it is a client's request.",
        "Leave `warmup` out, or send a request before clients do.",
        "accelerator: tensorrt\nwarmup: none",
        "accelerator: tensorrt",
    ),
)
