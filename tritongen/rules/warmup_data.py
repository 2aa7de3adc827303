"""Rules: where a warmup sample's values come from, and the files that hold them."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterator
from typing import Any

from tritongen import dtypes
from tritongen.modelconfig import DataType
from tritongen.repository.scan import ModelFolder
from tritongen.rules.context import ModelContext
from tritongen.rules.rule import Consequence, Finding, Key, Rule

_FOLDER = "warmup"
_LENGTH_BYTES = 4
"""Every string of a data file is preceded by its length, a little-endian 32-bit integer."""


def run_samples(context: ModelContext) -> Iterator[tuple[int, Any]]:
    """The samples that Triton runs, with their places. One without a batch size it skips; an ensemble may have none."""
    for index, sample in enumerate(() if context.is_ensemble else context.config.model_warmup):
        if sample.batch_size:
            yield index, sample


def title(sample: Any, index: int) -> str:
    """What to call a sample in a message."""
    return f"warmup sample '{sample.name}'" if sample.name else f"warmup sample {index + 1}"


def input_key(index: int, name: str, *fields: str) -> Key:
    """The place of an input of a sample, or of one of its fields."""
    return ("model_warmup", index, "inputs", name, *fields)


def _without_data(context: ModelContext) -> Iterator[Finding]:
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            if item.WhichOneof("input_data_type") is None:
                yield Finding(
                    f"{title(sample, index)} does not say which values '{name}' gets",
                    input_key(index, name),
                    'write `zero_data: true`, `random_data: true`, or `input_data_file: "..."`',
                )


def _files(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    assert folder is not None
    for index, sample in run_samples(context):
        for name, item in sorted(sample.inputs.items()):
            if item.WhichOneof("input_data_type") != "input_data_file":
                continue
            found = _file_problem(folder, item)
            if found is not None:
                message, hint, consequence = found
                yield Finding(f"{title(sample, index)}, input '{name}': {message}", input_key(index, name, "input_data_file"), hint, consequence=consequence)


def _file_problem(folder: ModelFolder, item: Any) -> tuple[str, str, Consequence] | None:
    # Triton joins the name to the folder's path, even one that starts with a slash.
    name = item.input_data_file
    path = posixpath.normpath(f"{_FOLDER}/{name}")
    if path.startswith("../"):
        return (
            f"the file '{name}' lies outside the model's folder",
            f"copy it to {folder.at(f'{_FOLDER}/{posixpath.basename(name)}')} and write its bare name",
            Consequence.FRAGILE,
        )
    facts = folder.entries.get(path)
    if folder.truncated or (facts is not None and facts.kind == "link") or _is_link(folder, path):
        return None
    if facts is None or facts.kind != "file" or not name or _FOLDER not in folder.entries:
        return f"there is no file {_FOLDER}/{name}" if name else "the file has no name", _elsewhere(folder, name), Consequence.REFUSED
    if -1 in item.dims or item.data_type not in DataType.values()[1:]:
        return None
    return _size_problem(path, facts.size, item)


def _size_problem(path: str, size: int, item: Any) -> tuple[str, str, Consequence] | None:
    dtype = dtypes.from_config(item.data_type)
    elements = math.prod(item.dims)
    shape = f"{dtype} {list(item.dims)}"
    if dtype.itemsize is None:
        if size >= elements * _LENGTH_BYTES:
            return None
        message = f"{path} has {size} bytes, too few for {elements} strings: each is preceded by its length in {_LENGTH_BYTES} bytes"
        return (
            message,
            "write each string as its length (32 bits, little-endian) and its bytes; a file without lengths crashes Triton 24.10",
            Consequence.REFUSED,
        )
    needed = elements * dtype.itemsize
    if needed < 0:
        message = f"{shape} has a negative size, which Triton takes for one of {needed % 2**64} bytes, and {path} has {size}"
        return message, "write the sizes of one item without the batch dimension", Consequence.REFUSED
    if size == needed:
        return None
    if size < needed:
        hint = f"write the raw values of one item without the batch dimension, {needed} bytes: array.astype('{dtype.numpy_name}').tofile('{path}')"
        return f"{path} has {size} bytes, and {shape} takes {needed}", hint, Consequence.REFUSED
    message = f"{path} has {size} bytes, and {shape} takes {needed}; Triton reads the first {needed} and leaves the rest"
    return message, f"write one item without the batch dimension: array.astype('{dtype.numpy_name}').tofile('{path}')", Consequence.IGNORED


def _is_link(folder: ModelFolder, path: str) -> bool:
    """Whether a folder on the way to a file is a link that is not followed here."""
    parts = path.split("/")
    return any(facts.kind == "link" for end in range(1, len(parts)) if (facts := folder.entries.get("/".join(parts[:end]))) is not None)


def _elsewhere(folder: ModelFolder, name: str) -> str:
    base = posixpath.basename(name)
    found = next((path for path, facts in sorted(folder.entries.items()) if base and facts.kind == "file" and posixpath.basename(path) == base), None)
    return (
        f"mkdir -p {folder.at(_FOLDER)} && mv {folder.at(found)} {folder.at(f'{_FOLDER}/{base}')}"
        if found and name == base
        else f"put the file at {folder.at(_FOLDER)}/{name or '<name>'}, or write `zero_data: true`"
    )


RULES: tuple[Rule, ...] = (
    Rule(
        "TG317",
        "warmup-file",
        Consequence.REFUSED,
        "A warmup sample's data file lies in the model's folder warmup and has the bytes of one item.",
        "'failed to open text file for read', or 'warmup setting expects 16 bytes, but the data provided has 15 bytes'. A longer file is read in "
        "part. Strings need their lengths "
        "before them: a text file in their place crashed the server (core/src/backend_model_instance.cc, GenerateWarmupData; tried on 24.10).",
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] input_data_file: "x.bin" } }  # with 1/x.bin',
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] input_data_file: "x.bin" } }  # with warmup/x.bin of 256 bytes',
        check=_files,
        needs=frozenset({"config", "folder"}),
    ),
    Rule(
        "TG318",
        "warmup-without-values",
        Consequence.REFUSED,
        "Every input of a warmup sample says where its values come from.",
        "'warmup setting expects input ... to have input_data_type set' (core/src/backend_model_instance.cc, GenerateWarmupData; tried on 24.10).",
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] } }',
        'inputs { key: "x" value { data_type: TYPE_FP32 dims: [64] zero_data: true } }',
        check=_without_data,
    ),
)
