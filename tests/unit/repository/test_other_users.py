"""What renders of other users left, and links that they placed: root puts right no more than these could themselves."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import networks
import pytest
from crashes import state

from tests.unit.repository.test_together import killed, write_more
from tritongen.errors import RepositoryError
from tritongen.repository import apply_plan, make_plan, recover
from tritongen.repository.private import find_leftovers, make_private
from tritongen.repository.system import owner_of
from tritongen.workflow.rendering import plan_render


@pytest.fixture
def open_path(tmp_path):
    """A folder that any user may look into: those of pytest are its own user's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def pretend_root(monkeypatch):
    """Root, also where the tests run as another user, who can be nobody but himself."""
    if os.geteuid() != 0:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        for name in ("setgroups", "setegid", "seteuid"):
            monkeypatch.setattr(os, name, lambda _: None)


def half_done_by(tmp_path, owner):
    """A render that was killed when the artifacts of a model were new and its folder was not, as another user's; the next render of the same."""
    networks.mlp(tmp_path / "m.onnx")
    networks.mlp(tmp_path / "n.onnx", seed=2)
    with plan_render(write_more(tmp_path), output=tmp_path / "repo") as rendering:
        apply_plan(rendering.plan)
    dead = tmp_path / ".repo.tritongen-0123456789abcdef"
    source = tmp_path / "repo.artifacts/plan/model.onnx"
    (dead / "was/plan").mkdir(parents=True)
    (dead / "owner").write_text("")
    source.rename(dead / "was/plan/model.onnx")
    source.write_bytes((tmp_path / "n.onnx").read_bytes())
    for folder in (dead, tmp_path / "repo", tmp_path / "repo.artifacts"):
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner, -1)
    os.chown(tmp_path, owner, -1)
    return dead, write_more(tmp_path, most=8)


def test_root_puts_right_what_the_owner_of_the_repository_left(open_path, monkeypatch):
    dead, spec = half_done_by(open_path, 4321 if os.geteuid() == 0 else os.geteuid())
    pretend_root(monkeypatch)
    with plan_render(spec, output=open_path / "repo", settle=True) as rendering:
        apply_plan(rendering.plan)
    assert not dead.exists()
    assert not make_plan(open_path / "repo", rendering.entries).would_change


@pytest.mark.parametrize("link", ["repo.artifacts/plan", "repo.artifacts", ".repo.tritongen-0123456789abcdef/was/plan"])
def test_what_a_user_left_leads_root_nowhere_that_this_user_may_not_write(open_path, link):
    dead, _ = half_done_by(open_path, 4321 if os.geteuid() == 0 else os.geteuid())
    (open_path / "roots").mkdir()
    victim = open_path / "roots" / "victim"
    (open_path / link).rename(victim)
    (open_path / link).symlink_to(victim)
    folders = [open_path / "roots", victim, *(path for path in victim.rglob("*") if path.is_dir())]
    for path in folders:
        os.chown(path, os.geteuid(), -1)
        path.chmod(0o555)
    os.chown(open_path / link, dead.stat().st_uid, -1, follow_symlinks=False)
    before = state(victim)
    with contextlib.suppress(RepositoryError):  # for one's own leftovers it is an error
        recover(open_path / "repo")
    assert state(victim) == before
    for path in folders:
        path.chmod(0o755)


@pytest.mark.parametrize("link", ["repo.artifacts", "repo.artifacts/plan"])
def test_a_link_of_another_user_in_place_of_artifacts_is_a_conflict(tmp_path, monkeypatch, link):
    networks.mlp(tmp_path / "m.onnx")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    if os.geteuid() == 0:
        os.chown(tmp_path / link, 4321, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with plan_render(write_more(tmp_path), output=tmp_path / "repo") as rendering, pytest.raises(RepositoryError) as error:
        apply_plan(rendering.plan)
    assert f"{tmp_path / link} is a link that user {owner_of(tmp_path / link)} made" in str(error.value)
    assert [*(tmp_path / "elsewhere").iterdir()] == []


def test_what_another_users_render_left_is_named_where_it_looks_like_an_edit(tmp_path, monkeypatch):
    dead, spec = half_done_by(tmp_path, os.geteuid())
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with plan_render(spec, output=tmp_path / "repo", settle=True) as rendering, pytest.raises(RepositoryError, match="was changed by hand") as error:
        apply_plan(rendering.plan)
    (finding,) = error.value.diagnostics
    assert finding.hint.startswith(f"a render of user {owner_of(dead)} left {dead}, or still runs")
    assert dead.is_dir()


def test_root_trusts_nobody_who_could_not_write_the_repository(tmp_path, monkeypatch):
    """Whoever may write to a place that is everybody's must not have root put a model into a repository."""
    (tmp_path / "repo").mkdir()
    left = make_private(tmp_path, tmp_path / "repo")
    killed(left)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert find_leftovers(tmp_path, tmp_path / "repo") == [left.path]
    monkeypatch.setattr("tritongen.repository.private._private_folders", lambda *_: iter([(left.path, 4321)]))
    assert find_leftovers(tmp_path, tmp_path / "repo") == []
