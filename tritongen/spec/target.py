"""The server that a repository is made for."""

from __future__ import annotations

from tritongen.releases import DEFAULT_RELEASE, find_release
from tritongen.releases import Release as KnownRelease
from tritongen.spec.strict import Strict, setting
from tritongen.spec.units import SomeSize
from tritongen.spec.values import PositiveInt, Release, ServerPath


class Target(Strict, json_schema_extra={"examples": [{"release": "25.08", "gpu_memory": "24GiB", "engine_cache": "/engine-cache"}]}):
    """The server that the repository is made for."""

    release: Release | None = setting(
        'NVIDIA container release as quoted YY.MM, such as "25.08". Default: the newest of which Triton, ONNX Runtime and TensorRT are known,'
        f" today {DEFAULT_RELEASE.name}.",
        sets="which fields and values may be used, and what is warned of",
        why="always: a config for one release is not always one for another",
    )
    cpus: PositiveInt | None = setting(
        "CPU cores that the server's container is given. Default: not known.",
        sets="parameters.intra_op_thread_count of models with several copies on the CPU",
        why="copies that each take all cores are slower together than one alone",
    )
    gpu_memory: SomeSize | None = setting(
        "Memory of each GPU of the server, such as 24GiB. Default: not known.",
        sets="no field; `render` warns where the models are estimated to need more, and `tritongen estimate` says which batches fit",
        why="a batch that does not fit ends the server under load, and not before",
    )
    engine_cache: ServerPath = setting(
        "Absolute folder inside the container where the TensorRT accelerator keeps its engines.",
        default="/engine-cache",
        sets="trt_engine_cache_path and trt_timing_cache_path",
        why="where another volume is mounted; on a folder that does not last, every start builds all engines again",
    )

    @property
    def release_name(self) -> str:
        """The release as YY.MM, also where the spec leaves it to the default."""
        return self.release or DEFAULT_RELEASE.name

    @property
    def known_release(self) -> KnownRelease | None:
        """What is known of that release; None for one that is not in the table."""
        return find_release(self.release_name)
