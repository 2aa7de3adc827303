"""Small ONNX files and the recipes of their plans, for real builds by TensorRT-RTX, which needs no GPU."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import onnx
from onnx import TensorProto, helper

from tritongen.build import Definition, Job, Library, TensorRTBuilder, load_library
from tritongen.recipe import PlanFile, PlanRecipe, Profile, Span
from tritongen.repository import file_sha256


@functools.cache
def library() -> Library:
    """TensorRT-RTX."""
    return load_library("tensorrt-rtx")


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str | None]],
    *,
    output: str = "y",
    types: dict[str, int] | None = None,
    domains: Sequence[str] = (),
) -> Path:
    """A graph of these nodes, opset 17. Inputs are FP32 unless `types` says otherwise."""
    types = types or {}
    values = [helper.make_tensor_value_info(name, types.get(name, TensorProto.FLOAT), shape) for name, shape in inputs.items()]
    graph = helper.make_graph(list(nodes), "g", values, [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def relu(path: Path, shape: Sequence[int | str | None] = ("N", 8)) -> Path:
    """`x → y`."""
    return save(path, [helper.make_node("Relu", ["x"], ["y"], name="r")], {"x": shape})


def recipe(path: Path, *profiles: Profile, **changes: object) -> PlanRecipe:
    """The recipe for an ONNX file, as one that lies in a model's artifacts folder."""
    name = PurePosixPath(path.name)
    plain = PlanRecipe("m", 1, (PlanFile("model.plan"),), name, {name: file_sha256(path)}, profiles, strongly_typed=True, release="25.08")
    return PlanRecipe(**{**vars(plain), **changes})


def span(*sizes: Sequence[int]) -> Span:
    """A range from its three sizes."""
    low, usual, high = (tuple(each) for each in sizes)
    return Span(low, usual, high)


def batches(least: int, usual: int, most: int, *item: int, name: str = "x") -> Profile:
    """A profile of batches of one input."""
    return Profile({name: span((least, *item), (usual, *item), (most, *item))})


def define(path: Path, *profiles: Profile, capabilities: tuple[str, ...] = (), **changes: object) -> Definition:
    """All that TensorRT-RTX is given for the file."""
    return TensorRTBuilder(library()).define(Job(recipe(path, *profiles, **changes), path.parent, capabilities))


def ranges(definition: Definition, name: str = "x") -> list[list[tuple[int, ...]]]:
    """What TensorRT holds of each profile: min, opt and max of an input."""
    return [[tuple(dims) for dims in profile.get_shape(name)] for profile in definition.profiles]
