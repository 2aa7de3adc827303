"""Files beside a spec: written whole, known again, and never taken from somebody who changed them."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tritongen.errors import RepositoryError
from tritongen.repository import Action, apply_files, plan_files

LEAD = PurePosixPath("lead.yml")
OTHERS = {PurePosixPath("deep/er/a.txt"): "one\n", PurePosixPath("b.json"): "{}\n"}


def plan(root, body="services: {}\n", others=OTHERS, *, force=False):
    return plan_files(root, LEAD, "# header\n", body, others, force=force)


def actions(made):
    return {change.name: change.action for change in made.changes}


@pytest.fixture
def written(tmp_path):
    apply_files(plan(tmp_path))
    return tmp_path


def test_a_plan_writes_nothing_and_a_second_run_changes_nothing(tmp_path):
    made = plan(tmp_path / "new")
    assert set(actions(made).values()) == {Action.CREATE}
    assert not (tmp_path / "new").exists()
    apply_files(made)
    assert all((tmp_path / "new" / name).is_file() for name in ("lead.yml", "deep/er/a.txt", "b.json"))
    assert (tmp_path / "new/deep/er/a.txt").read_text() == "one\n"
    again = plan(tmp_path / "new")
    assert not again.would_change
    before = (tmp_path / "new/lead.yml").stat().st_mtime_ns
    apply_files(again)
    assert (tmp_path / "new/lead.yml").stat().st_mtime_ns == before
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["b.json", "deep", "lead.yml"]


def test_what_is_ours_is_replaced_and_the_rest_kept(written):
    made = plan(written, others={**OTHERS, PurePosixPath("b.json"): "[]\n"})
    assert actions(made) == {"deep/er/a.txt": Action.KEEP, "b.json": Action.REPLACE, "lead.yml": Action.REPLACE}
    apply_files(made)
    assert (written / "b.json").read_text() == "[]\n"


@pytest.mark.parametrize("name", ["lead.yml", "deep/er/a.txt", "b.json"])
def test_a_hand_edit_is_a_conflict_and_nothing_is_written(written, name):
    (written / name).write_text((written / name).read_text() + "mine\n")
    before = {path: path.read_text() for path in written.rglob("*") if path.is_file()}
    made = plan(written, "services: {a: {}}\n", {path: f"{text}more\n" for path, text in OTHERS.items()})
    assert actions(made)[name] is Action.CONFLICT
    with pytest.raises(RepositoryError) as caught:
        apply_files(made)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.location.path) == ("TG043", str(written / name))
    assert "docker-compose.override.yml" in finding.hint
    assert {path: path.read_text() for path in written.rglob("*") if path.is_file()} == before
    apply_files(plan(written, "services: {a: {}}\n", force=True))
    assert not plan(written, "services: {a: {}}\n").would_change


def test_a_checkout_with_other_line_ends_is_no_edit(written):
    for path in ("lead.yml", "b.json"):
        (written / path).write_bytes((written / path).read_bytes().replace(b"\n", b"\r\n"))
    assert actions(plan(written)) == {"deep/er/a.txt": Action.KEEP, "b.json": Action.KEEP, "lead.yml": Action.KEEP}
    assert actions(plan(written, "services: {x: {}}\n"))["lead.yml"] is Action.REPLACE


def test_somebody_elses_file_is_a_conflict(tmp_path):
    (tmp_path / "lead.yml").write_text("services: {theirs: {}}\n")
    (tmp_path / "b.json").write_text("theirs")
    made = plan(tmp_path)
    assert {name for name, action in actions(made).items() if action is Action.CONFLICT} == {"lead.yml", "b.json"}
    with pytest.raises(RepositoryError) as caught:
        apply_files(made)
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "file for a folder", "link for a folder"])
def test_a_place_that_cannot_be_taken_stays_one_with_force(tmp_path, kind):
    (tmp_path / "elsewhere").mkdir()
    if kind == "folder":
        (tmp_path / "b.json").mkdir()
    elif kind in ("link", "dangling link"):
        (tmp_path / "b.json").symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    elif kind == "file for a folder":
        (tmp_path / "deep").write_text("")
    else:
        (tmp_path / "deep").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RepositoryError) as caught:
        apply_files(plan(tmp_path, force=True))
    assert [finding.code for finding in caught.value.diagnostics] == ["TG043"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_that_is_wanted_no_more_is_said_and_left(written):
    made = plan(written, others={PurePosixPath("b.json"): "{}\n"})
    (orphan,) = made.with_action(Action.ORPHAN)
    assert orphan.name == "deep/er/a.txt"
    apply_files(made)
    assert (written / "deep/er/a.txt").exists()


def test_a_disk_that_refuses_leaves_no_pieces(tmp_path):
    """A folder that may not be written to; root may all the same, so the place of a file is a name that is too long."""
    name = PurePosixPath("x" * 250)
    with pytest.raises(RepositoryError) as caught:
        apply_files(plan(tmp_path, others={**OTHERS, name: ""}))
    assert [finding.code for finding in caught.value.diagnostics] == ["TG044"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
