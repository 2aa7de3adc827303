"""A draft: what a spec compiles to, also where render refuses to write it."""

from pathlib import PurePosixPath

import networks
import pytest

from tritongen.diagnostics import Severity
from tritongen.errors import InputError, SpecError
from tritongen.modelconfig import parse_pbtxt
from tritongen.workflow.rendering import draft_render, plan_render

REFUSED = """\
version: 1
models:
  - name: fine
    source: m.onnx
  - name: refused
    source: m.onnx
    config: {dynamic_batching: {priority_levels: 2, default_priority_level: 3}}
  - name: absent
    source: fixed.onnx
    labels: {nothing: spec.yaml}
"""


@pytest.fixture
def spec(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    networks.mlp(tmp_path / "fixed.onnx", batch=1)
    (tmp_path / "spec.yaml").write_text(REFUSED)
    return tmp_path / "spec.yaml"


def test_a_draft_holds_what_would_be_written_and_all_that_is_wrong(spec):
    with draft_render(spec) as draft:
        entries = {entry.name: entry for entry in draft.entries}
        errors = {finding.model: finding.code for finding in draft.findings if finding.severity is Severity.ERROR}
    assert errors == {"refused": "TG270", "absent": "TG103"}
    config = parse_pbtxt(entries["refused"].files[PurePosixPath("config.pbtxt")].content.decode())
    assert config.dynamic_batching.default_priority_level == 3
    assert "fine" in entries
    assert draft.root == spec.parent / "model_repository"
    assert not draft.root.exists()


def test_a_plan_of_it_is_refused_with_the_same_findings(spec):
    with draft_render(spec) as draft, pytest.raises(InputError) as caught:
        plan_render(spec)
    assert tuple(caught.value.diagnostics) == draft.findings
    assert not list(spec.parent.glob(".model_repository*"))


def test_what_is_no_spec_has_no_draft(tmp_path):
    (tmp_path / "spec.yaml").write_text("version: 1\nmodels: []\n")
    with pytest.raises(SpecError):
        draft_render(tmp_path / "spec.yaml")
