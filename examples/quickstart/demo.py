"""The demo: render the quickstart's spec, serve it on a real Triton, ask it over gRPC and HTTP, compare with ONNX Runtime.

Run it with `make demo`, or `python examples/quickstart/demo.py` where tritongen[serve] and rapidocr-onnxruntime are installed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tritongen.client import Client
from tritongen.errors import TritongenError
from tritongen.proof import open_session, run
from tritongen.report.plans import format_plan
from tritongen.repository import apply_plan
from tritongen.server import EmbeddedServer, ServerOptions, start
from tritongen.spec import load_spec
from tritongen.workflow.asking import make_inputs
from tritongen.workflow.rendering import plan_render

SPEC = Path(__file__).with_name("spec.yaml")
BATCHES = (1, 3, 8)
REPEATS = 5
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    model: str
    protocol: str
    batch: int
    milliseconds: float
    difference: float


def main() -> int:
    """Run the demo; 0 where every answer equals ONNX Runtime's."""
    console = Console()
    rendering, here = (plan_render(SPEC, cpu=cpu) for cpu in (False, True))
    for each in (rendering, here):
        apply_plan(each.plan)
        print(format_plan(each.plan, done=True))
    print("Starting a real Triton (24.10) on this machine, on what was rendered for servers without a GPU ...")
    with start(here.plan.root, ServerOptions(disable_auto_complete=True, release=rendering.loaded.spec.triton.release)) as server:
        for warning in server.warnings:
            console.print(f"[yellow]note[/]: {warning}", highlight=False)
        rows = list(measure(server))
        ready_s = server.ready_s
    table = Table(title=f"ready in {ready_s:.1f} s")
    for heading in ("model", "protocol", "batch", "latency (median)", "largest relative difference to onnxruntime"):
        table.add_column(heading)
    for row in rows:
        table.add_row(row.model, row.protocol, str(row.batch), f"{row.milliseconds:.1f} ms", f"{row.difference:.1e}")
    console.print(table)
    wrong = [row for row in rows if not row.difference <= TOLERANCE]
    if wrong:
        print(f"FAILED: {len(wrong)} answers differ from onnxruntime by more than {TOLERANCE}")
        return 1
    print(f"""
Next:
  {rendering.plan.root.name}/   the repository that NVIDIA's container loads as it is; {here.plan.root.name}/ where there is no GPU
  examples/quickstart/spec.yaml   where all of it came from
  tritongen init YOUR_MODEL.onnx && tritongen serve spec.yaml
""")
    return 0


def measure(server: EmbeddedServer) -> Iterator[Row]:
    """Ask every model over both protocols, at several batch sizes, with rows that differ."""
    loaded = load_spec(SPEC)
    for index, model in enumerate(loaded.spec.models):
        session = open_session(loaded.source_path(index))
        for url in (server.grpc_url, server.http_url):
            with Client(url) as client:
                meta = client.meta(model.name)
                for batch in BATCHES:
                    inputs = make_inputs(meta, given={}, shapes={}, batch=batch, seed=batch)
                    seconds = []
                    for _ in range(REPEATS):
                        begin = time.perf_counter()
                        outputs = client.infer(model.name, inputs)
                        seconds.append(time.perf_counter() - begin)
                    expected = run(session, inputs)
                    difference = max(relative_difference(outputs[name], expected[name]) for name in expected)
                    yield Row(model.name, url.partition(":")[0], batch, statistics.median(seconds) * 1000, difference)


def relative_difference(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two arrays, relative to the largest expected value; infinite where shapes differ."""
    if got.shape != expected.shape:
        return float("inf")
    return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TritongenError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
