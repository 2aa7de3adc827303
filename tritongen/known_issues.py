"""What is known to be broken, missing or otherwise in the images of some releases: one table, for the rules, for `render` and for `tritongen releases`.

What can be looked up in a release's own facts (which TensorRT it has, say) is in `releases`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tritongen.releases import Release, order_of


@dataclass(frozen=True)
class Issue:
    """Something that is broken, missing or otherwise in the images of some releases, and that whoever serves there must know.

    Attributes:
        name: stable, for programs.
        text: what it is, as a sentence without its full stop.
        advice: what to do about it.
        source: where that is stated.
        first: the first release that has it; None where that is before those of the table.
        last: the last one; None where it has not ended.
        backend: the backend that is missing in the image, where the issue is that one is.
        field: the field of ModelConfig that the server does not know (names from the top, without indices), where the issue is that.
        is_security: whether strangers who can reach the server can make use of it.
    """

    name: str
    text: str
    advice: str
    source: str
    first: str | None = None
    last: str | None = None
    backend: str = ""
    field: tuple[str, ...] = ()
    is_security: bool = False

    def holds_in(self, release: Release) -> bool:
        """Whether the images of this release have it."""
        return (self.first is None or order_of(self.first) <= release.order) and (self.last is None or release.order <= order_of(self.last))

    @property
    def span(self) -> str:
        """The releases that have it, in words: `25.09 to 26.07`, `up to 25.06`, `from 26.04`, `24.02`."""
        if self.first is None or self.last is None:
            return f"from {self.first}" if self.first else f"up to {self.last}" if self.last else "all"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


ISSUES: tuple[Issue, ...] = (
    Issue(
        "holes-of-august-2025",
        "holes that were published in August 2025 (CVE-2025-23310, CVE-2025-23311, CVE-2025-23319, CVE-2025-23320 and CVE-2025-23334 among them): strangers who"
        " can reach the server may crash it, read its memory or run code in it",
        "use 25.07 or newer, or let nobody reach the server but clients that you trust",
        "NVIDIA's security bulletin for Triton of August 2025; the server's HTTP code before and after",
        last="25.06",
        is_security=True,
    ),
    Issue(
        "crash-when-cancelled",
        "a request over gRPC that its client cancels, as each does whose deadline is over, in the instant in which it is answered may end the server with"
        " signal 11",
        "use 25.06 or newer; before, give the queue a timeout below the clients' deadlines, or send over HTTP what may be cancelled",
        "triton-inference-server/server 7368 and 8034; mended step by step by pull requests 7840, 8078 and 8220, the last of May 2025; seen in 24.10",
        last="25.05",
    ),
    Issue(
        "order-not-kept",
        "preserve_ordering is not kept: responses may overtake each other",
        "use release 26.08 or newer (or 25.08 or older), or match responses to requests by their ids",
        "triton-inference-server/core commit b06d69b (pull request 449); mended by 520 and 523",
        first="25.09",
        last="26.07",
    ),
    Issue(
        "graphs-without-batching",
        "CUDA graphs of a plan with max_batch_size 0 are captured under a batch of 0 and looked for under one of 1, so that no request is run by them",
        "use release 26.08 or newer, let the model batch (a max_batch_size of 1 is enough), or remove the graphs",
        "triton-inference-server/server 7150; tensorrt_backend pull request 125 of July 2026, which the release after, 26.08, is the first that can have",
        last="26.07",
    ),
    Issue(
        "no-onnxruntime",
        "the image has no onnxruntime backend: that month it was left out",
        "use 24.01 or 24.03",
        "triton-inference-server/server 6988 and 6991",
        first="24.02",
        last="24.02",
        backend="onnxruntime",
    ),
    Issue(
        "no-tensorflow",
        "the image has no tensorflow backend: TensorFlow was taken out",
        'export the model to ONNX and write `backend: "onnxruntime"`, or use 25.02 or older',
        "triton-inference-server/server 8204, where somebody builds it into 25.03 by hand, with the libraries of the last TensorFlow container, 25.02",
        first="25.03",
        backend="tensorflow",
    ),
    Issue(
        "no-max-inflight-requests",
        "ensembles have no max_inflight_requests",
        "remove it, or use 25.12 or newer",
        "model_config.proto of the branches r25.11 and r25.12; tried on 24.10",
        last="25.11",
        field=("ensemble_scheduling", "max_inflight_requests"),
    ),
    Issue(
        "no-model-metrics",
        "configs have no model_metrics",
        "remove it, or use 24.12 or newer",
        "merged after 24.10, where it was tried; the first that surely has it is 24.12",
        last="24.10",
        field=("model_metrics",),
    ),
    Issue(
        "no-bf16-precision",
        "the TensorRT accelerator has no precision_mode BF16",
        "use 26.02 or newer, or FP16",
        "onnxruntime_backend, branches r26.01 and r26.02",
        last="26.01",
    ),
    Issue(
        "no-external-data-outside",
        "the onnxruntime backend refuses external data outside the folder of the model's file, be it by `..`, a link or an absolute path",
        "put the data file beside the model's file, or use 26.01 or older",
        "tried with ONNX Runtime 1.19.2, 1.20.1, 1.22.1 and 1.23.2, which read it, and 1.24.1, which does not",
        first="26.02",
    ),
    Issue(
        "no-bf16-tensors",
        "the onnxruntime backend does not know tensors of TYPE_BF16",
        "use 26.03 or newer, or cast them to FP32 or FP16 inside the model",
        "onnxruntime_backend/src/onnxruntime_utils.cc, branches r26.02 and r26.03; recorded on 24.10",
        last="26.02",
    ),
    Issue(
        "tensorrt-without-int64",
        "TensorRT is older than 10 and has no 64-bit integers at a plan's border: INT64 inputs and outputs of the ONNX file are INT32 in its plan",
        "send and expect INT32 there, or use 24.05 or newer",
        "NVIDIA's release notes for TensorRT 10.0; triton-inference-server/server 7307",
        last="24.04",
    ),
    Issue(
        "tensorrt-types-from-the-model",
        "TensorRT is 11 or newer and takes precision from the model's own types: whether precision_mode still does anything is not known",
        "convert the ONNX file to the types that it should run in",
        "NVIDIA's release notes for TensorRT 11.0; triton-inference-server/server pull request 8828",
        first="26.06",
    ),
    Issue(
        "python-3.12",
        "the Python backend runs Python 3.12 (3.10 up to 24.10): packed environments of another minor version do not start",
        "pack them with Python 3.12, or put a stub for theirs into the model's folder",
        "triton-inference-server/python_backend, README; the server's compatibility page",
        first="24.11",
    ),
    Issue(
        "onnxruntime-version-unclear",
        "the compatibility page says ONNX Runtime 1.18.1, the build settings 1.19.0",
        "ask the image: strings on its libonnxruntime.so tells",
        "the server's docs/introduction/compatibility.md and build.py, branch r24.08",
        first="24.08",
        last="24.08",
    ),
    Issue(
        "gpus-before-turing",
        "GPUs of a compute capability below 7.5 are not used",
        "use 24.12 or older on Volta, Pascal and older GPUs",
        "the release notes' pages: 6.0 in those of 2024, 7.5 in those from 2025 on",
        first="25.01",
    ),
    Issue(
        "http-input-limit",
        "JSON and compressed HTTP requests above 64 MiB are refused with status 400",
        "send binary tensors uncompressed, or start tritonserver with --http-max-input-size",
        "server/src/command_line_parser.cc, branch r25.06",
        first="25.06",
    ),
    Issue(
        "client-shared-memory-off",
        "clients may not register shared memory unless the server allows it",
        "start tritonserver with --allow-client-shm=true, where only trusted clients reach it",
        "server/src/command_line_parser.cc, branch r26.04",
        first="26.04",
    ),
    Issue(
        "no-model-config-name",
        "tritonserver has no --model-config-name",
        "use 24.06 or newer",
        "server/src/command_line_parser.cc, branches r24.05 and r24.06",
        last="24.05",
    ),
    Issue(
        "no-grpc-pool-limit",
        "tritonserver has no --grpc-max-response-pool-size",
        "use 25.03 or newer",
        "server/src/command_line_parser.cc, branches r25.02 and r25.03",
        last="25.02",
    ),
    Issue(
        "no-grpc-threads",
        "tritonserver has no --grpc-infer-thread-count",
        "use 25.04 or newer",
        "server/src/command_line_parser.cc, branches r25.03 and r25.04",
        last="25.03",
    ),
    Issue(
        "no-http-input-limit-option",
        "tritonserver has no --http-max-input-size, and no limit that it could set",
        "leave it out, or use 25.06 or newer",
        "server/src/command_line_parser.cc, branches r25.05 and r25.06",
        last="25.05",
    ),
    Issue(
        "no-latency-histograms",
        "tritonserver has no histograms of times",
        "leave them out, or use 24.12 or newer",
        "merged after 24.10, where the setting is not known; the first that surely has them is 24.12",
        last="24.10",
    ),
    Issue(
        "no-client-shared-memory-option",
        "tritonserver has no --allow-client-shm: clients may always register shared memory",
        "leave it out, or use 26.04 or newer",
        "server/src/command_line_parser.cc, branches r26.03 and r26.04",
        last="26.03",
    ),
)
"""In the order in which they matter."""

_BY_NAME = {issue.name: issue for issue in ISSUES}


def find_issue(name: str) -> Issue:
    """The issue of this name. Raises KeyError where there is none: names are written in code, not by users."""
    return _BY_NAME[name]


def issues_of(release: Release) -> tuple[Issue, ...]:
    """Everything that is known about the images of a release."""
    return tuple(issue for issue in ISSUES if issue.holds_in(release))
