"""Specs with what their servers export, for the files that Prometheus and Grafana get; `tests/monitoring/<name>/` holds what two of them must become.

`python tests/monitoring_cases.py` (`make golden`) writes those anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritongen.render.monitoring import monitoring_files
from tritongen.render.promises import DEFAULT_QUANTILES, Exported
from tritongen.spec import Spec

ROOT = Path(__file__).parent / "monitoring"
GOLDEN = ("plain", "everything")

HOSTILE = "a\"b'\\c\n$x${y}[[z]]{{w}}.*+?|(d)# :-\t\u2028\x7f\U0001f600"
"""A name that no spec can have: it means something in each of the languages."""


def model(name: str = "m", **keys: Any) -> dict[str, Any]:
    return {"name": name, "source": f"{name}.onnx", **keys}


def spec(*models: dict[str, Any], release: str = "25.08", **keys: Any) -> Spec:
    return Spec.model_validate({"version": 1, "triton": {"release": release}, "models": models or (model(),), **keys})


def renamed(made: Spec, name: str) -> Spec:
    """The spec with another name of its first model, whatever it is."""
    return made.model_copy(update={"models": (made.models[0].model_copy(update={"name": name}), *made.models[1:])})


SUMMARIES = {"quantiles": DEFAULT_QUANTILES}
PROMISED = {"p50": "10ms", "p99": "50ms", "error_rate": "0.1%"}

CASES: Mapping[str, tuple[Spec, Exported]] = {
    "plain": (spec(release="24.10"), Exported(gpus=False)),
    "everything": (
        spec(
            model("recognizer", slo=PROMISED, accelerator="tensorrt", instances={"kind": "gpu", "count": 2, "gpus": [0, 1]}),
            model("cached", response_cache=True, slo={"p99": "20ms", "error_rate": "1%"}),
        ),
        Exported(load_times=True, **SUMMARIES),
    ),
    "promises without summaries": (spec(model(slo=PROMISED)), Exported()),
    "errors only": (spec(model(slo={"error_rate": "0.000001%"})), Exported(**SUMMARIES)),
    "no error at all": (spec(model(slo={"error_rate": 0})), Exported(**SUMMARIES)),
    "every percentile": (spec(model(slo={"p50": "1us", "p90": "2ms", "p95": "3ms", "p99": "10h"})), Exported(**SUMMARIES)),
    "no counters": (spec(model(slo=PROMISED, response_cache=True), model("n")), Exported(counters=False, **SUMMARIES)),
    "all cached": (spec(model(slo=PROMISED, response_cache=True)), Exported(**SUMMARIES)),
    "own quantiles": (spec(model(slo={"p99": "1s"})), Exported(quantiles=(0.5, 0.9999, 0.00001))),
    "many": (spec(*(model(f"m{number}", slo=PROMISED) for number in range(30))), Exported(**SUMMARIES)),
    "odd names": (spec(model("1.5"), model("on"), model("a+b-c.d_e", slo=PROMISED), model("_")), Exported(**SUMMARIES)),
    "hostile": (renamed(spec(model(slo=PROMISED), model("n")), HOSTILE), Exported(**SUMMARIES)),
}


def files(name: str) -> Mapping[str, str]:
    """What a case becomes."""
    made, exported = CASES[name]
    return monitoring_files(made, exported)


def write(contents: Mapping[str, str], folder: Path) -> Path:
    """Write files below a folder; the folder."""
    for inner, text in contents.items():
        path = folder / inner
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def regenerate() -> None:
    for name in GOLDEN:
        shutil.rmtree(ROOT / name, ignore_errors=True)
        write(files(name), ROOT / name)


if __name__ == "__main__":
    regenerate()
