"""`tritongen render` on a repository that is there: what it would do, what it does, what it leaves alone."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import networks
import onnx
import pytest
from crashes import by_model, tree

ROOT = Path(__file__).parents[3]
PROGRAM = "from tritongen.cli.main import main; main()"


@pytest.fixture
def two(tmp_path, tritongen):
    """A folder with a spec of two models, rendered."""
    networks.mlp(tmp_path / "m.onnx", seed=1)
    write(tmp_path, "name: a, source: m.onnx", "name: b, source: m.onnx, labels: {y: labels.txt}")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert tritongen("render", tmp_path / "spec.yaml").code == 0
    return tmp_path


def write(folder, *models):
    (folder / "spec.yaml").write_text("version: 1\ndefaults: {prove: false}\nmodels:\n" + "".join(f"  - {{{model}}}\n" for model in models))


def test_dry_run_shows_a_table_and_the_differences_of_texts(two, tritongen):
    write(two, "name: a, source: m.onnx", "name: b, source: m.onnx, labels: {y: labels.txt}, batching: {max: 3}", "name: c, source: m.onnx")
    (two / "labels.txt").write_text("cat\nmouse\n")
    before = tree(two)
    result = tritongen("render", two / "spec.yaml", "--dry-run")
    lines = [line.split() for line in result.out.splitlines()]
    size = str((two / "m.onnx").stat().st_size)
    assert lines[1] == ["action", "model", "files", "to", "copy"]
    assert ["keep", "a", "2", "-"] in [line[:3] + line[-1:] for line in lines] or lines[2][:2] == ["keep", "a"]
    assert lines[3][:2] == ["replace", "b"]
    assert lines[3][-2:] == ["0", "bytes"], "the weights are as they are"
    created = next(line for line in lines if line[:1] == ["create"])
    assert created[1] == "c"
    assert created[-2:] == [size, "bytes"]
    assert "--- a/b/config.pbtxt\n+++ b/b/config.pbtxt\n" in result.out
    assert "-max_batch_size: " in result.out
    assert "+max_batch_size: 3\n" in result.out
    assert "-dog\n+mouse" in result.out
    assert "--- /dev/null\n+++ b/c/config.pbtxt\n" in result.out
    assert "a/a/" not in result.out
    assert tree(two) == before


def test_dry_run_shows_what_is_removed_what_is_linked_and_ends_of_lines(two, tritongen):
    repository = two / "model_repository"
    config = repository / "a/config.pbtxt"
    config.write_bytes(config.read_bytes().replace(b"\n", b"\r\n"))
    (repository / "b/config.pbtxt").rename(two / "elsewhere")
    (repository / "b/config.pbtxt").symlink_to(two / "elsewhere")
    write(two, "name: a, source: m.onnx", "name: b, source: m.onnx")
    result = tritongen("render", two / "spec.yaml", "--dry-run")
    assert "a/config.pbtxt: only ends of lines differ: CRLF → LF\n" in result.out
    assert f"b/config.pbtxt: a link to {two}/elsewhere → " in result.out
    assert "overwrite it with `tritongen render --force`" in result.err
    shown = tritongen("render", two / "spec.yaml", "--dry-run", "--force").out
    assert "--- a/b/labels.txt\n+++ /dev/null\n" in shown
    assert "-cat\n-dog" in shown
    write(two, "name: a, source: m.onnx")
    (repository / "b/config.pbtxt").unlink()
    (two / "elsewhere").rename(repository / "b/config.pbtxt")
    shown = tritongen("render", two / "spec.yaml", "--dry-run", "--prune").out
    assert "--- a/b/config.pbtxt\n+++ /dev/null\n" in shown
    assert "b/1/model.onnx: " in shown
    assert " → removed, not shown" in shown


def test_dry_run_shows_scripts_and_recipes(two, tritongen):
    plans = "backend: tensorrt, instances: [{kind: gpu}]"
    write(two, f"name: a, source: m.onnx, {plans}, batching: {{max: 4}}", "name: b, source: m.onnx, labels: {y: labels.txt}")
    shown = tritongen("render", two / "spec.yaml", "--dry-run").out
    for name in ("a/recipes.json", "build_plans.sh"):
        assert f"--- /dev/null\n+++ b/model_repository.artifacts/{name}\n" in shown
    assert tritongen("render", two / "spec.yaml").code == 0
    write(two, f"name: a, source: m.onnx, {plans}, batching: {{max: 8}}", "name: b, source: m.onnx, labels: {y: labels.txt}")
    shown = tritongen("render", two / "spec.yaml", "--dry-run").out
    for name in ("a/recipes.json", "build_plans.sh"):
        assert f"--- a/model_repository.artifacts/{name}\n" in shown


def test_a_plan_that_is_left_out_is_a_warning_until_it_is_built(two, tritongen):
    line = "name: a, source: m.onnx, backend: tensorrt, instances: [{kind: gpu}], batching: "
    write(two, f"{line} {{max: 4}}")
    assert tritongen("render", two / "spec.yaml", "--prune").code == 0
    (two / "model_repository/a/1/model.plan").write_bytes(b"built before")
    networks.mlp(two / "m.onnx", seed=2)
    shown, done = (tritongen("render", two / "spec.yaml", *options) for options in (["--dry-run"], []))
    assert (shown.code, done.code) == (0, 0)
    for result in (shown, done):
        assert "TG050" in result.err
        assert "1/model.plan is not what is asked for any more, and not kept" in result.err
        assert "must not be restarted" in result.err
    assert "TG050" not in tritongen("render", two / "spec.yaml").err


def test_a_text_that_is_data_or_very_long_is_named_and_not_shown(two, tritongen):
    write(two, "name: a, source: m.onnx", "name: b, source: m.onnx, labels: {y: labels.txt}")
    (two / "labels.txt").write_bytes(b"\xff\xfe\n")
    assert "b/labels.txt: 8 bytes → 3 bytes, not shown" in tritongen("render", two / "spec.yaml", "--dry-run").out
    (two / "labels.txt").write_text("".join(f"label {number}\n" for number in range(900)))
    result = tritongen("render", two / "spec.yaml", "--dry-run")
    assert "+label 100\n" in result.out
    assert "+label 800\n" not in result.out
    assert "more lines" in result.out


def test_control_characters_in_a_diff_are_not_obeyed(two, tritongen):
    (two / "labels.txt").write_text("\x1b[2Jcat\ndog\n")
    result = tritongen("render", two / "spec.yaml", "--dry-run")
    assert "\\x1b[2Jcat" in result.out
    assert "\x1b[2J" not in result.out


def test_prune_removes_what_we_made_and_check_counts_it_only_then(two, tritongen):
    (two / "model_repository/theirs").mkdir()
    (two / "model_repository/theirs/config.pbtxt").write_text('name: "theirs"\n')
    write(two, "name: a, source: m.onnx")
    assert tritongen("render", two / "spec.yaml", "--check").code == 0
    assert tritongen("render", two / "spec.yaml", "--check", "--prune").code == 1
    kept = tritongen("render", two / "spec.yaml")
    assert "(--prune removes it)" in kept.out
    result = tritongen("render", two / "spec.yaml", "--prune")
    assert result.code == 0
    assert "removed" in result.out
    assert sorted(path.name for path in (two / "model_repository").iterdir()) == ["a", "theirs"]


def test_what_a_killed_build_left_long_ago_is_shown_before_it_goes(two, tritongen):
    left = two / "model_repository/a/1/.tritongen-build-aB3xYz"
    left.write_bytes(b"half a plan")
    assert tritongen("render", two / "spec.yaml", "--check").code == 0
    os.utime(left, (0, 0))
    for options, code in ((["--check"], 1), (["--dry-run"], 0)):
        result = tritongen("render", two / "spec.yaml", *options)
        assert result.code == code
        assert f"  remove    {left}\n            was not finished when its process was killed, a day ago or more\n" in result.out
    assert f"  removed   {left}\n" in tritongen("render", two / "spec.yaml").out
    assert not left.exists()
    assert tritongen("render", two / "spec.yaml", "--check").code == 0


def test_prune_stops_at_work_that_is_not_ours(two, tritongen):
    (two / "model_repository/b/notes.txt").write_text("mine")
    write(two, "name: a, source: m.onnx, batching: {max: 3}")
    before = tree(two)
    for options in (["--prune"], ["--prune", "--force"]):
        result = tritongen("render", two / "spec.yaml", *options)
        assert result.code == 2
        assert "would be removed" in result.err
        assert "notes.txt was not made by tritongen" in result.err
        assert tree(two) == before


def test_keep_going_writes_the_good_models_and_leaves_the_others_as_they_are(two, tritongen):
    """A bad file, a bad key, a hand edit: none of these models is touched, none is taken for an orphan."""
    networks.mlp(two / "other.onnx", seed=2)
    config = two / "model_repository/b/config.pbtxt"
    (two / "broken.onnx").write_text("<html></html>")
    config.write_text(config.read_text() + "# mine\n")
    lines = ("name: a, source: broken.onnx", "name: b, source: other.onnx", "name: c, source: m.onnx", "name: d, source: m.onnx, bathcing: {max: 3}")
    write(two, *lines)
    before = by_model(two / "model_repository")
    stopped = tritongen("render", two / "spec.yaml", "--prune")
    assert stopped.code == 2
    assert by_model(two / "model_repository") == before
    shown = tritongen("render", two / "spec.yaml", "--prune", "--keep-going", "--dry-run")
    assert shown.code == 2
    assert by_model(two / "model_repository") == before
    result = tritongen("render", two / "spec.yaml", "--prune", "--keep-going")
    assert result.code == 2
    found = by_model(two / "model_repository")
    assert sorted(found) == ["a", "b", "c"]
    assert {name: found[name] for name in "ab"} == before
    for code in ("TG025", "TG008", "TG043"):
        assert code in result.err
    assert "refused   a" in result.out
    assert "conflict  b" in result.out
    assert "created   c" in result.out
    config.write_text(config.read_text().removesuffix("# mine\n"))
    write(two, *(line for line in lines if line[6] in "bc"))
    assert tritongen("render", two / "spec.yaml", "--keep-going").code == 0


def test_keep_going_has_nothing_to_go_on_with_where_all_models_are_wrong(two, tritongen):
    write(two, "name: a, source: missing.onnx")
    before = tree(two)
    assert tritongen("render", two / "spec.yaml", "--keep-going", "--prune").code == 2
    assert tree(two) == before


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("source: m.onnx", "1 of the mistakes above belongs to no model that has a name"),
        ("name: a, source: missing.onnx", ""),
        ("name: ../a, source: m.onnx", ""),
        (f"name: {'x' * 300}, source: m.onnx", ""),
        ("name: b, source: m.onnx", ""),
    ],
)
def test_keep_going_goes_past_a_model_with_a_bad_name_or_says_why_it_cannot(two, tritongen, line, said):
    """Of two models with one name neither is written."""
    networks.mlp(two / "other.onnx", seed=2)
    write(two, "name: b, source: other.onnx", line, "name: c, source: m.onnx")
    before = by_model(two / "model_repository")
    result = tritongen("render", two / "spec.yaml", "--keep-going")
    assert result.code == 2
    assert said in result.err
    assert ("TG051" in result.err) == bool(said)
    found = by_model(two / "model_repository")
    assert ("c" in found) == (not said)
    assert found["a"] == before["a"]
    assert (found["b"] == before["b"]) == (bool(said) or line.startswith("name: b"))


@pytest.mark.parametrize("options", [[], ["--check"], ["--dry-run"], ["--prune"], ["--keep-going"]])
def test_a_config_that_may_not_be_read_is_one_finding(two, tritongen, monkeypatch, options):
    may_open = Path.open  # which all ways to read a file use

    def refused(path):
        if path.parts[-3:] == ("model_repository", "b", "config.pbtxt"):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", lambda path, *rest, **keys: refused(path) or may_open(path, *rest, **keys))
    for version in ("", ", version: auto"):
        write(two, "name: a, source: m.onnx", f"name: b, source: m.onnx, batching: {{max: 3}}{version}")
        result = tritongen("render", two / "spec.yaml", *options)
        assert result.code == 2
        assert "TG040" in result.err
        assert "Permission denied" in result.err


def test_a_bar_shows_how_far_large_files_are(tmp_path, tritongen, monkeypatch):
    """Only on a terminal, and only where there is much to copy."""
    networks.mlp(tmp_path / "m.onnx")
    write(tmp_path, "name: a, source: m.onnx")
    shown = []
    for least in (1 << 40, 1):
        ours, theirs = pty.openpty()
        monkeypatch.setattr("tritongen.cli.render._WORTH_A_BAR", least)
        with open(theirs, "w") as terminal, monkeypatch.context() as patched:  # noqa: PTH123 - a descriptor
            patched.setattr(sys, "stderr", terminal)
            assert tritongen("render", tmp_path / "spec.yaml", "-o", tmp_path / str(least)).code == 0
            terminal.write("end")
        shown.append(os.read(ours, 1 << 16).decode())
        os.close(ours)
    assert ["copying" in text for text in shown] == [False, True]


def test_what_is_written_does_not_depend_on_the_machine(tmp_path, tritongen):
    """Neither on its cores and GPUs, nor on the installed extras, the order of sets, the locale or the time zone."""
    networks.mlp(tmp_path / "m.onnx", batch=1)
    write(tmp_path, "name: a, source: m.onnx, rebatch: true, instances: {kind: auto, count: 2}, batching: {max: 8}", "name: b, source: m.onnx, warmup: auto")
    assert tritongen("render", tmp_path / "spec.yaml", "-o", tmp_path / "here").code == 0
    bare = "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); sys.modules.update(onnxruntime=None, locust=None); "
    other = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "2", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", f"{bare}{PROGRAM}", "render", str(tmp_path / "spec.yaml"), "-o", str(tmp_path / "there")]
    subprocess.run(command, env={**os.environ, **other}, check=True, timeout=120, capture_output=True)
    assert tree(tmp_path / "here") == tree(tmp_path / "there")
    assert len(tree(tmp_path / "here")) >= 4


def test_the_current_folder_can_be_the_repository_time_and_again(two, tritongen, monkeypatch):
    (two / "here").mkdir()
    monkeypatch.chdir(two / "here")
    for _ in range(2):
        assert tritongen("render", two / "spec.yaml", "-o", ".").code == 0
    assert tree(two / "here") == tree(two / "model_repository")


def test_a_home_folder_is_one_in_options_as_in_a_spec(two, tritongen, monkeypatch):
    monkeypatch.setenv("HOME", str(two / "home"))
    monkeypatch.chdir(two)
    assert tritongen("render", "spec.yaml", "--output=~/x").code == 0
    assert tree(two / "home/x") == tree(two / "model_repository")
    assert not (two / "~").exists()


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("/", "root of the filesystem"),
        ("loop", "form a loop"),
        (228 * "r", "has 228 bytes, and that of the folder beside it, in which models are staged, needs 28 more"),
        (300 * "r", "choose a name of at most 227 bytes with `tritongen render -o`"),
        (f"{300 * 'r'}/r", "File name too long"),
        ("--dry-run", "looks like an option"),
        ("", "path is empty"),
        ("~nobody-of-that-name/x", "home folder in '~nobody-of-that-name/x' cannot be determined"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_place_that_cannot_be_a_repository_is_refused_in_words(two, tritongen, monkeypatch, output, why, options):
    monkeypatch.chdir(two)
    (two / "loop").symlink_to("pool")
    (two / "pool").symlink_to("loop")
    before = tree(two)
    refused = tritongen("render", "spec.yaml", "-o", output, *options)
    assert (refused.code, refused.out) == (2, "")
    assert why in refused.err
    assert tree(two) == before


@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("w\nfoo: 1\n.bin", "control characters"),
        ("w\u2028.bin", "ends of lines"),
        ("sub/../w.bin", "'..'"),
        ("timing.cache", "a build of the model's plan writes"),
        ("timing.sm86.cache", "a build of the model's plan writes"),
        ("model.plan.log", "a build of the model's plan writes"),
        ("sub/model.plan.manifest.json", "a build of the model's plan writes"),
        (".tritongen-write-abcdefgh", "a build of the model's plan writes"),
        ("recipes.json/w.bin", "folder with the name of a file that is put there: recipes.json"),
        ("model.onnx", "the name that the model itself gets"),
    ],
)
def test_external_data_that_cannot_keep_its_name_is_refused(tmp_path, tritongen, location, why):
    model = onnx.load(networks.mlp(tmp_path / "plain.onnx"))
    (tmp_path / "sub").mkdir()
    (tmp_path / location).parent.mkdir(exist_ok=True)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location=location, size_threshold=0)
    write(tmp_path, "name: a, source: m.onnx", "name: b, source: m.onnx, backend: tensorrt, instances: [{kind: gpu}]")
    refused = tritongen("render", tmp_path / "spec.yaml")
    assert refused.code == 2
    assert refused.err.count("TG133") == 2
    assert why in refused.err
    assert not (tmp_path / "model_repository").exists()


def test_a_model_with_the_name_of_the_script_is_refused(two, tritongen):
    write(two, "name: Build_Plans.sh, source: m.onnx")
    refused = tritongen("render", two / "spec.yaml")
    assert refused.code == 2
    assert "TG013" in refused.err
    assert "script that builds plans" in refused.err


def test_the_root_of_the_filesystem_is_no_repository_to_build_for(tritongen):
    refused = tritongen("build", "/")
    assert (refused.code, refused.out) == (2, "")
    assert "TG041" in refused.err
