"""Trees of text → model repositories, for the cases of the rules.

A case is a folder with a model repository in it. Files are copied as they are, but for `*.onnx.txt`, each of which describes an ONNX file that is built in
its place:

    input x FP32 [N, 64]        a graph input; `?` is a dimension without a name, `[]` a scalar, `-` no shape at all
    optional b FP32 [16]        a graph input with an initializer
    output y FP32 [N, 16]       a graph output, computed from the first input's sizes
    external w ../w.bin         an initializer of two floats, whose bytes lie in that file
    opset 17
    ir 9

`settings.json` beside the tree may set `release`, `gpus`, `auto_complete`; with `repositories` it names the folders that are repositories given together,
with `beside` the codes of advice that any such tree gets, whatever the case is about; `not_live` says why the embedded server cannot be asked about it. An
empty folder is kept by a file named `.keep`, which is not copied.
`NAME.plan.txt` is a plan: `ftrt 10.13.2.6`, the tag and the version in its header. `recipes.json.txt` holds a list of what differs from a recipe of
`model.onnx` for the plan `model.plan` of version 1, with one profile for batches of x up to 8x64, `NAME.manifest.json.txt` what differs from the manifest of
the plan whose path, from here, is its `of`.
`NAME.py.txt` becomes NAME.py; so tools that look after the Python of this project leave it alone.
`NAME.link` becomes a symbolic link NAME to the path that is its text, `NAME.bytes` a file NAME of that many zero bytes,
`NAME.fifo` a pipe NAME.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path, PurePosixPath

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tritongen import dtypes
from tritongen.manifest import Builder, make_manifest, print_manifest
from tritongen.recipe import PlanFile, PlanRecipe, Profile, Span, print_recipes
from tritongen.releases import find_release
from tritongen.repository import file_sha256
from tritongen.rules.context import ServerFacts

_LINE = re.compile(r"(?P<kind>input|optional|output)\s+(?P<name>\S+)\s+(?P<dtype>\w+)\s+(?P<shape>\[.*\]|-)")


def build_tree(source: Path, target: Path) -> Path:
    """Copy a case to `target`, with its ONNX files built."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        destination = target / path.relative_to(source)
        if path.is_dir():
            destination.mkdir(exist_ok=True)
        elif (path.name == "settings.json" and path.parent == source) or path.name == ".keep":
            continue
        elif path.name.endswith(".onnx.txt"):
            destination.with_name(path.name.removesuffix(".txt")).write_bytes(build_onnx(path.read_text()))
        elif path.name.endswith((".plan.txt", "recipes.json.txt", ".manifest.json.txt")):
            continue
        elif path.name.endswith(".py.txt"):
            shutil.copyfile(path, destination.with_name(path.name.removesuffix(".txt")))
        elif path.name.endswith(".link"):
            destination.with_name(path.name.removesuffix(".link")).symlink_to(path.read_text().strip())
        elif path.name.endswith(".bytes"):
            destination.with_name(path.name.removesuffix(".bytes")).write_bytes(bytes(int(path.read_text())))
        elif path.name.endswith(".fifo"):
            os.mkfifo(destination.with_name(path.name.removesuffix(".fifo")))
        else:
            shutil.copyfile(path, destination)
    _build_plans(source, target)
    return target


def _build_plans(source: Path, target: Path) -> None:
    """Plans, and the recipes and manifests that are about them."""
    for path in source.rglob("*.plan.txt"):
        tag, version = path.read_text().split()
        destination = target / path.relative_to(source).with_suffix("")
        destination.write_bytes(tag.encode() + bytes(20) + bytes(map(int, version.split("."))) + b"the rest")
    for path in source.rglob("recipes.json.txt"):
        recipes = [_recipe(given) for given in json.loads(path.read_text())]
        (target / path.relative_to(source)).with_suffix("").write_text(print_recipes(recipes))
    for path in source.rglob("*.manifest.json.txt"):
        given = json.loads(path.read_text())
        destination = (target / path.relative_to(source)).with_suffix("")
        builder = Builder("tensorrt", **{"tensorrt": "10.13.2.6", "compute_capability": "8.6", **given.get("builder", {})})
        sha = file_sha256(destination.parent / given["of"]) if "of" in given else "0" * 64
        destination.write_text(print_manifest(make_manifest(_recipe(given.get("recipe", {})), sha, builder)))


def _recipe(given: dict[str, object]) -> PlanRecipe:
    onnx = PurePosixPath("model.onnx")
    plans = tuple(PlanFile(*plan) for plan in given.pop("plans", [["model.plan"]]))
    profile = Profile({"x": Span((1, 64), (8, 64), (8, 64))})
    usual = {"model": "m", "version": 1, "onnx": onnx, "files": {onnx: "ab" * 32}, "release": "25.08", "plans": plans, "profiles": (profile,)}
    return PlanRecipe(**{**usual, **given})


