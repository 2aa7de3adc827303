"""Specs of deployments, and the files that they become."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

from tritongen.load import ModelLoad
from tritongen.render.deploy import LEAD, Places, deployment
from tritongen.spec import LoadedSpec, load_spec

PLACES = Places("spec.yaml", "./model_repository", "./model_repository.artifacts", "./model_repository.cpu")
VARIABLES = {"LOCUSTFILE", "LOCUST_USERS", "LOCUST_SPAWN_RATE", "MODEL", "ROWS", "BATCH", "SHAPES", "TRITONGEN"}

MODEL = "{name: m, source: m.onnx, instances: [{kind: gpu}]}"
SPECS = {
    "cpu": "models: [{name: m, source: m.onnx, instances: [{kind: cpu}]}]",
    "one gpu": f"deploy: {{gpus: [0]}}\nmodels: [{MODEL}]",
    "four gpus": f"deploy: {{gpus: [0, 1, 2, 3]}}\nmodels: [{MODEL}]",
    "mig": f"deploy: {{gpus: [MIG-8f7c6d1e-0000-1111-2222-333344445555]}}\nmodels: [{MODEL}]",
    "all gpus": f"models: [{MODEL}]",
    "several models": "models: [{name: a, source: m.onnx}, {name: b, source: m.onnx, backend: tensorrt}, {name: c, source: m.onnx, accelerator: tensorrt}]",
    "cache": "models: [{name: m, source: m.onnx, response_cache: true}]",
    "explicit": "server: {model_control: explicit, load_models: [b]}\nmodels: [{name: a, source: m.onnx}, {name: b, source: m.onnx}]",
    "odd names": 'repository: "we\'ll ${see} {{ it }}\\""\nmodels: [{name: _a.b+c-d, source: m.onnx}]',
    "secrets by file": f"deploy: {{monitoring: {{admin_password: secrets/grafana.txt}}}}\nmodels: [{MODEL}]",
    "plans as root": 'deploy: {user: "0:0"}\nmodels: [{name: m, source: m.onnx, backend: tensorrt}, {name: n, source: m.onnx, accelerator: tensorrt}]',
    "no metrics": f"server: {{metrics: {{enabled: false}}}}\ndeploy: {{monitoring: {{admin_password: p}}}}\nmodels: [{MODEL}]",
    "open to all": f"server: {{listen: {{address: '::', http: 80}}, strict_readiness: false}}\nmodels: [{MODEL}]",
    "limits": f"triton: {{cpus: 4}}\ndeploy: {{memory: 8GiB, ulimits: {{nofile: 1024}}, restart: 'no', start_period: 90s}}\nmodels: [{MODEL}]",
}


def loaded(folder: Path, text: str) -> LoadedSpec:
    path = folder / "spec.yaml"
    path.write_text(f"version: 1\n{text}\n")
    return load_spec(path)


def texts(spec: LoadedSpec, places: Places = PLACES) -> dict[PurePosixPath, str]:
    made = deployment(spec, places, tritongen_version="9.8.7")
    return {LEAD: made.header + made.body, **made.others}


def loads_of(locustfile: str) -> tuple[ModelLoad, ...]:
    """What the user of a locustfile sends."""
    (user,) = [node for node in ast.parse(locustfile).body if isinstance(node, ast.ClassDef)]
    (calls,) = [node.value for node in user.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "models"]
    made = [(ast.literal_eval(call.args[0]), {word.arg: ast.literal_eval(word.value) for word in call.keywords}) for call in calls.elts]
    return tuple(ModelLoad(name, **words) for name, words in made)


def without_gpu(service: dict[str, Any], driver: Path = Path("/nonexistent"), version: Path = Path("/dev/null")) -> subprocess.CompletedProcess[str]:
    """Run the check for a GPU on a machine whose /proc has these files."""
    shell, flag, script = service["entrypoint"]
    script = script.replace("-e /proc/driver/nvidia/version", f"-e {driver}").replace("/proc/version", str(version))
    return subprocess.run([shell, flag, script], capture_output=True, text=True, timeout=60, check=False)
