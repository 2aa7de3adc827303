"""What rules look at: a model's config as it was written, as Triton would complete it, its files, its signature, and what is known of the server.

Plain data. `check` makes it from a disk, `render` from an entry in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tritongen.diagnostics import Diagnostic, Location
from tritongen.manifest import Manifest
from tritongen.recipe import PlanFile, PlanRecipe
from tritongen.releases import Release
from tritongen.repository.scan import ModelFolder
from tritongen.rules.graphs import load_problems
from tritongen.rules.ortload import Problem
from tritongen.rules.resolve import Resolved, VersionChoice, choose_versions, resolve_backend
from tritongen.rules.rule import Key
from tritongen.signature import Signature
from tritongen.signature.plan import PlanHeader, read_plan_header


@dataclass(frozen=True)
class ServerFacts:
    """What is known of the server that will load the repository.

    Attributes:
        release: NVIDIA's release; None where nobody said.
        gpus: number of GPUs it sees; None where nobody said, 0 is a statement.
        auto_complete: False with `--disable-auto-complete-config`.
    """

    release: Release | None = None
    gpus: int | None = None
    auto_complete: bool = True


TEXT_BYTES = 100_000
"""A larger model.py or model.json is not looked into: nobody writes one by hand, and parsing it would take long."""


@dataclass(frozen=True)
class ModelFile:
    """What is known of one version's model file: its signature, or why there is none.

    Attributes:
        signature: what the file says; None where it is no ONNX model, or was not looked at.
        problems: why it has no signature.
        refine: the signature with the outputs as ONNX Runtime reports them after its shape inference; takes longer, so it is asked only where that decides.
        text: all of a file that people write (a model.py, vLLM's model.json); None where there is none, or it is larger than `TEXT_BYTES`.
    """

    signature: Signature | None = None
    problems: tuple[Diagnostic, ...] = ()
    refine: Callable[[], Signature] | None = None
    text: bytes | None = None


@dataclass(frozen=True)
class BuiltPlan:
    """A file in a version's folder that the config names as a TensorRT plan, for all GPUs or for some, and what is known of its making.

    Attributes:
        key: the field of the config that names it.
        head: its first bytes, and its size; None where it could not be opened.
        problems: why it could not.
        recipe: how it should be built, as a render left it beside the repository; None where there is none.
        file: which of the recipe's plans it is; None without a recipe.
        manifest: what it was built from; None where there is none.
        problem: why a recipe or a manifest that is there cannot be used, in words; empty where they can.
        is_described: whether the manifest is about this very file; reads all of it, so that it is asked last.
    """

    key: Key
    head: tuple[bytes, int] | None = None
    problems: tuple[Diagnostic, ...] = ()
    recipe: PlanRecipe | None = None
    file: PlanFile | None = None
    manifest: Manifest | None = None
    problem: str = ""
    is_described: Callable[[], bool] = lambda: True

    @property
    def header(self) -> PlanHeader | None:
        """What its first bytes say; None where they are no header that is known."""
        return read_plan_header(self.head[0]) if self.head is not None else None


@dataclass(frozen=True)
class ModelContext:
    """One model, for rules.

    Attributes:
        name: the model's name (its folder's, where there is one).
        config: the `ModelConfig` as it was written, before Triton completes anything. Empty where there is no config.pbtxt.
        has_config: whether there is a config.pbtxt.
        server: what is known of the server.
        folder: the model's folder; None for a lone config.pbtxt, of which nothing else is known.
        locate: field path → place in config.pbtxt.
        models: signature by version number, for every version that Triton would load; empty where model files are not ONNX, or not looked at.
        text: the bytes of config.pbtxt, for fixes.
        absent: paths outside the model's folder that the config names, and where nothing is.
        parses: whether Triton can read config.pbtxt as one; False also where it was not read, so that it is not known.
        plans: TensorRT plans that the config names and that are there, by path in the model's folder; empty for other models.
        recipes: how plans that the config names should be built, there or not, by ascending version; empty where that is not known.
    """

    name: str
    config: Any
    has_config: bool
    server: ServerFacts
    locate: Callable[[Key], Location]
    folder: ModelFolder | None = None
    models: Mapping[int, ModelFile] = field(default_factory=dict)
    text: bytes = b""
    parses: bool = True
    absent: frozenset[str] = frozenset()
    plans: Mapping[str, BuiltPlan] = field(default_factory=dict)
    recipes: tuple[PlanRecipe, ...] = ()

    @cached_property
    def resolved(self) -> Resolved:
        """Backend, platform and file name, after Triton filled in what the config leaves out."""
        return resolve_backend(self.config, self.name, self.folder)

    @cached_property
    def versions(self) -> VersionChoice:
        """Which version folders Triton would load, and which it leaves out for which reason."""
        return choose_versions(self.config, self.folder)

    @cached_property
    def signature(self) -> Signature | None:
        """The signature of the newest version that could be read."""
        known = [number for number, file in self.models.items() if file.signature is not None]
        return self.models[max(known)].signature if known else None

    @cached_property
    def known(self) -> frozenset[str]:
        """What is known of the model, in the words of `Rule.needs`."""
        facts = {
            "config": self.has_config,
            "folder": self.folder is not None,
            "signature": self.signature is not None,
            "gpus": self.server.gpus is not None,
            "release": self.server.release is not None,
        }
        return frozenset(word for word, is_known in facts.items() if is_known)

    @cached_property
    def load_problems(self) -> tuple[Problem, ...]:
        """What NVIDIA's onnxruntime backend has to say when it loads the model; empty where no signature is known."""
        return load_problems(self) if self.is_onnx else ()

    @property
    def is_misnamed(self) -> bool:
        """Whether the config has another name than the model's folder."""
        return self.folder is not None and bool(self.config.name != os.fsencode(self.folder.name).decode(errors="replace"))

    @property
    def is_ensemble(self) -> bool:
        """Whether the config describes an ensemble."""
        return bool(self.config.platform == "ensemble" or self.config.HasField("ensemble_scheduling"))

    @property
    def is_onnx(self) -> bool:
        """Whether NVIDIA's onnxruntime backend would run it."""
        return self.resolved.backend == "onnxruntime"

    @property
    def is_plan(self) -> bool:
        """Whether NVIDIA's tensorrt backend would run it."""
        return self.resolved.backend == "tensorrt"
