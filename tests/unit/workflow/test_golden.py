"""Whole specs and the repositories that they become, byte for byte."""

import goldens
import pytest

from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import Target, TargetKind
from tritongen.diagnostics import Severity
from tritongen.releases import DEFAULT_RELEASE, find_release
from tritongen.repository import Action, apply_plan
from tritongen.rules import ServerFacts
from tritongen.workflow.rendering import plan_render
from tritongen.workflow.writing import apply_rendering

LEAST = 20


@pytest.mark.parametrize("name", goldens.NAMES)
def test_a_spec_becomes_its_repository_and_a_second_run_changes_nothing(name, tmp_path):
    """`make golden` writes what is expected anew; look at the difference before you commit it."""
    spec = goldens.build(name, tmp_path)
    deploy = goldens.is_deployed(name)
    with plan_render(spec, deploy=deploy) as rendering:
        apply_rendering(rendering)
    found, expected = goldens.snapshot(name, rendering), goldens.expected(name)
    assert sorted(found) == sorted(expected)
    for inner, content in expected.items():
        assert found[inner] == content, inner
    with plan_render(spec, deploy=deploy) as again:
        pass
    assert {change.action for plan in again.plans for change in plan.changes} == {Action.KEEP}
    assert not any(plan.would_change for plan in again.plans)


@pytest.mark.parametrize("name", goldens.NAMES)
def test_the_rules_find_nothing_wrong(name, tmp_path):
    with plan_render(goldens.build(name, tmp_path)) as rendering:
        apply_plan(rendering.plan)
    said = {finding.code for finding in rendering.findings} | set(goldens.settings(name).get("beside", ()))
    release = rendering.loaded.spec.triton.release
    facts = ServerFacts(release=find_release(release) if release else DEFAULT_RELEASE, auto_complete=False)
    found = [finding.diagnostic for finding in check([Target(TargetKind.REPOSITORY, rendering.plan.root)], CheckOptions(server=facts))]
    assert [str(finding) for finding in found if finding.severity is Severity.ERROR and not goldens.is_made_on_target(finding)] == []
    assert {finding.code for finding in found if finding.severity is Severity.WARNING} <= said


def test_together_they_use_every_key():
    """A key that no golden uses is a key of which nobody sees what it becomes: add it to one under tests/golden."""
    used = set().union(*map(goldens.used_keys, goldens.NAMES))
    assert sorted(goldens.all_keys() - used) == []


def test_there_are_enough_and_no_two_models_share_a_name():
    models = [folder.name for name in goldens.NAMES for folder in (goldens.ROOT / name / "expected/repository").iterdir()]
    assert len(goldens.NAMES) >= LEAST
    assert len(models) == len(set(models))
