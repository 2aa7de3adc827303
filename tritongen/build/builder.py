"""The builder: a recipe and its ONNX file → the bytes of a plan, in this process.

Two steps, so that all that TensorRT is given can be looked at before it is built: `define` reads the ONNX file and makes network, config and profiles;
`Definition.build` builds them.
"""

from __future__ import annotations

import re
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tritongen.build.callbacks import Progress, make_log, make_monitor
from tritongen.build.device import Device, use_device
from tritongen.build.libraries import Library
from tritongen.build.network import misfits, parse
from tritongen.build.options import add_profile, configure, idle_precision, network_flags
from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import EnvironmentProblem, ModelFileError
from tritongen.recipe import PlanRecipe

if TYPE_CHECKING:
    import tensorrt

_LISTEN_S = 0.2
"""How long the thread that waits for a build does not look up: a signal that comes just before it begins to wait wakes nobody."""

_REMEDIES = tuple(
    (re.compile(cause, re.IGNORECASE), hint)
    for cause, hint in (
        (r"must be equal", "give these dimensions the same sizes in shapes and tensorrt.profiles, or each a name of its own in the ONNX file"),
        (r"profile|kMIN|kOPT|kMAX", "check shapes and tensorrt.profiles against what the graph does with these dimensions"),
        (
            r"workspace|could not find any implementation",
            "raise tensorrt.build.max_workspace_size, or leave it out; else use backend: onnxruntime",
        ),
        (
            r"out of memory|OutOfMemory|bad_alloc|MemoryError|allocat",
            "free memory of the GPU and of this machine, or lower batching.max",
        ),
    )
)
"""What helps against what TensorRT says of a build that failed; the first that fits."""


@dataclass(frozen=True)
class Job:
    """One plan to build.

    Attributes:
        recipe: how.
        artifacts: the model's artifacts folder, which the recipe's paths are relative to.
        capabilities: the GPUs to build for, such as `8.6`, where the library builds for GPUs that are not here; none for all that it knows.
        timing_cache: what an earlier build left; empty where there is none.
        device: the GPU of this machine that it is built on; None for a library that needs none.
    """

    recipe: PlanRecipe
    artifacts: Path
    capabilities: tuple[str, ...] = ()
    timing_cache: bytes = b""
    device: Device | None = None

    @property
    def onnx(self) -> Path:
        """The ONNX file."""
        return self.artifacts / self.recipe.onnx


@dataclass(frozen=True)
class Built:
    """What a build gave.

    Attributes:
        plan: the serialized plan, where the library holds it: plans are large.
        timing_cache: the times of kernels on this machine, for the next build; empty where the library keeps none.
        notes: what a user should know.
    """

    plan: memoryview
    timing_cache: bytes = b""
    notes: tuple[str, ...] = ()


class Builder(Protocol):
    """What builds plans in this process."""

    @property
    def library(self) -> Library:
        """What it builds with."""

    def build(self, job: Job, progress: Progress) -> Built:
        """Build one plan. Raises ModelFileError with everything that stands against it; KeyboardInterrupt, once the build has ended, where one stopped it."""


@dataclass
class Definition:
    """All that TensorRT is given for one plan. The parser and the logger are kept alive by it: the network's weights are the parser's."""

    library: Library
    job: Job
    builder: tensorrt.Builder
    network: tensorrt.INetworkDefinition
    config: tensorrt.IBuilderConfig
    parser: tensorrt.OnnxParser
    log: tensorrt.ILogger
    errors: list[str]
    profiles: list[tensorrt.IOptimizationProfile] = field(default_factory=list)

    def build(self, progress: Progress, stop: threading.Event) -> Built:
        """The plan; the build ends at its next step once `stop` is set. Raises ModelFileError where there is none."""
        notes = [*idle_precision(self.library, self.job.recipe), *self._use_timing_cache()]
        self.config.progress_monitor = make_monitor(self.library, progress, stop)
        try:
            made = self.builder.build_serialized_network(self.network, self.config)
        except (RuntimeError, ValueError, TypeError, MemoryError) as error:
            self.errors.append(f"{type(error).__name__}: {error}")
            made = None
        if made is None:
            raise ModelFileError([self._failure()])
        return Built(_buffer(made), self._timing_cache(), tuple(notes))

    def _use_timing_cache(self) -> list[str]:
        """Give the builder the times of an earlier build. Those of another GPU or version are refused, and begun anew."""
        if self.library.is_rtx:
            return []  # its timing cache does nothing, and its documentation calls it deprecated
        earlier = self.config.create_timing_cache(self.job.timing_cache)
        if self.config.set_timing_cache(earlier, False):
            return []
        self.config.set_timing_cache(self.config.create_timing_cache(b""), False)
        return ["the timing cache is of another GPU or another TensorRT, and is begun anew"]

    def _timing_cache(self) -> bytes:
        if self.library.is_rtx:
            return b""
        return bytes(_buffer(self.config.get_timing_cache().serialize()))

    def _failure(self) -> Diagnostic:
        reasons = "; ".join(dict.fromkeys(self.errors)) or "it gives no reason"
        recipe = self.job.recipe
        hint = next((hint for cause, hint in _REMEDIES if cause.search(reasons)), "serve this model with backend: onnxruntime and accelerator: tensorrt")
        if self.library.is_rtx and (recipe.refit or recipe.strip or recipe.version_compatible):
            hint = "without a GPU, TensorRT-RTX builds no refittable, stripped or version-compatible plan: try it without these options"
        return Diagnostic("TG092", f"{self.library.title} built no plan: {reasons}", Location(str(self.job.onnx)), "there is no plan", hint, recipe.model)


