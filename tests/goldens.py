"""Specs with the repositories that they must become: `tests/golden/<name>/spec.yaml` and `expected/`.

`expected/` holds what a render writes: `repository/`, where there are files that Triton must not see `artifacts/`, and of a deployment `deployment/`; text as
it is, everything else as the SHA-256 of its content in a file `<name>.sha256`. `findings.txt` has a line for each finding: severity, code and place.

Models are described in text. `NAME.onnx.txt` is as tests/rules/building.py reads it, or one line `mlp batch=N features=8 outputs=4` for `networks.mlp`;
`NAME.npy.txt` is `<dtype> <values as JSON>`; other files and folders are copied. `settings.json` may say `varies` (why weights are not the same everywhere:
hashes and versions are then left out), `not_live` (why the embedded server cannot serve it), `deploy` (whether a deployment is rendered too) and `beside`
(codes of warnings that `check` has about it, and `render` not, which knows what was meant).

`python tests/goldens.py` (`make golden`) writes all `expected/` anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "rules")]

import networks
from building import build_onnx

from tritongen.diagnostics import Diagnostic
from tritongen.render.deploy import MONITORING
from tritongen.sources import SourceText, parse_yaml
from tritongen.spec.sections import DEFAULTS, Section, sections
from tritongen.templating import LOCUSTFILES
from tritongen.workflow.rendering import Rendering, plan_render
from tritongen.workflow.writing import apply_rendering

ROOT = Path(__file__).parent / "golden"
NAMES = sorted(path.parent.name for path in ROOT.glob("*/spec.yaml"))
_VARYING = re.compile(rb'[0-9a-f]{64}|(?<=-)[0-9a-f]{16}(?=")|(?<=")[0-9]+(\.[0-9]+)+(?=")')
"""Hashes, those in folders of engine caches too, and versions of libraries."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def build(name: str, folder: Path) -> Path:
    """Copy a golden's spec with its files, models built, into `folder`. Returns the spec."""
    source = ROOT / name
    for path in sorted(source.iterdir()):
        target = folder / path.name.removesuffix(".txt")
        if path.name.endswith(".onnx.txt"):
            _write_model(path.read_text(), target)
        elif path.name.endswith(".npy.txt"):
            dtype, _, values = path.read_text().partition(" ")
            np.save(target, np.array(json.loads(values), dtype))
        elif path.is_dir() and path.name != "expected":
            shutil.copytree(path, folder / path.name, dirs_exist_ok=True)
        elif path.is_file() and path.name != "settings.json":
            shutil.copyfile(path, folder / path.name)
    return folder / "spec.yaml"


def _write_model(text: str, target: Path) -> None:
    kind, _, rest = text.partition(" ")
    if kind == "mlp":
        sizes = {key: int(value) if value.isdigit() else value for key, value in (part.split("=") for part in rest.split())}
        networks.mlp(target, **sizes)
    else:
        target.write_bytes(build_onnx(text))


def settings(name: str) -> Mapping[str, Any]:
    """What `settings.json` of a golden says."""
    path = ROOT / name / "settings.json"
    return json.loads(path.read_text()) if path.exists() else {}


def is_deployed(name: str) -> bool:
    """Whether the files of a deployment are among what a golden's spec becomes."""
    return bool(settings(name).get("deploy", False))


def snapshot(name: str, rendering: Rendering) -> dict[str, bytes]:
    """What a golden's `expected/` must hold, from a rendering that was applied."""
    found = {"findings.txt": "".join(f"{line}\n" for line in _findings(rendering)).encode()}
    if rendering.deployment is not None:
        # What Prometheus and Grafana are told has goldens of its own, and locustfiles for any model are those of loadtests/.
        texts = rendering.deployment.contents.items()
        found |= {f"deployment/{path}": content for path, content in texts if not path.is_relative_to(MONITORING) and path.name not in LOCUSTFILES}
    for what, root in (("repository", rendering.plan.root), ("artifacts", rendering.plan.artifacts_root)):
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            content = path.read_bytes()
            inner = f"{what}/{path.relative_to(root).as_posix()}"
            if _is_text(content):
                found[inner] = _VARYING.sub(b"*", content) if "varies" in settings(name) else content
            else:
                found[f"{inner}.sha256"] = b"*\n" if "varies" in settings(name) else f"{hashlib.sha256(content).hexdigest()}\n".encode()
    return found


def _findings(rendering: Rendering) -> Iterator[str]:
    for finding in rendering.findings:
        place = f"{finding.location.line}:{finding.location.column}" if finding.location else "-"
        yield f"{finding.severity.value} {finding.code} {place}"


def _is_text(content: bytes) -> bool:
    try:
        return not _CONTROL.search(content.decode())
    except UnicodeDecodeError:
        return False


def expected(name: str) -> dict[str, bytes]:
    """What is committed."""
    root = ROOT / name / "expected"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def is_made_on_target(finding: Diagnostic) -> bool:
    """Whether a finding is that a plan is missing, which is built where it is served."""
    return finding.code == "TG351" or (finding.code == "TG225" and "model.plan" in finding.message)


def all_keys() -> set[str]:
    """Every key of a spec, as `models.batching.max`; what `defaults` holds is a model's too."""
    return {".".join((*section.path, key)) for section in sections() if section.path != DEFAULTS for key in section.keys}


def used_keys(name: str) -> set[str]:
    """The keys of a golden's spec, those under `defaults` as a model's."""
    text = (ROOT / name / "spec.yaml").read_text()
    root = parse_yaml(SourceText("spec.yaml", text)).root
    data: dict[str, Any] = root.plain()
    data["models"] = [*data["models"], data.get("defaults", {})]
    return {".".join((*section.path, key)) for section in sections() if section.path != DEFAULTS for value in _at(data, section) for key in value}


def _at(data: Any, section: Section) -> Iterator[Mapping[str, Any]]:
    """The mappings of a section in plain data; short forms are none."""
    values = [data]
    for key, between in zip(section.path, section.wrap, strict=True):
        values = [value[key] for value in values if isinstance(value, dict) and key in value]
        values = [item for value in values for item in _parts(value, named=between in ("names", "numbers"))]
    yield from (value for value in values if isinstance(value, dict))


def _parts(value: Any, *, named: bool) -> list[Any]:
    if isinstance(value, list):
        return value
    return list(value.values()) if named and isinstance(value, dict) else [value]


def regenerate() -> None:
    """Write every `expected/` anew."""
    for name in NAMES:
        with tempfile.TemporaryDirectory() as scratch, plan_render(build(name, Path(scratch)), deploy=is_deployed(name)) as rendering:
            apply_rendering(rendering)
            files = snapshot(name, rendering)
        shutil.rmtree(ROOT / name / "expected", ignore_errors=True)
        for inner, content in files.items():
            path = ROOT / name / "expected" / inner
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


if __name__ == "__main__":
    regenerate()
