"""Rules: paths in a config that leave the model's folder, and with it what a reviewer of the repository sees."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule


def _escapes(path: str) -> bool:
    """Whether a path below a version folder leads out of the model's folder. Triton joins an absolute path to the folder, too."""
    return posixpath.normpath(f"1/{path}").startswith("..")


def _model_file(context: ModelContext) -> Iterator[Finding]:
    config = context.config
    named: list[tuple[Key, str]] = [(("default_model_filename",), config.default_model_filename)]
    named += [(("cc_model_filenames", key), name) for key, name in sorted(config.cc_model_filenames.items())]
    for key, name in named:
        if name and _escapes(name):
            yield Finding(
                f"the model file '{name}' lies outside the model's folder; whoever can write there decides what the server runs",
                key,
                f"copy it into the version folder and write `{posixpath.basename(name)}`",
            )


def _runtime(context: ModelContext) -> Iterator[Finding]:
    name = context.config.runtime
    if context.is_ensemble or not name or (not name.startswith("/") and ".." not in name.split("/")):
        return
    yield Finding(
        f"runtime '{name}' is a path; Triton looks for a file of that name in the version folder, the model's folder and the backend's folder only",
        ("runtime",),
        "remove `runtime` (the library is found by the backend's name), or write the bare file name",
    )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG380",
        "model-file-outside",
        Consequence.FRAGILE,
        "A model file lies in the model's own folder.",
        "A default_model_filename with .. in it is joined to the version folder's path and opened (onnxruntime_backend and tensorrt_backend, "
        "LoadModel; core does not look at it). What "
        "is served then changes without a trace in the model's folder, and a repository that is copied or mounted elsewhere breaks.",
        'default_model_filename: "../../shared/model.onnx"',
        'default_model_filename: "model.onnx"',
        check=_model_file,
    ),
    Rule(
        "TG381",
        "runtime-is-a-path",
        Consequence.REFUSED,
        "The runtime is a file name without a path out of the folders that are searched.",
        "'unable to find backend library'; an absolute path is joined to the searched folders, and later releases refuse one that leaves them by "
        "name (core/src/backend_model.cc, "
        "ResolveBackendPaths; tried on 24.10).",
        'backend: "python"\nruntime: "/opt/libs/libtriton_python.so"',
        'backend: "python"\nruntime: "libtriton_python.so"',
        check=_runtime,
    ),
)
