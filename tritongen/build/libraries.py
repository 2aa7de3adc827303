"""The libraries that build plans in this process: TensorRT, and TensorRT-RTX, which has the same interface and needs no GPU to build."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tritongen.errors import EnvironmentProblem, MissingExtra
from tritongen.recipe import BUILT_IN_PROCESS_SINCE, TYPED_ALWAYS
from tritongen.signature.plan import TENSORRT, TENSORRT_RTX


@dataclass(frozen=True)
class Library:
    """One of the libraries, imported.

    Attributes:
        kind: `tensorrt` or `tensorrt-rtx`: neither loads a plan of the other.
        module: the Python module. Its objects are annotated with TensorRT 10's types where they are made; its enums are asked by name, since their members and
            numbers change from one major version to the next.
        version: four numbers with dots.
    """

    kind: str
    module: Any
    version: str

    @property
    def is_rtx(self) -> bool:
        """Whether it is TensorRT-RTX."""
        return self.kind == TENSORRT_RTX

    @property
    def tensorrt_major(self) -> int:
        """The major version of TensorRT that it takes precision as; TensorRT-RTX has strongly typed networks only, as TensorRT from 11 on."""
        return TYPED_ALWAYS if self.is_rtx else int(self.version.split(".")[0])

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The compute capabilities that TensorRT-RTX builds for, such as `8.6`."""
        return tuple(f"{name[2:-1]}.{name[-1]}" for name in self.module.ComputeCapability.__members__ if name.startswith("SM"))

    def member(self, enum: str, name: str) -> Any:
        """The member `name` of an enum; None where this version has none of that name."""
        return getattr(getattr(self.module, enum), name, None)

    @property
    def title(self) -> str:
        """Its name and version for messages."""
        return f"{'TensorRT-RTX' if self.is_rtx else 'TensorRT'} {self.version}"


_MODULES = {TENSORRT: ("tensorrt", "tensorrt", BUILT_IN_PROCESS_SINCE), TENSORRT_RTX: ("tensorrt_rtx", "rtx", 1)}
"""Kind → the module, the extra that installs it, the oldest major version that has what is called here."""


def load_library(kind: str, *, instead: str = "") -> Library:
    """Import the library of this kind. `instead`: what else a user can do, for the hint.

    Raises MissingExtra where it is not installed, EnvironmentProblem where it is and cannot be used.
    """
    name, extra, oldest = _MODULES[kind]
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtra(extra, f"building plans with {kind}", hint=instead) from error
    except (ImportError, OSError, RuntimeError) as error:
        raise EnvironmentProblem(f"{name} is installed and cannot be loaded: {error}", hint=instead) from error
    return _checked(kind, module, extra, oldest, instead)


def installed_version(kind: str) -> str:
    """The version of the library of this kind; empty where there is none that can be used."""
    try:
        return load_library(kind).version
    except EnvironmentProblem:
        return ""


def _checked(kind: str, module: ModuleType, extra: str, oldest: int, instead: str) -> Library:
    # Type stubs install a folder of the module's name: it can be imported, and there is nothing in it.
    if not hasattr(module, "Builder"):
        raise MissingExtra(extra, f"building plans with {kind}", hint=instead)
    version = str(module.__version__)
    if int(version.split(".")[0]) < oldest:
        raise EnvironmentProblem(f"{kind} {version} is too old: plans are built with version {oldest} or newer", hint=f"pip install 'tritongen[{extra}]'")
    return Library(kind, module, version)
