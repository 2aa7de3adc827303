"""Ask Triton and the rules the same question: does this model load, and if not, why?

One embedded server in explicit mode loads many small models, one request each; the rules judge the same folders. The server's core is NVIDIA's own code, so
that for core's rules its word is the truth. What only a backend can judge is judged here by the embedded backend, which proves nothing about NVIDIA's: those
verdicts (`BACKEND_RULES`) are proved by the recorded ones (tests/unit/rules/test_probes.py), and are counted apart.

Not every case can be asked: this server is of one release, has no GPU and a newer ONNX Runtime. Cases that it cannot judge are left out, each for a reason that
is counted and printed; none is changed to make it fit, but for its models' names.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from causes import explains

from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import Target, TargetKind
from tritongen.releases import find_release
from tritongen.rules import ServerFacts
from tritongen.server import ServerOptions, start
from tritongen.server.log import read as read_log

EMBEDDED = find_release("24.10")
_LOADED_TOGETHER = 24
_WORKERS = 3
DIED = "tritonserver died"
"""The reason of a model whose load has no answer, asked twice: the server is gone, or answers no more."""

BACKEND_RULES = ("TG225", "TG226", "TG241", "TG29", "TG30", "TG34", "TG35")
"""Rules, or whole families, that state what a backend does; all others state what core does."""


@dataclass(frozen=True)
class Verdict:
    """What one side says of one model: whether it loads, and why not (Triton's words; or the codes of the rules)."""

    loads: bool
    reasons: tuple[str, ...] = ()


def ask_triton(repository: Path, names: Sequence[str], *, auto_complete: bool, strict: bool = False) -> dict[str, Verdict]:
    """Load every model of a repository by name, a few at a time; `strict` is that of `tritongen serve`.

    A model that takes the whole server down with it (a warmup that fails while executing can) does not load; those that were loading beside it are asked
    again.
    """
    options = ServerOptions(http_port=0, grpc_port=0, metrics_port=0, model_control="explicit", disable_auto_complete=not auto_complete, strict=strict)
    verdicts: dict[str, Verdict] = {}
    deaths: Counter[str] = Counter()
    left, workers = list(names), min(_WORKERS, len(names))
    while left:
        asked = left if workers > 1 else left[:_LOADED_TOGETHER]
        answers, log = _ask_one_server(repository, options, asked, workers)
        verdicts |= {name: Verdict(not error, (log.get(name, error),) if error else ()) for name, error in answers.items()}
        unanswered = [name for name in asked if name not in verdicts]
        if unanswered and workers == 1:
            # Asked one after another, the first without an answer is the culprit; 24.10 also dies at random now and then, so it is asked twice.
            culprit = unanswered[0]
            deaths[culprit] += 1
            if deaths[culprit] > 1:
                verdicts[culprit] = Verdict(loads=False, reasons=(DIED, *filter(None, [log.get(culprit)])))
        workers = 1 if unanswered else _WORKERS
        left = [name for name in left if name not in verdicts]
    return verdicts


def _ask_one_server(repository: Path, options: ServerOptions, names: Sequence[str], workers: int) -> tuple[dict[str, str], dict[str, str]]:
    """Load models until all are asked or the server dies: the answers that came, and the reasons in its log."""
    died = threading.Event()
    answers: dict[str, str | None] = {}
    with start(repository, options) as server:
        url = server.http_url
        with ThreadPoolExecutor(workers) as pool:
            for first in range(0, len(names), _LOADED_TOGETHER):
                some = names[first : first + _LOADED_TOGETHER]
                answers |= zip(some, pool.map(lambda name: _ask(url, name, "load", died), some), strict=True)
                # Hundreds of loaded models are hundreds of processes; an ensemble that still needs one of these loads it again.
                list(pool.map(lambda name: _ask(url, name, "unload", died), [name for name in some if answers[name] == ""]))
        reasons = read_log(server.log()).reasons
    return {name: error for name, error in answers.items() if error is not None}, reasons


def _ask(url: str, name: str, what: str, died: threading.Event) -> str | None:
    """Load or unload one model through the API: nothing where that works, the reason where it does not, None where the server is gone, or answers no more.

    24.10 does either at random now and then, with many models at once.
    """
    if died.is_set():
        return None
    request = urllib.request.Request(f"{url}/v2/repository/models/{name}/{what}", data=b"{}", headers={"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=120):
            return ""
    except urllib.error.HTTPError as error:
        return json.loads(error.read() or b"{}").get("error", "") or f"HTTP {error.code}"
    except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError):
        died.set()
        return None


def ask_rules(repository: Path, *, auto_complete: bool) -> dict[str, Verdict]:
    """What the rules say of every model of a repository, for the server that `ask_triton` starts."""
    facts = ServerFacts(release=EMBEDDED, gpus=0, auto_complete=auto_complete)
    refused: dict[str, list[str]] = {folder.name: [] for folder in repository.iterdir() if folder.is_dir()}
    for finding in check([Target(TargetKind.REPOSITORY, repository)], CheckOptions(server=facts)):
        if finding.consequence == "refused" and finding.diagnostic.model in refused:
            refused[finding.diagnostic.model].append(finding.diagnostic.code)
    return {name: Verdict(not codes, tuple(sorted(set(codes)))) for name, codes in refused.items()}


def rename_models(tree: Path, prefix: str) -> list[str]:
    """Give every model folder of a tree (and what its configs call them) a prefix, so that many trees fit into one repository. Returns the new names."""
    names = [folder.name for folder in sorted(tree.iterdir()) if folder.is_dir()]
    for config in tree.glob("*/config.pbtxt"):
        text = config.read_bytes().decode("utf-8", "surrogateescape")
        for name in names:
            text = re.sub(rf'(?m)^(name\s*:\s*["\'])({re.escape(name)})(["\'])', rf"\g<1>{prefix}\g<2>\g<3>", text)
            text = re.sub(rf'(model_name\s*:\s*["\'])({re.escape(name)})(["\'])', rf"\g<1>{prefix}\g<2>\g<3>", text)
        config.write_bytes(text.encode("utf-8", "surrogateescape"))
    for name in names:
        (tree / name).rename(tree / f"{prefix}{name}")
    return [f"{prefix}{name}" for name in names]


def is_of_core(codes: Sequence[str]) -> bool:
    """Whether a verdict of these rules, or of none, is core's alone."""
    return not any(code.startswith(BACKEND_RULES) for code in codes)


def tally(triton: dict[str, Verdict], rules: dict[str, Verdict]) -> str:
    """How Triton's verdicts divide: what a file that does not parse, core, or a backend refuses, and what died without a word. The rules may say otherwise."""
    kinds = Counter(_kind(verdict, rules[name]) for name, verdict in triton.items())
    return f"{len(triton)} models: " + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _kind(verdict: Verdict, ours: Verdict) -> str:
    if verdict.loads:
        return "loaded"
    if verdict.reasons == (DIED,):
        return "refused by a server that died without a reason"
    if any("failed to read text proto" in reason for reason in verdict.reasons):
        return "refused as text that does not parse"
    return "refused by core" if is_of_core(ours.reasons) else "refused by the backend"


def disagreements(triton: dict[str, Verdict], rules: dict[str, Verdict]) -> Iterator[str]:
    """One line for every model of which the two say different things: whether it loads, or why it does not."""
    for name, verdict in sorted(triton.items()):
        ours = rules[name]
        if verdict.loads != ours.loads:
            yield f"{name}: Triton {'loads it' if verdict.loads else f'refuses: {verdict.reasons}'}; the rules say {ours.reasons or 'fine'}"
        elif not verdict.loads and not _is_explained(verdict, ours, rules):
            yield f"{name}: Triton refuses it for another reason: {verdict.reasons}; the rules say {ours.reasons}"


def _is_explained(verdict: Verdict, ours: Verdict, rules: dict[str, Verdict]) -> bool:
    """Whether Triton's reason is one of ours. A server that died without a word gives none: 24.10 does that at random in the clean-up after some refusals."""
    return verdict.reasons == (DIED,) or _fails_with_its_step(verdict, rules) or explains(ours.reasons, verdict.reasons)


def _fails_with_its_step(verdict: Verdict, rules: dict[str, Verdict]) -> bool:
    """Whether an ensemble is refused for a step whose model is refused itself, as the rules say of that model; the cause is then its model's."""
    step = re.search(r"depends on '([^']+)' which has no loaded version", " ".join(verdict.reasons))
    return step is not None and not rules[step[1]].loads
