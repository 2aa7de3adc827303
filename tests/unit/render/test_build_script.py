"""The script that builds plans, run under a shell with a trtexec that knows the options of each release and refuses others."""

import dataclasses
import hashlib
import os
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

from running import A10G, H100, ONNX, Site, recipe, shells

import tritongen.manifest
from tritongen.recipe import PlanFile, Profile, Span
from tritongen.repository import read_stamp
from tritongen.staleness import LoadedBy, stale

BOTH = (PlanFile("model.plan.86", "8.6", "timing.86.cache"), PlanFile("model.plan.90", "9.0", "timing.90.cache"))


def test_a_missing_plan_is_built_with_its_manifest_and_a_second_run_does_nothing(site):
    site.place(recipe())
    first = site.run()
    assert (first.returncode, first.stderr) == (0, "")
    assert "model m, version 1, model.plan: building on NVIDIA A10G, since it is not there" in first.stdout
    assert "built with TensorRT 10.13.2.6 in" in first.stdout
    before = site.plan().stat()
    assert before.st_mode & 0o777 == 0o644
    second = site.run()
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout == "model m, version 1, model.plan: good, built with TensorRT 10.13.2.6\n0 built, 0 failed\n"
    after = site.plan().stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)
    assert site.leftovers() == []


def test_python_reads_the_manifest_that_the_shell_wrote(site):
    wanted = recipe(precision="fp16", strongly_typed=False)
    site.gpus = H100
    site.environment = {"NVIDIA_TRITON_SERVER_VERSION": "25.08", "CUDA_VERSION": "13.0.1"}
    site.place(wanted)
    assert site.run().returncode == 0
    manifest = site.manifest()
    assert manifest.sha256 == hashlib.sha256(site.plan().read_bytes()).hexdigest()
    assert manifest.builder == tritongen.manifest.Builder("tensorrt", "10.13.2.6", "13.0.1", "9.0", 'NVIDIA H100, "80" GB\\HBM3', "580.65.06", "25.08", "0.1.0")
    loader = LoadedBy("25.08", compute_capability="9.0")
    assert stale(manifest, wanted, wanted.plans[0], loader) == ()
    assert stale(manifest, dataclasses.replace(wanted, tf32=False), wanted.plans[0], loader) == ("was built with TF32 on, and off is asked for",)
    # And the shell reads what Python writes.
    path = site.artifacts / "m/1/model.plan.manifest.json"
    path.write_text(tritongen.manifest.print_manifest(manifest))
    assert site.run("--check").returncode == 0


