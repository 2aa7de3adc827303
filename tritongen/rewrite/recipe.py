"""`Recipe`: which rewrites a file gets, in which order, as one value that can be written down and compared.

Equal sources, equal recipes and equal versions of the libraries give equal bytes, on any machine; level `all` of the optimisation is for one kind of machine.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import onnx

from tritongen.repository.copying import copy_content
from tritongen.rewrite.document import Rewritten, writing

_LIBRARIES = ("onnx", "onnxconverter-common", "onnxruntime", "tritongen")


@dataclass(frozen=True)
class Optimise:
    """The optimisation of a recipe: level, the machine it is for, the tolerated difference, and the ONNX Runtime that will load the result ("": any)."""

    level: str
    hardware: str = ""
    tolerance: float = 1e-5
    onnxruntime: str = ""


@dataclass(frozen=True)
class Convert:
    """The conversion of a recipe: one of `tritongen.rewrite.convert.PRECISIONS`, whether inputs and outputs keep their types, and what stays in FP32."""

    precision: str
    keep_io_types: bool = True
    fp32_operators: tuple[str, ...] = ()
    fp32_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """What is done to a file, in this order.

    Attributes:
        shapes: for each input whose sizes are written in, its full shape, -1 for a dimension that stays.
        rebatch: whether the leading dimension becomes variable.
        optimise: the optimisation; None for none.
        convert: the conversion to another precision; None for none. After the optimisation: what ONNX Runtime optimises on a CPU would be cast back to FP32.
        names: whether the nameless dimensions of inputs get names.
        apart: whether the dimensions that bear the name of the batch get names of their own, too.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rebatch: bool = False
    optimise: Optimise | None = None
    convert: Convert | None = None
    names: bool = False
    apart: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the file stays as it is."""
        return not self.shapes and not self.rebatch and self.optimise is None and self.convert is None and not self.names

    def text(self, *, tritongen: str) -> str:
        """The recipe with the versions of the libraries that its result depends on, as JSON on one line. `tritongen`: our own."""
        steps: dict[str, object] = {}
        if self.shapes:
            steps["freeze"] = {name: list(shape) for name, shape in sorted(self.shapes.items())}
        if self.rebatch:
            steps["rebatch"] = True
        if self.optimise is not None:
            steps["optimize"] = {key: value for key, value in vars(self.optimise).items() if value}
        if self.convert is not None:
            steps["convert"] = {key: value for key, value in vars(self.convert).items() if value}
        if self.names:
            steps["names"] = "batch" if self.apart else True
        versions = {"onnx": onnx.__version__, "tritongen": tritongen}
        if self.optimise is not None:
            versions["onnxruntime"] = _onnxruntime_version()
        if self.convert is not None:
            versions["onnxconverter-common"] = importlib.metadata.version("onnxconverter-common")
        return json.dumps(steps | versions, sort_keys=True)


def _onnxruntime_version() -> str:
    """The version that would optimise here; empty where there is none."""
    if importlib.util.find_spec("onnxruntime") is None:
        return ""
    import onnxruntime

    return str(onnxruntime.__version__)


def changed_libraries(before: str, after: str) -> dict[str, tuple[str, str]]:
    """Library → (old version, new version), where two texts of `Recipe.text` differ by these alone; empty where something else differs, or `before` is none."""
    try:
        old, new = json.loads(before), json.loads(after)
    except json.JSONDecodeError:
        return {}
    if not isinstance(old, dict) or any(old.get(key) != new.get(key) for key in old.keys() | new.keys() if key not in _LIBRARIES):
        return {}
    return {name: (str(old.get(name, "")), str(new.get(name, ""))) for name in _LIBRARIES if old.get(name) != new.get(name)}


def rewritten_in(folder: Path, source: Path, work: Callable[[Path, Path], Rewritten]) -> Rewritten:
    """One rewrite into `folder`, under the name model.onnx, with the weights beside it that its result shares with `source`.

    `work` is one of this package's rewrites: it gets the file to read and the file to write. Weights are copied, by reference where the disk can: onnx refuses
    those behind links. Raises ModelFileError as `work` does, and TG164 where the disk refuses.
    """
    done = work(source, folder / "model.onnx")
    with writing(source, done.path):
        for name in done.external:
            target = folder / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_content(source.parent / name, target)
    return done
