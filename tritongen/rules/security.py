"""Rules: model files outside the model's folder, where a reviewer of the repository does not see them."""

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
)
