"""Random specs: what `render` writes loads on the embedded Triton with auto-complete off, and what it refuses Triton refuses too.

A refused spec is forced through: the folder is written as it would have been. Where Triton then loads it, the refusal must be a contradiction in the spec
itself (what was written is not what was asked for); these are counted apart, by code.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from agreement import Verdict, ask_triton
from goldens import is_made_on_target
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))

import spec_strategies

from tritongen.check.codes import codes
from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import Target, TargetKind
from tritongen.diagnostics import Diagnostic, Severity
from tritongen.errors import SpecError
from tritongen.releases import find_release
from tritongen.repository import apply_plan, make_plan
from tritongen.rules import RULES, Consequence, ServerFacts
from tritongen.workflow.rendering import draft_render

pytestmark = pytest.mark.server

LEAST_LOADED = 0.8
"""The share of specs that must load; else the specs prove little."""
REFUSING = {rule.code for rule in RULES if rule.consequence is Consequence.REFUSED} | {"TG144"}
"""Codes that are about what would be written, and not about the spec alone: the rules, and what ONNX Runtime says of the dims."""
_STEP = 10
"""Hypothesis makes near copies of an example one after another: one of so many is taken."""


@dataclass
class Outcome:
    """What became of one spec: why render refused it (nothing where it did not), of what it warned, and whether a folder could be written."""

    spec: str
    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    written: bool = False

    @property
    def is_doubted(self) -> bool:
        """Whether render warns that the model fails on some servers, such as those without a GPU."""
        return any(codes()[warning.code].consequence in (Consequence.REFUSED, Consequence.FAILS) for warning in self.warnings)

    @property
    def is_refusal(self) -> bool:
        """Whether render says that Triton would refuse what would be written."""
        return any(error.code in REFUSING for error in self.errors)


def some_specs(strategy: SearchStrategy, number: int, random_seed: int) -> list[str]:
    """Texts of random specs, no two alike."""
    found: dict[str, None] = {}

    @seed(random_seed)
    @settings(max_examples=number * _STEP * 5 // 4, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(data):
        found[json.dumps(data)] = None

    collect()
    return list(found)[_STEP // 2 :: _STEP][:number]


def render(text: str, name: str, folder: Path, repository: Path) -> Outcome:
    """Render one spec with its model called `name`, forced where it is refused."""
    outcome = Outcome(text)
    data = json.loads(text)
    data["models"][0]["name"] = name
    spec = folder / "spec.yaml"
    spec.write_text(json.dumps(data))
    try:
        with draft_render(spec, output=repository) as draft:
            outcome.errors = [finding for finding in draft.findings if finding.severity is Severity.ERROR]
            outcome.warnings = [finding for finding in draft.findings if finding.severity is Severity.WARNING]
            if draft.entries:
                apply_plan(make_plan(repository, draft.entries))
                outcome.written = True
    except SpecError as error:
        outcome.errors = list(error.diagnostics)
    return outcome


def disagreement(outcome: Outcome, verdict: Verdict) -> str:
    """How Triton and render differ about a spec; nothing where they agree."""
    said = [f"{error.code} {error.message}" for error in outcome.errors]
    if not said and not verdict.loads and not outcome.is_doubted:
        return f"render is content; Triton refuses it: {verdict.reasons}"
    if outcome.is_refusal and verdict.loads:
        return f"Triton loads what would be written; render says {said}"
    return ""


def compare(strategy: SearchStrategy, number: int, random_seed: int, tmp_path: Path, *, least: float) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    spec_strategies.models(tmp_path)
    outcomes = {f"m{index}": render(text, f"m{index}", tmp_path, repository) for index, text in enumerate(some_specs(strategy, number, random_seed))}
    verdicts = ask_triton(repository, [name for name, outcome in outcomes.items() if outcome.written], auto_complete=False)
    wrong = [f"{text}\n  {outcomes[name].spec}" for name, verdict in verdicts.items() if (text := disagreement(outcomes[name], verdict))]
    loaded = sum(not outcomes[name].errors and verdict.loads for name, verdict in verdicts.items())
    both = sum(outcomes[name].is_refusal and not verdict.loads for name, verdict in verdicts.items())
    apart = Counter(sorted({error.code for error in outcome.errors})[0] for outcome in outcomes.values() if outcome.errors and not outcome.is_refusal)
    print(f"seed {random_seed}: {len(outcomes)} specs; {loaded} load, {both} are refused by both; contradictions in the spec itself: {dict(apart)}")
    assert not wrong, f"seed {random_seed}\n" + "\n".join(wrong)
    assert loaded >= least * len(outcomes), [str(error) for outcome in outcomes.values() for error in outcome.errors]


def test_a_sample_of_specs(tmp_path):
    compare(spec_strategies.specs(), 25, 1, tmp_path, least=LEAST_LOADED)


def test_specs_for_gpus_pass_the_rules(tmp_path):
    """No server here can judge them; what is written is read again from disk, by the rules alone."""
    repository = tmp_path / "repository"
    repository.mkdir()
    spec_strategies.models(tmp_path)
    outcomes = {}
    for index, text in enumerate(some_specs(spec_strategies.gpu_specs(), 30, 1)):
        outcome = render(text, f"m{index}", tmp_path, repository)
        if outcome.written and outcome.errors:
            shutil.rmtree(repository / f"m{index}")
        outcomes[f"m{index}"] = outcome
    for release in {json.loads(outcome.spec)["triton"]["release"] for outcome in outcomes.values()}:
        facts = ServerFacts(release=find_release(release), auto_complete=False)
        of_release = [name for name, outcome in outcomes.items() if outcome.written and not outcome.errors and f'"{release}"' in outcome.spec]
        targets = [Target(TargetKind.MODEL, repository / name) for name in of_release]
        found = [finding.diagnostic for finding in check(targets, CheckOptions(server=facts))] if targets else []
        assert [str(finding) for finding in found if finding.severity is Severity.ERROR and not is_made_on_target(finding)] == []
    refused = Counter(outcome.errors[0].code for outcome in outcomes.values() if outcome.errors)
    print(f"{len(outcomes)} specs for GPUs; {len(outcomes) - sum(refused.values())} written, refused: {dict(refused)}")
    assert sum(refused.values()) <= (1 - LEAST_LOADED) * len(outcomes)


@pytest.mark.fuzz
@pytest.mark.parametrize("random_seed", range(2, 7))
def test_many_specs(tmp_path, random_seed):
    compare(spec_strategies.specs(), 100, random_seed, tmp_path, least=LEAST_LOADED)


@pytest.mark.fuzz
def test_many_doubtful_specs(tmp_path):
    """A key that may not fit in each: mostly refusals, forced through."""
    compare(spec_strategies.doubtful_specs(), 150, 7, tmp_path, least=0)
