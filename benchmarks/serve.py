"""How long the embedded server takes from the call to the first answer it could give.

Prints medians with their spread, in one run: the quickstart's text recognizer with its warmup, and many small models with auto-complete off (as rendered
specs are served) and on.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from cli import make_spec

from tritongen.server import ServerOptions, start
from tritongen.workflow import render, serve

ANY_PORTS = {"http_port": 0, "grpc_port": 0, "metrics_port": 0}
QUICKSTART = Path(__file__).parents[1] / "examples/quickstart/spec.yaml"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    report("quickstart, ready", [quickstart() for _ in range(options.repeats)])
    with tempfile.TemporaryDirectory() as folder:
        for count in (1, options.models):
            spec = make_spec(Path(folder) / str(count), count)
            root = render(spec).plan.root
            for complete in (False, True):
                server_options = ServerOptions(**ANY_PORTS, disable_auto_complete=not complete)
                label = f"{count} small models, auto-complete {'on' if complete else 'off'}, ready"
                report(label, [ready(root, server_options) for _ in range(options.repeats)])


def quickstart() -> float:
    """Seconds until the quickstart's server is ready; its rendering not counted."""
    with serve(QUICKSTART, ServerOptions(**ANY_PORTS)) as server:
        return server.ready_s


def ready(root: Path, options: ServerOptions) -> float:
    """Seconds until a server on `root` is ready."""
    with start(root, options) as server:
        return server.ready_s


def report(name: str, seconds: list[float]) -> None:
    """One line: median and spread in seconds."""
    print(f"{name:<52} median {statistics.median(seconds):6.2f} s   {min(seconds):6.2f} to {max(seconds):6.2f}   n={len(seconds)}")


if __name__ == "__main__":
    main()
