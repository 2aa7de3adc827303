"""A compiled model → the `Entry` that holds every file of its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tritongen.modelconfig import print_pbtxt
from tritongen.render.backends import BACKENDS
from tritongen.render.compile import Compiled, label_filename
from tritongen.render.findings import Findings
from tritongen.repository import CopiedFile, Entry, EntryFile, KeptFile, TextFile, file_sha256
from tritongen.repository.stamp import stamp_text
from tritongen.signature import Signature
from tritongen.spec import ModelSpec
from tritongen.templating import environment

SOURCE_NAME = "model.onnx"
CONFIG = PurePosixPath("config.pbtxt")


@dataclass(frozen=True)
class ModelFiles:
    """A model's file with its external data: hashes by path relative to the folder that will hold them, and where each is read from."""

    sources: Mapping[PurePosixPath, Path]
    hashes: Mapping[PurePosixPath, str]

    @property
    def digest(self) -> str:
        """One SHA-256 (hex) over all of them."""
        lines = "".join(f"{path} {sha}\n" for path, sha in sorted(self.hashes.items()))
        return hashlib.sha256(lines.encode()).hexdigest()


def hash_model(path: Path, signature: Signature, findings: Findings) -> ModelFiles:
    """Read the model and its external data once. Says where two files would get the same name. Raises OSError where a file cannot be read."""
    sources = {PurePosixPath(SOURCE_NAME): path}
    for location in dict.fromkeys(external.location for external in signature.external_data):
        name = PurePosixPath(location)
        if name in sources or name == PurePosixPath("model.plan"):
            findings.error(
                "TG133",
                ("source",),
                f"the external data file '{location}' has the name that the model itself gets",
                hint="save the model again with another name for its external data",
            )
        sources[name] = path.parent / location
    return ModelFiles(sources, {name: file_sha256(source) for name, source in sources.items()})


def build_entry(
    model: ModelSpec,
    compiled: Compiled,
    files: ModelFiles,
    *,
    version: int,
    previous: Mapping[PurePosixPath, CopiedFile],
    labels: Mapping[str, bytes],
    spec_name: str,
    tritongen_version: str,
) -> Entry:
    """All files of the model's folder.

    Args:
        model: what the spec says.
        compiled: its config and warmup data.
        files: the model file with its external data.
        version: the folder they go to.
        previous: files of earlier versions that stay.
        labels: content of the label files, by output.
        spec_name: file name of the spec, for the header.
        tritongen_version: likewise.
    """
    copied = {name: CopiedFile(source, files.hashes[name]) for name, source in files.sources.items()}
    folder = PurePosixPath(str(version))
    contents: dict[PurePosixPath, EntryFile] = {**previous}
    artifacts: dict[PurePosixPath, EntryFile] = {}
    if model.backend == "tensorrt":
        contents[folder / BACKENDS["tensorrt"].filename] = KeptFile()
        artifacts.update(copied)
    else:
        contents.update({folder / name: file for name, file in copied.items()})
    contents.update({path: TextFile(content) for path, content in compiled.warmup_files.items()})
    contents.update({PurePosixPath(label_filename(model, output)): TextFile(content) for output, content in labels.items()})
    header = (
        environment()
        .get_template("config.pbtxt.j2")
        .render(name=model.name, tritongen_version=tritongen_version, spec_name=spec_name, remarks=compiled.remarks)
    )
    contents[CONFIG] = TextFile(stamp_text(header, print_pbtxt(compiled.config), contents, artifacts).encode())
    return Entry(model.name, contents, artifacts)
