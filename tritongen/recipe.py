"""`PlanRecipe`: all about a TensorRT plan that is decided before it is built, as one value that is written beside the ONNX file and read back.

`render` derives recipes from a spec; what builds plans (in this process, or as a script on the machine that serves) and what tells a stale plan from a good
one read them, and need no spec. A recipe knows nothing of the machine: the TensorRT, GPU and driver that a plan was built with stand in its manifest.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from tritongen.releases import Release, find_release

RECIPES = PurePosixPath("recipes.json")
"""Name of the file with a model's recipes, in the model's artifacts folder."""

RTX_PLAN = "model.rtx.plan"
"""Name of a plan that TensorRT-RTX built, in the version's folder there: Triton must not see it."""

FORMAT = 1
"""Version of that file's format."""

SCRIPT = PurePosixPath("build_plans.sh")
"""The script in the artifacts folder of a repository that builds all its plans."""

TYPED_SINCE = 10
"""The TensorRT from which on the types in an ONNX file can be binding: the flag came with 9.1, which no release has."""

BUILT_IN_PROCESS_SINCE = 10
"""The oldest TensorRT by which `tritongen build` builds; older ones have trtexec only."""

TYPED_ALWAYS = 11
"""The TensorRT from which on they always are, TensorRT-RTX too: it has no flags of precision any more."""

_MOST_BYTES = 1 << 24
"""A larger file is none of recipes: nobody wrote one."""

_INT64_MAX = (1 << 63) - 1


def _file_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a file")
    return name


def _inner_path(path: PurePosixPath) -> PurePosixPath:
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in str(path):
        raise ValueError(f"{str(path)!r} leads out of the model's artifacts folder")
    return path


# What a file of recipes may hold, wherever it comes from: pydantic reads these, and the builder relies on them.
_FileName = Annotated[str, AfterValidator(_file_name)]
_InnerPath = Annotated[PurePosixPath, AfterValidator(_inner_path)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Capability = Annotated[str, Field(pattern=r"^([1-9]|1[0-9])\.[0-9]$")]
_Sizes = tuple[Annotated[int, Field(ge=-_INT64_MAX, le=_INT64_MAX)], ...]
_Library = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True)
class Span:
    """The sizes (or, for a shape tensor, the values) that a profile allows: smallest, what kernels are tuned for, largest. All have the same length."""

    minimum: _Sizes
    optimum: _Sizes
    maximum: _Sizes


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

    name: _FileName
    compute_capability: _Capability | Literal[""] = ""
    timing_cache: _FileName = "timing.cache"


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
        gpus: numbers of the GPUs that load the plans, as the server's container has them; none for all of its GPUs.
    """

    model: _FileName
    version: Annotated[int, Field(ge=1, le=_INT64_MAX)]
    plans: Annotated[tuple[PlanFile, ...], Field(min_length=1)]
    onnx: _InnerPath
    files: Mapping[_InnerPath, _Sha256]
    profiles: tuple[Profile, ...] = ()
    precision: Literal["fp32", "tf32", "fp16", "bf16", "int8"] = "fp32"
    strongly_typed: bool = False
    tf32: bool = True
    workspace_bytes: Annotated[int, Field(ge=0, le=_INT64_MAX)] | None = None
    optimization_level: Annotated[int, Field(ge=0, le=5)] | None = None
    version_compatible: bool = False
    hardware_compatibility: Literal["none", "ampere_plus", "same_compute_capability"] = "none"
    strip: bool = False
    refit: bool = False
    plugins: tuple[_Library, ...] = ()
    dla_core: Annotated[int, Field(ge=0, le=_INT64_MAX)] | None = None
    gpu_fallback: bool = True
    release: Annotated[str, Field(pattern=r"^[0-9]{2}\.[0-9]{2}$")] = ""
    gpus: tuple[Annotated[int, Field(ge=0, le=_INT64_MAX)], ...] = ()

    @property
    def target(self) -> Release | None:
        """The release that will load the plans; None for one that is not in the table."""
        return find_release(self.release)

    def precision_flags(self, tensorrt_major: int) -> tuple[str, ...]:
        """The names of the builder's flags for the precision in this major version of TensorRT; none where the file's own types decide."""
        typed = self.strongly_typed or tensorrt_major >= TYPED_ALWAYS
        return () if typed or self.precision not in ("fp16", "bf16", "int8") else (self.precision.upper(),)

    def has_binding_types(self, tensorrt_major: int) -> bool:
        """Whether this major version of TensorRT is told that the types in the ONNX file are binding: later ones know nothing else, earlier ones cannot."""
        return self.strongly_typed and TYPED_SINCE <= tensorrt_major < TYPED_ALWAYS

    @property
    def build_options(self) -> dict[str, Any]:
        """Everything that changes what a plan of this recipe is, as plain values for JSON: without the model's name, the files' names and the places.

        Nor is the release among it: of a release, its TensorRT matters, two releases may have the same one, and manifests compare that. Nor are the numbers
        of GPUs: of a GPU its compute capability matters, which manifests compare too.
        """
        plain = {key: value for key, value in self.as_dict().items() if key not in ("model", "version", "plans", "onnx", "release", "gpus")}
        return plain | {"files": {path.relative_to(self.onnx.parent).as_posix(): sha for path, sha in sorted(self.files.items())}}

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over `build_options`: recipes that are equal in it make interchangeable plans."""
        return options_fingerprint(self.build_options)

    def as_dict(self) -> dict[str, Any]:
        """The recipe as plain values for JSON."""
        plain = dataclasses.asdict(self)
        plain["onnx"] = self.onnx.as_posix()
        plain["files"] = {path.as_posix(): sha for path, sha in sorted(self.files.items())}
        return plain