def repositories(source: Path, root: Path) -> list[Path]:
    """The repositories of a case that was built at `root`: itself, or the folders that it names."""
    return [root / name for name in _settings(source).get("repositories", ["."])]


def _settings(source: Path) -> dict[str, object]:
    settings = source / "settings.json"
    return json.loads(settings.read_text()) if settings.exists() else {}


def beside(source: Path) -> set[str]:
    """Codes that a case gets besides its own."""
    return set(_settings(source).get("beside", []))


def not_live(source: Path) -> str:
    """Why the embedded server cannot judge a case; nothing where it can."""
    return str(_settings(source).get("not_live", ""))


def server_facts(source: Path) -> ServerFacts:
    """What a case says about the server."""
    given = _settings(source)
    for ours in ("repositories", "beside", "not_live"):
        given.pop(ours, None)
    release = find_release(given.pop("release")) if "release" in given else None
    return ServerFacts(release=release, **given)


def build_onnx(text: str) -> bytes:
    """An ONNX file from its description; valid, and runnable in ONNX Runtime where its dtypes allow."""
    opset, ir = 17, 9
    inputs: list[tuple[str, int, list[object] | None]] = []
    outputs: list[tuple[str, int, list[object] | None]] = []
    initializers = []
    for line in (raw.partition("#")[0].strip() for raw in text.splitlines()):
        if match := _LINE.fullmatch(line):
            shape = None if match["shape"] == "-" else [_dim(part) for part in match["shape"][1:-1].split(",") if part.strip()]
            entry = (match["name"], dtypes.from_wire(match["dtype"]).onnx, shape)
            (outputs if match["kind"] == "output" else inputs).append(entry)
            if match["kind"] == "optional":
                initializers.append(
                    numpy_helper.from_array(
                        np.zeros([dim if isinstance(dim, int) else 1 for dim in shape or []], dtypes.from_wire(match["dtype"]).numpy), match["name"]
                    )
                )
        elif line.startswith("external "):
            _, name, location = line.split(maxsplit=2)
            weight = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
            weight.external_data.add(key="location", value=location)
            initializers.append(weight)
        elif line.startswith("opset "):
            opset = int(line.split()[1])
        elif line.startswith("ir "):
            ir = int(line.split()[1])
        elif line:
            raise ValueError(f"not a line of an ONNX description: {line!r}")
    nodes = [node for name, elem_type, shape in outputs for node in _output_nodes(name, elem_type, shape or [], inputs)]
    values = [[helper.make_tensor_value_info(*entry) for entry in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "case", values[0], values[1], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    return model.SerializeToString()


def _dim(text: str) -> object:
    text = text.strip()
    if text == "?":
        return None
    return int(text) if text.lstrip("-").isdigit() else text


def _output_nodes(name: str, elem_type: int, shape: list[object], inputs: list[tuple[str, int, list[object] | None]]) -> list[onnx.NodeProto]:
    """Zeros of the output's shape: a symbolic size is that of the first input that has the same symbol, else 1."""
    parts, nodes = [], []
    for index, dim in enumerate(shape):
        part = f"{name}.dim{index}"
        source = next(((tensor, axis) for tensor, _, dims in inputs for axis, other in enumerate(dims or []) if isinstance(dim, str) and other == dim), None)
        if source is None:
            nodes.append(helper.make_node("Constant", [], [part], value=numpy_helper.from_array(np.array([dim if isinstance(dim, int) else 1], np.int64))))
        else:
            index_name = f"{part}.axis"
            nodes += [
                helper.make_node("Shape", [source[0]], [f"{part}.shape"]),
                helper.make_node("Constant", [], [index_name], value=numpy_helper.from_array(np.array([source[1]], np.int64))),
                helper.make_node("Gather", [f"{part}.shape", index_name], [part]),
            ]
        parts.append(part)
    if not shape:
        return [
            helper.make_node("Constant", [], [f"{name}.zero"], value=numpy_helper.from_array(np.array(0, np.float32))),
            helper.make_node("Cast", [f"{name}.zero"], [name], to=elem_type),
        ]
    whole = f"{name}.shape"
    zeros = numpy_helper.from_array(np.zeros(1, np.float32))
    nodes += [helper.make_node("Concat", parts, [whole], axis=0), helper.make_node("ConstantOfShape", [whole], [f"{name}.zeros"], value=zeros)]
    if elem_type == TensorProto.FLOAT:
        nodes[-1].output[0] = name
    else:
        nodes.append(helper.make_node("Cast", [f"{name}.zeros"], [name], to=elem_type))
    return nodes
