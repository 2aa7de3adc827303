"""Rendering to disks of all kinds, each a real one that is mounted for the test; needs root."""

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import networks
import numpy as np
import onnx
import pytest
from crashes import by_model, tree
from onnx import TensorProto, helper, numpy_helper

pytestmark = pytest.mark.system

MIB = 1 << 20


def spec(folder: Path, *models: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text("version: 1\ndefaults: {prove: false}\nmodels:\n" + "".join(f"  - {{{model}}}\n" for model in models))
    return path


def weights(path: Path, size: int, *, seed: int = 1) -> Path:
    """A model of about `size` bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).integers(0, 255, (size // 16, 4)).astype(np.float32)
    node = helper.make_node("Gather", ["table", "x"], ["y"])
    networks.save(path, [node], [("x", TensorProto.INT64, ["N"])], [("y", TensorProto.FLOAT, ["N", 4])], [numpy_helper.from_array(table, "table")])
    return path


@contextmanager
def mounted(place: Path, *arguments: str):
    """Something mounted at `place` until the block ends."""
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", *arguments, str(place)], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True, capture_output=True)


@contextmanager
def made(image: Path, size: int, *make: str):
    """A block device with a filesystem that is made by a command."""
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run([*make, str(image)], check=True, capture_output=True)
    device = subprocess.run(["losetup", "-f", "--show", str(image)], check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "-d", device], check=True, capture_output=True)


@pytest.fixture
def small(tmp_path):
    """A disk of 4 MiB."""
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=4m", "tmpfs") as place:
        yield place


def test_what_does_not_fit_is_refused_before_anything_is_written_and_says_how_much_is_needed(tmp_path, small, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", small / "repo").code == 0
    before = tree(small)
    weights(tmp_path / "a.onnx", 6 * MIB, seed=2)
    result = tritongen("render", tmp_path / "spec.yaml", "-o", small / "repo")
    assert result.code == 2
    assert "a need 6.0 MiB, and 3.0 MiB are free" in result.err
    assert "nothing was changed" in result.err
    assert tree(small) == before


def test_a_first_render_that_does_not_fit_leaves_not_even_a_folder(tmp_path, small, tritongen):
    weights(tmp_path / "a.onnx", 6 * MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", small / "deep/repo").code == 2
    assert list(small.iterdir()) == []


PLAN = "name: a, source: a.onnx, backend: tensorrt, instances: [{kind: gpu}], batching: {max: %d}"


def test_the_source_of_a_plan_needs_room_where_the_artifacts_are(tmp_path, small, tritongen):
    """The repository has all the room that there is; what lies beside it is on a small disk."""
    weights(tmp_path / "a.onnx", MIB)
    (tmp_path / "repo.artifacts").symlink_to(small / "aside")
    (small / "aside").mkdir()
    assert tritongen("render", spec(tmp_path, PLAN % 4), "-o", tmp_path / "repo").code == 0
    (small / "filler").write_bytes(bytes(5 * MIB // 2))
    assert tritongen("render", spec(tmp_path, PLAN % 8), "-o", tmp_path / "repo").code == 0, "its source is there, and needs no room"
    (small / "filler").unlink()
    before = tree(small), by_model(tmp_path / "repo")
    weights(tmp_path / "a.onnx", 6 * MIB, seed=2)
    result = tritongen("render", tmp_path / "spec.yaml", "-o", tmp_path / "repo")
    assert result.code == 2
    assert f"{tmp_path}/repo.artifacts: error TG044: there is not enough room for what lies beside the model repository: a" in result.err
    assert "need 6.0 MiB, and 3.0 MiB are free" in result.err
    assert (tree(small), by_model(tmp_path / "repo")) == before


def test_a_disk_without_inodes_is_named(tmp_path, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64m,nr_inodes=13", "tmpfs") as disk:
        result = tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", disk / "repo")
        assert result.code == 2
        assert "no entries (inodes) left" in result.err
        assert list(disk.iterdir()) == []


def test_a_disk_that_fills_up_on_the_way_leaves_the_old_state(tmp_path, small, tritongen, monkeypatch):
    """As when another program writes at the same time: there was room when it was looked for."""
    weights(tmp_path / "a.onnx", MIB)
    weights(tmp_path / "b.onnx", MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx", "name: b, source: b.onnx"), "-o", small / "repo").code == 0
    before = tree(small)
    weights(tmp_path / "a.onnx", MIB, seed=2)
    weights(tmp_path / "b.onnx", 2 * MIB, seed=2)
    monkeypatch.setattr("tritongen.repository.room.Need.lacks_room", lambda _: False)
    result = tritongen("render", tmp_path / "spec.yaml", "-o", small / "repo")
    assert result.code == 2
    assert "No space left on device: a, b need 3.0 MiB, and 2.0 MiB are free" in result.err
    assert tree(small) == before
    assert [path.name for path in small.iterdir()] == ["repo"]


def test_a_read_only_disk_is_named_and_nothing_is_left(tmp_path, small, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", small / "repo").code == 0
    before = tree(small)
    weights(tmp_path / "a.onnx", MIB, seed=2)
    subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
    result = tritongen("render", tmp_path / "spec.yaml", "-o", small / "repo")
    assert result.code == 2
    assert "Read-only file system" in result.err
    assert "choose another place with `tritongen render -o`" in result.err
    assert tritongen("render", tmp_path / "spec.yaml", "-o", small / "repo", "--check").code == 1, "looking needs no writing"
    assert tree(small) == before


@pytest.mark.parametrize("kind", ["another filesystem", "a volume of the same one"])
def test_a_repository_that_is_a_mount_is_staged_inside_and_that_is_said(tmp_path, tritongen, kind):
    """As in a container, where the repository is a volume: a rename cannot cross its border."""
    weights(tmp_path / "a.onnx", MIB)
    (tmp_path / "volume").mkdir()
    source = ("-t", "tmpfs", "tmpfs") if kind == "another filesystem" else ("--bind", str(tmp_path / "volume"))
    with mounted(tmp_path / "models", *source) as models:
        first = tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", models)
        weights(tmp_path / "a.onnx", MIB, seed=2)
        second = tritongen("render", tmp_path / "spec.yaml", "-o", models)
        assert (first.code, second.code) == (0, 0)
        assert "staged inside it" in second.err
        assert [path.name for path in models.iterdir()] == ["a"]
        assert (models / "a/1/model.onnx").read_bytes() == (tmp_path / "a.onnx").read_bytes()
        assert tritongen("render", tmp_path / "spec.yaml", "-o", models, "--check").code == 0


def test_a_target_on_another_filesystem_than_the_spec(tmp_path, small, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    (tmp_path / "link").symlink_to(small / "repo")
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", tmp_path / "link").code == 0
    weights(tmp_path / "a.onnx", MIB, seed=2)
    result = tritongen("render", tmp_path / "spec.yaml", "-o", tmp_path / "link")
    assert (result.code, result.err) == (0, "")
    assert (tmp_path / "link").is_symlink()
    assert (small / "repo/a/1/model.onnx").read_bytes() == (tmp_path / "a.onnx").read_bytes()
    assert [path.name for path in small.iterdir()] == ["repo"]


def test_a_model_of_a_containers_image_cannot_be_swapped_and_the_message_says_what_can(tmp_path, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    with mounted(tmp_path / "layers", "-t", "tmpfs", "tmpfs") as layers:
        for name in ("image", "upper", "work"):
            (layers / name).mkdir()
        assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", layers / "image/repo").code == 0
        options = f"lowerdir={layers}/image,upperdir={layers}/upper,workdir={layers}/work,redirect_dir=off"
        with mounted(tmp_path / "container", "-t", "overlay", "-o", options, "overlay") as container:
            before = tree(container)
            weights(tmp_path / "a.onnx", MIB, seed=2)
            result = tritongen("render", tmp_path / "spec.yaml", "-o", container / "repo")
            assert result.code == 2
            assert "part of a container's image" in result.err
            assert tree(container) == before
            assert [path.name for path in container.iterdir()] == ["repo"]


def test_a_model_whose_folder_is_a_mount_is_a_conflict_of_its_own(tmp_path, tritongen):
    """The kernel would refuse the swap; the others need not wait for it."""
    weights(tmp_path / "a.onnx", MIB)
    plan = "name: a, source: a.onnx, backend: tensorrt, instances: [{kind: gpu}]"
    assert tritongen("render", spec(tmp_path, plan), "-o", tmp_path / "repo").code == 0
    before, artifacts = tree(tmp_path / "repo"), tree(tmp_path / "repo.artifacts")
    with mounted(tmp_path / "repo/a", "--bind", str(tmp_path / "repo/a")):
        assert tritongen("render", tmp_path / "spec.yaml", "-o", tmp_path / "repo", "--check").code == 0, "nothing is to be swapped"
        weights(tmp_path / "a.onnx", MIB, seed=2)
        for models, options in (
            ((plan, "name: b, source: a.onnx"), ("--keep-going",)),
            (("name: b, source: a.onnx, batching: {max: 2}",), ("--keep-going", "--prune")),
        ):
            result = tritongen("render", spec(tmp_path, *models), "-o", tmp_path / "repo", *options)
            assert result.code == 2
            assert f"{tmp_path}/repo/a is a mount of its own" in result.err
            found = tree(tmp_path / "repo")
            assert {path: content for path, content in found.items() if path.startswith("a/")} == before
            assert ("max_batch_size: 2" in found["b/config.pbtxt"].decode()) == ("--prune" in options)
            assert tree(tmp_path / "repo.artifacts") == artifacts


def test_where_the_disk_can_a_model_is_copied_by_reference(tmp_path, tritongen):
    with made(tmp_path / "image", 400 * MIB, "mkfs.xfs", "-q") as device, mounted(tmp_path / "disk", device) as disk:
        weights(disk / "a.onnx", 100 * MIB)
        os.sync()
        before = shutil.disk_usage(disk).used
        assert tritongen("render", spec(disk, "name: a, source: a.onnx"), "-o", disk / "repo").code == 0
        os.sync()
        assert shutil.disk_usage(disk).used - before < MIB
        shutil.copy(disk / "a.onnx", disk / "filler")
        with (disk / "filler").open("ab") as filler:
            filler.write(bytes(shutil.disk_usage(disk).free - 20 * MIB))
        onnx.load(disk / "a.onnx")  # it is whole
        weights(disk / "new.onnx", 16 * MIB)
        (disk / "new.onnx").replace(disk / "a.onnx")
        assert shutil.disk_usage(disk).free < 16 * MIB
        assert tritongen("render", disk / "spec.yaml", "-o", disk / "repo").code == 0, "a reference needs no room"


@pytest.fixture
def exfat(tmp_path):
    """A disk that ignores letter case, and has neither hard links nor links, nor an exchange of two folders."""
    with made(tmp_path / "image", 64 * MIB, "mkfs.exfat") as device:
        place = tmp_path / "disk"
        place.mkdir()
        subprocess.run(["mount.exfat-fuse", device, str(place)], check=True, capture_output=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", str(place)], check=True, capture_output=True)


def test_a_disk_without_links_and_exchange_is_written_with_a_word_about_it(tmp_path, exfat, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", exfat / "repo").code == 0
    (exfat / "repo/a/notes.txt").write_text("mine")
    result = tritongen("render", spec(tmp_path, "name: a, source: a.onnx, batching: {max: 3}"), "-o", exfat / "repo")
    assert result.code == 0
    assert "the model was absent for a moment" in result.err
    assert (exfat / "repo/a/notes.txt").read_text() == "mine"
    assert tritongen("render", tmp_path / "spec.yaml", "-o", exfat / "repo", "--check").code == 0
    assert [path.name for path in exfat.iterdir()] == ["repo"]


def test_a_model_whose_name_the_disk_takes_for_anothers_is_a_conflict(tmp_path, exfat, tritongen):
    weights(tmp_path / "a.onnx", MIB)
    assert tritongen("render", spec(tmp_path, "name: a, source: a.onnx"), "-o", exfat / "repo").code == 0
    before = by_model(exfat / "repo")
    result = tritongen("render", spec(tmp_path, "name: A, source: a.onnx"), "-o", exfat / "repo", "--force", "--prune")
    assert result.code == 2
    assert "this disk does not tell it from the folder 'a'" in result.err
    assert by_model(exfat / "repo") == before


def test_files_of_a_model_whose_names_the_disk_takes_for_one_are_refused(tmp_path, exfat, tritongen):
    """Two data files that differ by letter case: written one after the other, the second would be the content of both."""
    tables = [numpy_helper.from_array(np.full((4, 4), value, np.float32), name) for value, name in ((1, "upper"), (2, "lower"))]
    nodes = [helper.make_node("Add", ["x", "upper"], ["h"]), helper.make_node("Add", ["h", "lower"], ["y"])]
    networks.save(tmp_path / "m.onnx", nodes, [("x", TensorProto.FLOAT, [4, 4])], [("y", TensorProto.FLOAT, [4, 4])], tables)
    model = onnx.load(tmp_path / "m.onnx")
    for tensor, location in zip(model.graph.initializer, ("W.bin", "w.bin"), strict=True):
        (tmp_path / location).write_bytes(tensor.raw_data)
        onnx.external_data_helper.set_external_data(tensor, location, 0, len(tensor.raw_data))
        tensor.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert tritongen("render", spec(tmp_path, "name: m, source: m.onnx"), "-o", tmp_path / "repo").code == 0, "where they are two, all is well"
    result = tritongen("render", tmp_path / "spec.yaml", "-o", exfat / "repo")
    assert result.code == 2
    assert "this disk takes two names for one" in result.err
    assert list(exfat.iterdir()) == []


def test_a_mount_in_a_models_folder_and_what_is_on_it_stay(tmp_path, tritongen):
    networks.mlp(tmp_path / "m.onnx")
    tritongen("render", spec(tmp_path, "name: m, source: m.onnx, batching: {max: 4}"))
    cache, volume = tmp_path / "model_repository/m/cache", tmp_path / "volume"
    volume.mkdir()
    (volume / "mine.bin").write_bytes(b"mine")
    with mounted(cache, "--bind", str(volume)):
        spec(tmp_path, "name: m, source: m.onnx, batching: {max: 8}")
        for force in ((), ("--force",)):
            result = tritongen("render", tmp_path / "spec.yaml", *force)
            assert (result.code, f"{cache} is a mount" in result.err) == (2, True)
    assert (volume / "mine.bin").read_bytes() == b"mine"
    assert tritongen("render", tmp_path / "spec.yaml").code == 0