def options_fingerprint(options: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over a recipe's `build_options`, or over what was read back of them."""
    return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()


def print_recipes(recipes: Sequence[PlanRecipe]) -> str:
    """The recipes of one model as the JSON text of a file; equal recipes give equal text."""
    return json.dumps({"format": FORMAT, "recipes": [recipe.as_dict() for recipe in recipes]}, indent=2, sort_keys=True) + "\n"


def load_recipes(path: Path) -> tuple[PlanRecipe, ...]:
    """The recipes in the file of a model's artifacts folder; none where there is no such file.

    Raises ValueError, with the reason in words, where it holds none that can be used, OSError where it cannot be read.
    """
    if not path.is_file():
        return ()
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES:,} bytes, and was not read")
    recipes = read_recipes(path.read_text(encoding="utf-8"))
    if others := sorted({recipe.model for recipe in recipes} - {path.parent.name}):
        raise ValueError(f"it is damaged: it has recipes of {others[0]!r}, and lies in the folder of {path.parent.name!r}")
    return recipes


def read_recipes(text: str) -> tuple[PlanRecipe, ...]:
    """The recipes in such a text. Raises ValueError, with all that is wrong in words, where it is not one, or one of a later format."""
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(data, dict) or not isinstance(data.get("recipes"), list):
        raise ValueError("it is no file of recipes")
    if data.get("format") != FORMAT:
        raise ValueError(f"it has the format {data.get('format')!r}, and this tritongen reads format {FORMAT}")
    try:
        # From JSON and strictly: a list is a tuple there, and "1" or true no number.
        recipes = _reader().validate_json(json.dumps(data["recipes"]), strict=True)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, ('recipes', *each['loc'])))}: {each['msg']}" for each in error.errors(include_url=False, include_input=False)]
        raise ValueError(f"it is damaged: {'; '.join(dict.fromkeys(wrong))}") from error
    if wrong := [*_contradictions(recipes)]:
        raise ValueError(f"it is damaged: {'; '.join(wrong)}")
    return recipes


@cache
def _reader() -> TypeAdapter[tuple[PlanRecipe, ...]]:
    return TypeAdapter(tuple[PlanRecipe, ...])


def _contradictions(recipes: Sequence[PlanRecipe]) -> Iterator[str]:
    """What is wrong with recipes whose values are right, each by itself."""
    for version, count in Counter(recipe.version for recipe in recipes).items():
        if count > 1:
            yield f"there are {count} recipes of version {version}"
    for recipe in recipes:
        where = f"the recipe of version {recipe.version}"
        if recipe.onnx not in recipe.files:
            yield f"{where} has no hash of {recipe.onnx}"
        for path in recipe.files:
            if not path.is_relative_to(recipe.onnx.parent):
                yield f"{where} has a file {path}, which does not lie beside {recipe.onnx}"
        if len({plan.name for plan in recipe.plans}) < len(recipe.plans):
            yield f"{where} names a plan twice"
        for number, profile in enumerate(recipe.profiles):
            if _ranks(profile) != _ranks(recipe.profiles[0]):
                yield f"{where}, profile {number}, has other inputs than profile 0"
            for name, span in [*profile.shapes.items(), *profile.values.items()]:
                if problem := _disorder(span, least=0 if name in profile.shapes else None):
                    yield f"{where}, profile {number}, input {name!r}: {problem}"


def _ranks(profile: Profile) -> dict[str, int]:
    """How many sizes, or values, a profile states of each input."""
    return {name: len(span.minimum) for name, span in [*profile.shapes.items(), *profile.values.items()]}


def _disorder(span: Span, *, least: int | None) -> str:
    """Why a range is none; empty where it is one. `least`: what no size may be below."""
    if not len(span.minimum) == len(span.optimum) == len(span.maximum):
        return "minimum, optimum and maximum differ in length"
    if any(not low <= usual <= high for low, usual, high in zip(span.minimum, span.optimum, span.maximum, strict=True)):
        return "minimum <= optimum <= maximum does not hold"
    return "a size is below 0" if least is not None and any(low < least for low in span.minimum) else ""
