"""What a path on the command line is taken for."""

import os
from pathlib import Path

import pytest

from tritongen.check.targets import Target, TargetKind, find_targets
from tritongen.errors import InputError


def kinds(*paths):
    return [target.kind.value for target in find_targets(paths)]


def test_a_repository_a_model_and_a_config_are_told_apart(add_model, tmp_path):
    model = add_model()
    assert kinds(tmp_path / "repository", model, model / "config.pbtxt") == ["repository", "model", "config"]


def test_a_folder_with_a_version_is_a_model(tmp_path):
    (tmp_path / "m/1").mkdir(parents=True)
    assert kinds(tmp_path / "m") == ["model"]


def test_a_config_beside_models_makes_no_model_of_a_repository(add_model, tmp_path):
    add_model()
    (tmp_path / "repository/config.pbtxt").write_text('name: "repository"')
    assert kinds(tmp_path / "repository") == ["repository"]


def test_models_named_by_numbers_are_models(add_model, tmp_path):
    add_model("7")
    add_model("8", "")
    assert kinds(tmp_path / "repository") == ["repository"]


def test_a_folder_without_models_is_said_with_and_without_a_path(tmp_path, monkeypatch):
    (tmp_path / "model_repository").mkdir()
    (tmp_path / "model_repository/model.onnx").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    for paths in ([], [Path("model_repository")], [tmp_path / "model_repository"]):
        with pytest.raises(InputError, match="holds no model") as caught:
            find_targets(paths)
        assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["TG070"]
    monkeypatch.chdir("model_repository")
    with pytest.raises(InputError, match="no model repository here"):
        find_targets([])


def test_a_link_that_leads_nowhere_is_something_to_check(tmp_path):
    (tmp_path / "m").symlink_to(tmp_path / "missing")
    assert kinds(tmp_path) == ["repository"]


def test_one_place_given_twice_is_one_target(add_model, tmp_path, monkeypatch):
    add_model()
    monkeypatch.chdir(tmp_path)
    assert find_targets([Path("repository"), tmp_path / "repository", Path("./repository/")]) == (Target(TargetKind.REPOSITORY, Path("repository")),)


def test_without_a_path_it_is_model_repository_or_here(add_model, tmp_path, monkeypatch):
    add_model(repository="model_repository")
    monkeypatch.chdir(tmp_path)
    assert find_targets([]) == (Target(TargetKind.REPOSITORY, Path("model_repository")),)
    monkeypatch.chdir(tmp_path / "model_repository")
    assert find_targets([]) == (Target(TargetKind.REPOSITORY, Path()),)
    monkeypatch.chdir(tmp_path / "model_repository/m")
    assert find_targets([]) == (Target(TargetKind.MODEL, Path()),)


def test_without_a_path_a_folder_without_models_is_said(tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no model repository here"):
        find_targets([])


def test_every_wrong_path_is_said_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.pbtxt")
    (tmp_path / "spec.yaml").write_text("version: 1")
    (tmp_path / "m.onnx").write_bytes(b"x")
    paths = [tmp_path / name for name in ("pipe.pbtxt", "spec.yaml", "m.onnx", "missing", "m.onnx/below", "nul\0name")]
    with pytest.raises(InputError) as caught:
        find_targets(paths)
    found = {Path(str(diagnostic.location.path)).name: diagnostic for diagnostic in caught.value.diagnostics}
    assert {diagnostic.code for diagnostic in found.values()} == {"TG070"}
    assert len(found) == len(paths)
    assert "pipe" in found["pipe.pbtxt"].message
    assert "tritongen render --dry-run" in found["spec.yaml"].hint
    assert "no such file" in found["missing"].message
