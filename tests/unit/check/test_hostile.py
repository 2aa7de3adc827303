"""Repositories that nobody means well with: an answer, no traceback, nothing read that must not be, nothing executed."""

import json

import pytest
from hostile import HOSTILE, pipes

from tritongen.repository import scan


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_a_hostile_repository_gets_an_answer(make, tmp_path, tritongen):
    root = tmp_path / "repository"
    root.mkdir()
    make(root)
    result = tritongen("check", root, "--format", "json", "--release", "24.10", "--gpus", "0")
    assert (result.code in (0, 1), result.err) == (True, "")
    data = json.loads(result.out)
    assert data["summary"]["models"] >= 1
    json.dumps(data, ensure_ascii=False).encode("utf-8")


def test_each_pipe_is_named_and_none_is_waited_for(tmp_path, tritongen):
    pipes(tmp_path)
    data = json.loads(tritongen("check", tmp_path, "--select", "TG07", "--format", "json").out)
    assert [(one["code"], one["model"]) for one in data["diagnostics"]] == [("TG075", "n")]


def test_too_many_files_are_said_and_nothing_is_concluded_from_the_part_that_was_seen(add_model, tmp_path, tritongen, monkeypatch):
    folder = add_model(repository=".")
    for index in range(40):
        (folder / f"1/{index}").touch()
    monkeypatch.setattr(scan, "_MOST_ENTRIES", 20)
    data = json.loads(tritongen("check", tmp_path, "--format", "json").out)
    assert [one["code"] for one in data["diagnostics"]] == ["TG077"]


def test_links_out_of_the_repository_are_not_followed(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/model.onnx").write_bytes(b"x")
    folder = tmp_path / "repository/m"
    folder.mkdir(parents=True)
    (folder / "1").symlink_to(tmp_path / "secret")
    (folder / "2").symlink_to("/")
    entries = scan.scan_model(folder, root=tmp_path / "repository").entries
    assert {name: facts.kind for name, facts in entries.items()} == {"1": "link", "2": "link"}


def test_no_python_model_is_executed(tmp_path, tritongen):
    folder = tmp_path / "repository/m"
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text('name: "m"\nbackend: "python"\n')
    (folder / "1/model.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    tritongen("check", tmp_path / "repository")
    tritongen("check", folder)
    assert [path.name for path in tmp_path.iterdir()] == ["repository"]
