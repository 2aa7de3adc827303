"""What a render says at `triton.release`, and the table that `tritongen releases` prints."""

import json
from itertools import pairwise

import networks
import pytest

from tritongen.diagnostics import Severity
from tritongen.known_issues import ISSUES, find_issue, issues_of
from tritongen.releases import DEFAULT_RELEASE, RELEASES, find_release, order_of
from tritongen.workflow.rendering import plan_render


def said(folder, release, *models):
    """Code → finding at the release of a spec with these models, given as the rest of their mappings."""
    networks.mlp(folder / "m.onnx")
    lines = "".join(f"  - {{name: m{index}, source: m.onnx{', ' if model else ''}{model}}}\n" for index, model in enumerate(models or ("",)))
    (folder / "spec.yaml").write_text(f'version: 1\ntriton: {{release: "{release}"}}\nmodels:\n{lines}')
    found = plan_render(folder / "spec.yaml", prove_limit_bytes=0).findings
    return {finding.code: finding for finding in found if finding.location.line == 2}


@pytest.mark.parametrize("release", ["24.10", "25.06"])
def test_published_holes_are_said(tmp_path, release):
    finding = said(tmp_path, release)["TG410"]
    assert finding.severity is Severity.ADVICE
    assert "CVE-2025-23319" in finding.message
    assert release in finding.message
    assert "25.07 or newer" in finding.hint


@pytest.mark.parametrize("release", ["25.08", "26.08"])
def test_nothing_is_said_of_a_release_without_news(tmp_path, release):
    assert said(tmp_path, release) == {}


def test_a_plan_belongs_to_one_image(tmp_path):
    finding = said(tmp_path, "25.08", "backend: tensorrt", "", "backend: tensorrt")["TG411"]
    assert "'m0', 'm2'" in finding.message
    assert "10.11.0.33, not 10.13.2.6" in finding.message
    assert "nvcr.io/nvidia/tritonserver:25.08-py3" in finding.hint


@pytest.mark.parametrize("release", ["25.03", "24.08", "24.09", "24.11", "24.12"])
def test_a_plan_is_at_home_in_both_images_where_these_are_equal_as_far_as_they_are_stated(tmp_path, release):
    assert "TG411" not in said(tmp_path, release, "backend: tensorrt")


@pytest.mark.parametrize(("release", "words"), [("25.07", "10.10.0.31, not 10.11.0.33 or newer"), ("26.05", "10.14.1.48, not 10.16.1 or newer")])
def test_what_is_only_known_to_be_newer_is_said_so(tmp_path, release, words):
    assert words in said(tmp_path, release, "backend: tensorrt")["TG411"].message


def test_no_release_has_an_older_tensorrt_than_one_before():
    """What is said of releases whose own version is not known rests on it."""
    known = [tuple(map(int, release.tensorrt.split("."))) for release in RELEASES if release.tensorrt]
    assert all(one[:3] <= other[:3] for one, other in pairwise(known))


def test_what_is_not_known_and_matters_is_named(tmp_path):
    found = said(tmp_path, "26.01", "accelerator: tensorrt")["TG412"]
    assert "which TensorRT release 26.01 has (10.14.1.48 or newer) is not known" in found.message
    assert "what depends on the exact version was not checked for 'm0'" in found.message
    assert "ONNX Runtime" in said(tmp_path, "26.09")["TG412"].message
    assert "TG412" not in said(tmp_path, "26.01")


def test_a_field_is_said_at_its_own_place(tmp_path):
    """Where the field is used, and not where it is not."""
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text(
        'version: 1\ntriton: {release: "25.10"}\nmodels:\n  - {name: m, source: m.onnx, config: {dynamic_batching: {preserve_ordering: true}}}\n'
    )
    found = {finding.code: finding for finding in plan_render(tmp_path / "spec.yaml", prove_limit_bytes=0).findings}
    assert found["TG273"].message == "in release 25.10 preserve_ordering is not kept: responses may overtake each other"
    assert "TG273" not in said(tmp_path, "25.10")


def test_the_text_has_a_row_for_each_release_and_every_issue(tritongen):
    done = tritongen("releases")
    assert done.code == 0
    rows = {line.split()[0]: line for line in done.out.splitlines() if line[:2].isdigit() and ":" not in line}
    assert list(rows) == [release.name for release in RELEASES]
    assert "10.13.2.6" in rows["25.08"]
    assert "10.11.0.33" in rows["25.08"]
    assert rows["26.10"].split() == ["26.10", "unknown", "unknown", "unknown", "unknown", "13.4.3.001", "unknown"]
    for issue in ISSUES:
        assert issue.text in done.out
        assert issue.advice in done.out
    assert f"rendered for {DEFAULT_RELEASE.name}." in done.out


def test_the_json_has_null_for_what_is_not_known(tritongen):
    data = json.loads(tritongen("releases", "26.10", "24.02", "--format", "json").out)
    assert [row["release"] for row in data["releases"]] == ["24.02", "26.10"]
    assert data["releases"][1]["tensorrt"] is None
    assert "no-onnxruntime" in data["releases"][0]["issues"]
    assert {name for row in data["releases"] for name in row["issues"]} == {issue["name"] for issue in data["issues"]}


def test_releases_that_are_not_known_are_all_named(tritongen):
    done = tritongen("releases", "25.5", "24.10", "99.01")
    assert done.code == 2
    assert "'25.5'" in done.err
    assert "'99.01'" in done.err
    assert "24.01 to 26.10" in done.err


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.name)
def test_an_issue_is_of_some_releases_and_not_of_all(issue):
    having = [release for release in RELEASES if issue.holds_in(release)]
    assert having
    assert len(having) < len(RELEASES)
    assert issue.first in (None, having[0].name)
    assert issue.last in (None, having[-1].name)
    assert issue.source
    assert find_issue(issue.name) is issue


def test_spans_in_words():
    spans = {issue.name: issue.span for issue in ISSUES}
    assert spans["order-not-kept"] == "25.09 to 26.07"
    assert spans["no-onnxruntime"] == "24.02"
    assert spans["holes-of-august-2025"] == "up to 25.06"
    assert spans["client-shared-memory-off"] == "from 26.04"


def test_releases_ascend_and_the_images_of_trtllm_are_never_newer():
    assert [release.order for release in RELEASES] == sorted({release.order for release in RELEASES})
    numbers = [(release.trtllm_tensorrt, release.tensorrt) for release in RELEASES if release.trtllm_tensorrt and release.tensorrt]
    assert all(tuple(map(int, older.split(".")))[:3] <= tuple(map(int, (*newer.split("."), "0")))[:3] for older, newer in numbers)
    assert issues_of(find_release("25.10")) != issues_of(find_release("26.08"))
    assert order_of("25.10") > order_of("25.09")
