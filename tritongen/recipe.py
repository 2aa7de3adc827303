"""`PlanRecipe`: all about a TensorRT plan that is decided before it is built, as one value that is written beside the ONNX file and read back.

`render` derives recipes from a spec; what builds plans (in this process, or as a script on the machine that serves) and what tells a stale plan from a good
one read them, and need no spec. A recipe knows nothing of the machine: the TensorRT, GPU and driver that a plan was built with stand in its manifest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tritongen.releases import Release, find_release

RECIPES = PurePosixPath("recipes.json")
"""Name of the file with a model's recipes, in the model's artifacts folder."""

FORMAT = 1
"""Version of that file's format."""


@dataclass(frozen=True)
class Span:
    """The sizes (or, for a shape tensor, the values) that a profile allows: smallest, what kernels are tuned for, largest. All have the same length."""

    minimum: tuple[int, ...]
    optimum: tuple[int, ...]
    maximum: tuple[int, ...]


@dataclass(frozen=True)
class Profile:
    """One optimization profile.

    Attributes:
        shapes: the sizes of every input with a variable dimension, by name; all dimensions, that of the batch included.
        values: the values of inputs that are shape tensors, by name.
    """

    shapes: Mapping[str, Span]
    values: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True)
class PlanFile:
    """One plan that is built by a recipe: it serves one kind of GPU.

    Attributes:
        name: its file name in the version's folder.
        compute_capability: the GPU that it is for, as Triton's `cc_model_filenames` has it, such as `8.6`; empty where there is one plan for all GPUs.
        timing_cache: file in the model's artifacts folder with the times of kernels on that GPU.
    """

    name: str
    compute_capability: str = ""
    timing_cache: str = "timing.cache"


@dataclass(frozen=True)
class PlanRecipe:
    """How the plans of one version of a model are built.

    Attributes:
        model: the model's name.
        version: the version folder that the plans go to.
        plans: the files to build, one for each kind of GPU.
        onnx: the ONNX file, by path in the model's artifacts folder.
        files: SHA-256 (hex) of that file and of its external data, by path in the model's artifacts folder.
        profiles: in the order of their numbers; none where no input has a variable dimension and none is a shape tensor.
        precision: what the spec asks for: fp32, tf32, fp16, bf16 or int8.
        strongly_typed: whether the types in the ONNX file are binding; where not, TensorRT 10 may choose `precision` for any layer.
        tf32: whether FP32 layers may be computed in TF32.
        workspace_bytes: most scratch memory of a layer; None for all that the GPU has.
        optimization_level: how long TensorRT looks for fast kernels, 0 to 5; None for its default.
        version_compatible: whether later versions of TensorRT of the same major load the plan, too.
        hardware_compatibility: none, ampere_plus or same_compute_capability.
        strip: whether the weights are left out of the plan; it must be refitted before it can run.
        refit: whether the weights of the plan can be replaced.
        plugins: libraries with plugins, as the loader of the machine that builds finds them.
        dla_core: the deep learning accelerator that the plan is for; None for the GPU.
        gpu_fallback: whether layers that the accelerator cannot run go to the GPU.
        release: the container release that will load the plans, as YY.MM.
    """

    model: str
    version: int
    plans: tuple[PlanFile, ...]
    onnx: PurePosixPath
    files: Mapping[PurePosixPath, str]
    profiles: tuple[Profile, ...] = ()
    precision: str = "fp32"
    strongly_typed: bool = False
    tf32: bool = True
    workspace_bytes: int | None = None
    optimization_level: int | None = None
    version_compatible: bool = False
    hardware_compatibility: str = "none"
    strip: bool = False
    refit: bool = False
    plugins: tuple[str, ...] = ()
    dla_core: int | None = None
    gpu_fallback: bool = True
    release: str = ""

    @property
    def onnx_sha256(self) -> str:
        """SHA-256 (hex) of the ONNX file itself."""
        return self.files[self.onnx]

    @property
    def target(self) -> Release | None:
        """The release that will load the plans; None for one that is not in the table."""
        return find_release(self.release)

    @property
    def precision_flags(self) -> tuple[str, ...]:
        """The names of TensorRT 10's builder flags for the precision; none where the file's own types decide."""
        return () if self.strongly_typed or self.precision not in ("fp16", "bf16", "int8") else (self.precision.upper(),)

    @property
    def build_options(self) -> dict[str, Any]:
        """Everything that changes what a plan of this recipe is, as plain values for JSON: without the model's name, the files' names and the places.

        Nor is the release among it: of a release, its TensorRT matters, two releases may have the same one, and manifests compare that.
        """
        plain = {key: value for key, value in self.as_dict().items() if key not in ("model", "version", "plans", "onnx", "release")}
        return plain | {"files": {path.relative_to(self.onnx.parent).as_posix(): sha for path, sha in sorted(self.files.items())}}

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over `build_options`: recipes that are equal in it make interchangeable plans."""
        return hashlib.sha256(json.dumps(self.build_options, sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """The recipe as plain values for JSON."""
        plain = dataclasses.asdict(self)
        plain["onnx"] = self.onnx.as_posix()
        plain["files"] = {path.as_posix(): sha for path, sha in sorted(self.files.items())}
        return plain


def print_recipes(recipes: Sequence[PlanRecipe]) -> str:
    """The recipes of one model as the JSON text of a file; equal recipes give equal text."""
    return json.dumps({"format": FORMAT, "recipes": [recipe.as_dict() for recipe in recipes]}, indent=2, sort_keys=True) + "\n"


def read_recipes(text: str) -> tuple[PlanRecipe, ...]:
    """The recipes in such a text. Raises ValueError, with the reason in words, where it is not one, or one of a later format."""
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get("recipes"), list):
        raise ValueError("it is no file of recipes")
    if data.get("format") != FORMAT:
        raise ValueError(f"it has the format {data.get('format')!r}, and this tritongen reads format {FORMAT}")
    try:
        recipes = TypeAdapter(tuple[PlanRecipe, ...]).validate_python(data["recipes"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, ('recipes', *first['loc'])))} in it is damaged: {first['msg']}") from error
    for recipe in recipes:
        if recipe.onnx not in recipe.files:
            raise ValueError(f"the recipe of version {recipe.version} in it is damaged: there is no hash of {recipe.onnx}")
    return recipes