class TensorRTBuilder:
    """Builds with TensorRT 10 or 11, or with TensorRT-RTX: their interfaces are one, up to what `options` asks by name."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @property
    def library(self) -> Library:
        """What it builds with."""
        return self._library

    def build(self, job: Job, progress: Progress) -> Built:
        """`Builder.build`.

        All of it is done in a thread of its own: raised inside a callback of the library, the log's included, an exception of Ctrl-C would end the process.
        """
        begin, stop = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1, "tritongen-build") as pool:
            build = None
            try:
                build = pool.submit(self._build, job, progress, begin, stop)
                begin.set()
                while not wait([build], _LISTEN_S).done:
                    pass
                return build.result()
            except BaseException:
                stop.set()
                begin.set()
                if build is not None:
                    _outlast(build)
                raise

    def _build(self, job: Job, progress: Progress, begin: threading.Event, stop: threading.Event) -> Built:
        # Ctrl-C may come while the thread is started: a build that had begun by then would be one that nobody can stop.
        begin.wait()
        if stop.is_set():
            raise KeyboardInterrupt
        if job.device is not None:
            use_device(job.device)
        return self.define(job).build(progress, stop)

    def define(self, job: Job) -> Definition:
        """Everything up to the build itself.

        Raises ModelFileError with all that the parser, the profiles and the options are refused for; EnvironmentProblem where the library does not start.
        """
        module, errors = self._library.module, list[str]()
        log = make_log(self._library, errors)
        try:
            builder: tensorrt.Builder = module.Builder(log)
        except (TypeError, RuntimeError) as error:
            reasons = "; ".join(errors) or error
            raise EnvironmentProblem(f"{self._library.title} does not start here: {reasons}", hint="check the driver of the GPU") from error
        network = builder.create_network(network_flags(self._library, job.recipe))
        config = builder.create_builder_config()
        found = configure(self._library, builder, config, job.recipe, job.capabilities, job.onnx)
        parser: tensorrt.OnnxParser = module.OnnxParser(network, log)
        refused = parse(self._library, parser, job.onnx, job.recipe.model)
        found += refused or misfits(network, job.recipe, job.onnx)
        definition = Definition(self._library, job, builder, network, config, parser, log, errors)
        found += [] if found else _add_profiles(definition)
        if found:
            raise ModelFileError(found)
        errors.clear()
        return definition


def _outlast(build: Future[Built]) -> None:
    """Wait until a build that was told to stop has stopped, whoever asks again meanwhile: a process that ends while the library works crashes.

    From the second Ctrl-C on, the next one kills the process as it kills any other: the library's next step can be long in coming.
    """
    earlier = None
    try:
        while not build.done():
            try:
                wait([build], _LISTEN_S)
            except KeyboardInterrupt:
                earlier = earlier or signal.signal(signal.SIGINT, signal.SIG_DFL)
    finally:
        if earlier is not None:
            signal.signal(signal.SIGINT, earlier)


def _buffer(memory: Any) -> memoryview:
    """A view of the library's memory, which lives as long as the view. `Any`: the stubs leave out that it is a buffer."""
    return memoryview(memory)


def _add_profiles(definition: Definition) -> list[Diagnostic]:
    found = []
    job = definition.job
    for number, profile in enumerate(job.recipe.profiles):
        try:
            definition.profiles.append(add_profile(definition.library, definition.builder, definition.config, profile))
        except (RuntimeError, ValueError) as error:
            reasons = "; ".join([str(error), *definition.errors])
            message = f"{definition.library.title} refuses profile {number}: {reasons}"
            found.append(Diagnostic("TG091", message, Location(str(job.onnx)), "no plan can be built", "check shapes and tensorrt.profiles", job.recipe.model))
    return found