CHANGES = {
    "onnx": (lambda site: site.place(recipe(onnx=b"other"), onnx=b"other"), "the model, or how it is to be built, has changed"),
    "profiles": (lambda site: site.place(recipe(profiles=())), "the model, or how it is to be built, has changed"),
    "options": (lambda site: site.place(recipe(tf32=False)), "the model, or how it is to be built, has changed"),
    "gpu": (lambda site: setattr(site, "gpus", H100), "it was built on a GPU of compute capability 8.6, and this one has 9.0"),
    "plan": (lambda site: site.plan().write_bytes(b"another"), "it is not the file that was built"),
    "manifest": (lambda site: (site.artifacts / "m/1/model.plan.manifest.json").unlink(), "nothing says what it was built from"),
    "tensorrt": (lambda site: setattr(site, "version", "10.13.3.9"), "it was built with TensorRT 10.13.2.6, and this is 10.13.3.9"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_that_matters_makes_a_plan_stale_and_is_said(site, change):
    site.environment = {"ANY_RELEASE": "1"}
    site.place(recipe())
    assert site.run().returncode == 0
    how, words = CHANGES[change]
    how(site)
    run = site.run("--check")
    assert (run.returncode, run.stderr) == (1, "")
    assert f"would be built, since {words}\n" in run.stdout
    assert len(site.calls()) == 1


def test_what_is_stale_is_built_and_good_again(site):
    site.place(recipe())
    site.run()
    site.place(recipe(tf32=False))
    run = site.run()
    assert (run.returncode, run.stderr) == (0, "")
    assert "building on NVIDIA A10G, since the model, or how it is to be built, has changed\n" in run.stdout
    assert ["--noTF32", ""] in site.calls()[1]["arguments"]
    assert site.run("--check").returncode == 0


def test_check_says_what_would_be_built_and_builds_nothing(site):
    site.place(recipe("a"), recipe("b"))
    site.run()
    site.place(recipe("a"), recipe("b", tf32=False))
    run = site.run("--check")
    assert run.returncode == 1
    assert "model a, version 1, model.plan: good" in run.stdout
    assert "model b, version 1, model.plan: would be built, since the model, or how it is to be built, has changed\n1 to build" in run.stdout
    assert len(site.calls()) == 2


def test_the_times_of_kernels_are_used_again(site):
    site.place(recipe())
    site.run()
    site.run("--force")
    assert "5 bytes of times are used" in (site.artifacts / "m/1/model.plan.log").read_text()


@pytest.mark.parametrize("change", ["driver", "tritongen", "name of the GPU"])
def test_a_change_that_does_not_matter_builds_nothing(site, change):
    site.place(recipe())
    assert site.run().returncode == 0
    if change == "tritongen":
        site.script.write_text(site.script.read_text().replace("TRITONGEN=0.1.0", "TRITONGEN=0.2.0"))
    else:
        site.gpus = A10G.replace("580.65.06", "590.1.1") if change == "driver" else A10G.replace("A10G", "A40")
    assert site.run().stdout.endswith("0 built, 0 failed\n")


def test_force_builds_what_is_good(site):
    site.place(recipe())
    site.run()
    assert "since it was asked for" in site.run("--force").stdout
    assert len(site.calls()) == 2


def test_of_two_models_one_fails_and_the_other_is_built(site):
    site.environment = {"FAKE_FAILS": "/bad/"}
    site.place(recipe("bad"), recipe("good"))
    run = site.run()
    assert run.returncode == 1
    assert "model bad, version 1, model.plan: error: it could not be built: trtexec ended with exit code 1, and said" not in run.stdout
    assert "model bad, version 1, model.plan: error: it could not be built: trtexec ended with exit code 1, and said; the whole log is" in run.stderr
    assert "[E] Network has dynamic or shape inputs, but no optimization profile has been defined." in run.stderr
    assert run.stdout.endswith("1 built, 1 failed\n")
    assert not site.plan("bad").exists()
    assert site.manifest("bad") is None
    assert site.plan("good").exists()
    assert site.leftovers() == []
    log = (site.artifacts / "bad/1/model.plan.log").read_text()
    assert "&&&& RUNNING TensorRT.trtexec [TensorRT v101302] [b6]" in log


def test_a_plan_that_was_good_stays_where_its_successor_cannot_be_built(site):
    site.place(recipe())
    site.run()
    before = site.plan().read_bytes()
    site.environment = {"FAKE_FAILS": "/m/"}
    site.place(recipe(tf32=False))
    assert site.run().returncode == 1
    assert site.plan().read_bytes() == before
    assert site.run("--check").returncode == 1


def test_a_model_that_is_rendered_anew_meanwhile_gets_no_plan_of_the_old_one(site):
    site.place(recipe())
    tools = Path(site.variables()["TRTEXEC"])
    renders = site.root / "renders"
    config = site.repository / "m/config.pbtxt"
    renders.write_text(f'#!/bin/sh\ncase "$*" in *--onnx=*) echo "# anew" >> {shlex.quote(str(config))} ;; esac\nexec {shlex.quote(str(tools))} "$@"\n')
    renders.chmod(0o755)
    site.environment = {"TRTEXEC": str(renders)}
    done = site.run()
    assert done.returncode == 1
    assert "another render changed the model while its plan was built" in done.stderr
    assert not site.plan().exists()
    assert site.leftovers() == []
    site.environment = {}
    assert site.run().returncode == 0


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_an_interrupted_build_leaves_nothing_and_the_next_run_builds(site, sent, code):
    site.environment = {"FAKE_WAITS": "/m/"}
    site.place(recipe())
    process = subprocess.Popen(site.command(), env=site.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(site.artifacts / "m/begun")
    begun = time.monotonic()
    process.send_signal(sent)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert time.monotonic() - begun < 40  # trtexec would go on for a minute
    assert "stopped; what was being built is removed" in err
    assert not site.plan().exists()
    assert site.manifest() is None
    assert site.leftovers() == []
    site.environment = {}
    assert site.run().returncode == 0


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)


def test_a_script_that_was_killed_leaves_no_plan_and_its_rest_is_removed_a_day_later(site):
    site.environment = {"FAKE_WAITS": "/m/"}
    site.place(recipe())
    process = subprocess.Popen(site.command(), env=site.variables(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    wait_for(site.artifacts / "m/begun")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    assert not site.plan().exists()
    (rest,) = site.leftovers()
    site.environment = {}
    assert site.run().returncode == 0
    assert site.leftovers() == [rest]
    old = time.time() - 3 * 86400
    os.utime(site.plan().with_name(rest), (old, old))
    assert site.run("--force").returncode == 0
    assert site.leftovers() == []


def test_a_trtexec_that_was_killed_is_said_to_have_run_out_of_memory(site):
    site.environment = {"FAKE_KILLED": "/m/"}
    site.place(recipe())
    run = site.run()
    assert run.returncode == 1
    assert "trtexec was killed (signal 9), most often since memory ran out" in run.stderr
    assert not site.plan().exists()
    assert site.leftovers() == []


def test_a_full_disk_leaves_the_plan_that_was_there(site):
    """A limit on the size of files is what a full disk is to a program: the write fails in the middle."""
    site.place(recipe())
    site.run()
    before = site.plan().read_bytes()
    site.environment = {"FAKE_BYTES": str(1 << 20)}
    run = site.run("--force", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)))
    assert run.returncode == 1
    assert "Saving engine to file failed" in run.stderr
    assert site.plan().read_bytes() == before
    assert site.run("--check").returncode == 0
    assert site.leftovers() == []


@pytest.mark.parametrize("which", ["repository", "artifacts"])
def test_a_folder_that_cannot_be_written_is_said_and_nothing_is_changed(site, which):
    """Permissions mean nothing to root, so a user without rights runs it there."""
    with tempfile.TemporaryDirectory() as folder:
        site.root = Path(folder)
        site.place(recipe())
        (site.artifacts / "m/1").mkdir()
        locked = site.plan().parent if which == "repository" else site.artifacts / "m/1"
        for path in (site.root, *site.root.rglob("*")):
            path.chmod(0o777)
        locked.chmod(0o555)
        variables = site.variables()
        who = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        # It gets no further than its version; Python itself may lie where that user sees nothing.
        (site.root / "tools/trtexec").write_text("#!/bin/sh\necho '[TensorRT v101302] [b6]'\n")
        run = subprocess.run(site.command(), env=variables, capture_output=True, text=True, timeout=120, check=False, **who)
        assert run.returncode == 1
        owner = "belongs to user 0, and this is user 65534; run it as user 0 (deploy.user in the spec" if who else "is not writable for its own owner"
        assert f"{locked} {owner}" in run.stderr
        assert "error" in run.stderr
        assert not site.plan().exists()
        assert site.leftovers() == []
        locked.chmod(0o755)


def test_a_mount_that_is_read_only_is_told_from_a_folder_of_others(site):
    site.place(recipe())
    tools = site.root / "read-only"
    tools.mkdir()
    (tools / "mktemp").write_text('#!/bin/sh\necho "mktemp: cannot make $1: Read-only file system" >&2\nexit 1\n')
    (tools / "mktemp").chmod(0o755)
    site.environment = {"PATH": f"{tools}:{os.environ['PATH']}"}
    run = site.run()
    assert run.returncode == 1
    assert f"nothing can be written to {site.plan().parent}: {site.plan().parent} is mounted read-only; mount both" in run.stderr
    assert "belongs to" not in run.stderr


def test_a_folder_in_the_place_of_a_plan_is_said_before_anything_is_built(site):
    site.place(recipe("m"), recipe("other"))
    site.plan().mkdir(parents=True)
    for options in ((), ("--check",)):
        run = site.run(*options)
        assert run.returncode == 1
        assert f"model m, version 1, model.plan: error: {site.plan()} is a folder, and a file is to be written there" in run.stderr
    assert (list(site.plan().iterdir()), site.plan("other").is_file()) == ([], True)


def test_a_source_that_is_not_what_was_rendered_builds_nothing(site):
    site.place(recipe())
    (site.artifacts / "m/model.onnx").write_bytes(b"other")
    run = site.run()
    assert run.returncode == 1
    assert "model.onnx, which it is built from, is not the file that was rendered; render the spec again" in run.stderr
    (site.artifacts / "m/model.onnx").unlink()
    assert "cannot be read; render the spec again" in site.run().stderr


def test_what_trtexec_cannot_be_told_is_said_and_the_rest_is_built(site):
    site.place(recipe("odd", profiles=(Profile({"a,b": Span((1,), (1,), (2,))}),)), recipe("m"))
    run = site.run()
    assert run.returncode == 1
    assert "cannot be told the sizes of input 'a,b': build it on the GPU that serves it with `tritongen build`, or give" in run.stderr
    assert site.plan("m").exists()


USAGE = "Usage: build_plans.sh [--check] [--force] [REPOSITORY]; --help says more\n"


@pytest.mark.parametrize(
    ("change", "arguments", "code", "words"),
    [
        (None, ["--check", "--fast"], 2, f"error: there is no option --fast. {USAGE}"),
        (None, ["--"], 2, f"error: there is no option --. {USAGE}"),
        (None, ["a", "b"], 2, f"error: one repository at most, and 2 were given. {USAGE}"),
        (None, [""], 2, f"error: the repository is an empty text. {USAGE}"),
        (None, ["not-there"], 3, "error: the repository not-there is not there\n"),
        (
            {"TRTEXEC": "/no/trtexec"},
            [],
            3,
            "there is no trtexec at /no/trtexec, which builds the plans. Run this script in nvcr.io/nvidia/tritonserver:25.08-py3",
        ),
        ({"TRTEXEC": "true"}, [], 3, "true does not say its version"),
    ],
)
def test_wrong_use_is_said(site, change, arguments, code, words):
    site.environment = change or {}
    site.place(recipe())
    run = site.run(*arguments)
    assert run.returncode == code
    assert run.stderr.startswith("error: ")
    assert words.removeprefix("error: ") in run.stderr
    assert run.stderr.count("\n") == 1


def test_help_is_the_head_of_the_script(site):
    site.place(recipe())
    run = site.run("--help")
    assert run.returncode == 0
    assert "Usage: build_plans.sh [--check] [--force] [REPOSITORY]" in run.stdout
    assert "sha256" not in run.stdout


def test_another_repository_can_be_named_and_the_folder_can_be_moved(site):
    site.place(recipe())
    elsewhere = site.root / "-other\n"
    site.repository.rename(elsewhere)
    assert "is not there" in site.run().stderr
    run = site.run(str(elsewhere))
    assert run.returncode == 0, run.stderr
    assert (elsewhere / "m/1/model.plan").exists()
    moved = site.root / "b c.artifacts"
    site.artifacts.rename(moved)
    elsewhere.rename(site.root / "b c")
    run = subprocess.run([*site.shell, "build_plans.sh"], env=site.variables(), cwd=moved, capture_output=True, text=True, timeout=120, check=False)
    assert run.stdout.endswith("0 built, 0 failed\n")


def test_a_model_that_was_not_rendered_there_is_said(site):
    site.place(recipe())
    (site.repository / "m/config.pbtxt").unlink()
    assert "has no config.pbtxt that can be read; render the spec again" in site.run().stderr
    shutil.rmtree(site.repository / "m")
    assert "has no folder for the model; render the spec again" in site.run().stderr


ODD = "'\"$`\\;&|<>(){}[]*?!#~ \t\n\r-=%x\u00e9\u4e2d"


def odd_names():
    rng = random.Random(0)
    while True:
        yield "".join(rng.choice(ODD) for _ in range(rng.randint(1, 12)))


def test_no_name_breaks_out_of_the_script(site):
    """Models, inputs and libraries with any characters reach trtexec as they are, and nothing in them is run."""
    names = odd_names()
    traps = ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "\n touch pwned\n", "a:b=c"]
    recipes = []
    for trap in traps:
        model = f"{trap} {next(names)}".replace("/", "")
        spoken = f"{trap}{next(names)}".replace(",", "").replace("'", "")
        profile = Profile({spoken: Span((1, 2), (3, 4), (5, 6)), "y": Span((1,), (1,), (1,))})
        recipes.append(recipe(model, profiles=(profile, profile), plugins=(f"lib{trap}{next(names)}.so",)))
    site.place(*recipes)
    run = site.run(cwd=site.root)
    assert (run.returncode, run.stderr) == (0, "")
    assert not list(site.root.rglob("pwned"))
    for told, wanted in zip(site.calls(), recipes, strict=True):
        assert ["--staticPlugins", wanted.plugins[0]] in told["arguments"]
        for profile, want in zip(told["profiles"], wanted.profiles, strict=True):
            assert profile["--maxShapes"] == {name: list(span.maximum) for name, span in want.shapes.items()}
    assert {path.name for path in site.repository.iterdir()} == {each.model for each in recipes}
    again = site.run(cwd=site.root)
    assert again.stdout.endswith("0 built, 0 failed\n")


def test_a_hand_edit_of_the_script_is_known_whatever_names_are_in_it(site):
    site.place(recipe("a\r\nb"))
    text = site.script.read_bytes().decode()
    assert not read_stamp(text).edited
    assert read_stamp(text.replace("--noTF32", "--TF32").replace("0 failed", "1 failed") + "# mine\n").edited


def test_external_data_is_part_of_what_is_compared(site):
    weights = dataclasses.replace(recipe(), files={**recipe().files, Path("--"): hashlib.sha256(b"w").hexdigest()})
    site.place(weights)
    assert "--, which it is built from, cannot be read" in site.run().stderr
    (site.artifacts / "m/--").write_bytes(b"w")
    assert site.run().returncode == 0
    assert hashlib.sha256(ONNX).hexdigest().encode() in site.plan().read_bytes()


@pytest.mark.system
def test_a_critic_of_shell_scripts_finds_nothing_wrong(tmp_path):
    site = Site(tmp_path, dict(shells())["dash"])
    site.place(recipe(plans=BOTH), recipe("a'b $c", profiles=()))
    run = subprocess.run(["shellcheck", "-s", "sh", "-S", "warning", str(site.script)], capture_output=True, text=True, timeout=120, check=False)
    assert (run.returncode, run.stdout) == (0, "")
