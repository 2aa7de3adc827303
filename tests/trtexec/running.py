"""A repository with plans to build, and the build script run on it under a shell, with a trtexec and an nvidia-smi that are none."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tritongen.manifest import Manifest, load_manifest, manifest_path
from tritongen.recipe import SCRIPT, PlanFile, PlanRecipe, Profile, Span
from tritongen.render.scripts import build_script

FAKE = Path(__file__).with_name("fake.py")
A10G = "GPU-aaaa, 8.6, 580.65.06, NVIDIA A10G"
H100 = 'GPU-bbbb, 9.0, 580.65.06, NVIDIA H100, "80" GB\\HBM3'
ONNX = b"an ONNX file"
PROFILE = Profile({"x": Span((1, 8), (4, 8), (16, 8))})


def recipe(model="m", *, onnx=ONNX, version=1, profiles=(PROFILE,), **rest) -> PlanRecipe:
    """A recipe of a plan that is built from `onnx`."""
    path = PurePosixPath("model.onnx")
    given = {"plans": (PlanFile("model.plan"),), "release": "25.08", "strongly_typed": True} | rest
    return PlanRecipe(model=model, version=version, onnx=path, files={path: hashlib.sha256(onnx).hexdigest()}, profiles=profiles, **given)


@dataclass
class Site:
    """Where a repository lies, and the machine that builds its plans.

    Attributes:
        root: the folder that holds the repository and its artifacts.
        shell: the words that start the shell.
        version: of trtexec.
        gpus: what nvidia-smi prints; None where there is no nvidia-smi.
        environment: more variables.
    """

    root: Path
    shell: tuple[str, ...]
    version: str = "10.13.2.6"
    gpus: str | None = A10G
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def repository(self) -> Path:
        return self.root / "model repository"

    @property
    def artifacts(self) -> Path:
        return self.root / "model repository.artifacts"

    @property
    def script(self) -> Path:
        return self.artifacts / SCRIPT

    def place(self, *recipes: PlanRecipe, onnx: bytes = ONNX) -> None:
        """Put there what a render writes for these recipes, as far as the script needs it."""
        for each in recipes:
            (self.repository / each.model / str(each.version)).mkdir(parents=True, exist_ok=True)
            (self.repository / each.model / "config.pbtxt").write_text("# as it was rendered\n")
            (self.artifacts / each.model).mkdir(parents=True, exist_ok=True)
            (self.artifacts / each.model / each.onnx).write_bytes(onnx)
        self.script.write_bytes(build_script(recipes, image="nvcr.io/nvidia/tritonserver:25.08-py3", spec_name="spec.yaml", tritongen_version="0.1.0"))

    def command(self, *arguments: str) -> list[str]:
        return [*self.shell, str(self.script), *arguments]

    def variables(self) -> dict[str, str]:
        """The environment of a run; its tools are written when it is asked for."""
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        for name, body in {
            "trtexec": f'exec {shlex.quote(sys.executable)} -IS {shlex.quote(str(FAKE))} "$@"',
            "nvidia-smi": f"printf '%s\\n' {shlex.quote(self.gpus or 'No devices were found')}; exit {0 if self.gpus else 9}",
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)
        path = os.environ["PATH"]
        if "busybox" in self.shell[0]:
            # Its own sed, awk, find and all the rest, and nothing else.
            path = str(tools / "applets")
            if not Path(path).exists():
                Path(path).mkdir()
                subprocess.run([self.shell[0], "--install", "-s", path], check=True, timeout=60)
        smi = str(tools / "nvidia-smi") if self.gpus is not None else "no-nvidia-smi-here"
        return {
            "PATH": path,
            "TRTEXEC": str(tools / "trtexec"),
            "NVIDIA_SMI": smi,
            "FAKE_VERSION": self.version,
            "FAKE_CALLS": str(self.root / "calls"),
            **self.environment,
        }

    def run(self, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
        """Run the script to its end; stdout and stderr as text."""
        return subprocess.run(self.command(*arguments), env=self.variables(), capture_output=True, text=True, timeout=120, check=False, **options)

    def calls(self) -> list[dict]:
        """What trtexec was told in each build that it finished."""
        path = self.root / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def plan(self, model="m", name="model.plan") -> Path:
        return self.repository / model / "1" / name

    def manifest(self, model="m", name="model.plan") -> Manifest | None:
        return load_manifest(self.artifacts / model / manifest_path(1, name))

    def leftovers(self) -> list[str]:
        """Files that a build should not leave."""
        return sorted(path.name for path in self.root.rglob(".tritongen-*"))


def shells() -> list[tuple[str, tuple[str, ...]]]:
    """Name and words of each shell that the script must run under."""
    return [("dash", (shutil.which("dash") or "/bin/sh",)), ("busybox", (shutil.which("busybox") or "busybox", "sh"))]
