"""Random repositories through the whole command: an answer each time, no traceback, no hostile file above two seconds. `make fuzz` runs it for minutes."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import time
from pathlib import Path

import pytest
from check_models import CONFIG, MLP
from hostile import HOSTILE, ODD_NAMES

sys.path.insert(0, str(Path(__file__).parents[1] / "rules"))

from building import build_onnx

from tritongen.check.codes import codes
from tritongen.cli.main import run
from tritongen.rules import RULES

LIMIT_S = 2.0
ONNX = build_onnx(MLP)
CONFIGS = [
    CONFIG.format(name="m").encode(),
    *(text.encode() for rule in RULES for text in (rule.bad, rule.good)),
    *(code.bad.encode() for code in codes().values()),
]
WORDS = [
    *b"input output dims name [ ] { } : , ; ' -1 0 TYPE_FP32 TYPE_STRING max_batch_size reshape shape dynamic_batching preferred_batch_size".split(),
    *b"sequence_batching ensemble_scheduling step model_name input_map output_map key value instance_group KIND_GPU count gpus parameters".split(),
    *b"string_value version_policy specific versions platform backend default_model_filename model_warmup inputs batch_size random_data true".split(),
    *b"optimization execution_accelerators gpu_execution_accelerator label_filename response_cache enable control_input state initial_state".split(),
    *(b'"m"', b'"ensemble"', b'"../x"', b'"python"', b"9" * 30, b"# tritongen: ignore[TG2]\n", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf"),
]


def mutated(text: bytes, rng: random.Random) -> bytes:
    """A text with a few pieces dropped, doubled, exchanged or replaced."""
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randrange(len(text) + 1), rng.choice((1, 1, 2, 5, 20, 80))
        piece = text[at : at + length]
        new = rng.choice((b"", piece * 2, rng.choice(WORDS), bytes(rng.randrange(256) for _ in range(length)), piece[::-1], b" " + rng.choice(WORDS) + b" "))
        text = text[:at] + new + text[at + length :]
    return text


def random_tree(root: Path, rng: random.Random) -> None:
    """A few models: configs that are mutated, soups of words or bytes; versions and files of every kind."""
    for index in range(rng.randint(1, 4)):
        raw = rng.choice((b"m", b"e", b"model%d" % index, *ODD_NAMES)) + b"%d" % index
        folder = root / raw[-250:].decode("utf-8", "surrogateescape")
        folder.mkdir()
        for version in rng.sample(("1", "2", "01", "v1", "-1", "9" * 30, "warmup", "configs", ".git"), rng.randint(0, 3)):
            (folder / version).mkdir()
            if rng.random() < 0.7:
                name = rng.choice(("model.onnx", "model.plan", "model.py", "model.pt", "x"))
                (folder / version / name).write_bytes(rng.choice((ONNX, mutated(ONNX, rng), b"", b"ftrt" + ONNX)))
        config = rng.choice(
            (mutated(rng.choice(CONFIGS), rng), b" ".join(rng.choices(WORDS, k=rng.randint(1, 200))), bytes(rng.randrange(256) for _ in range(200)))
        )
        if rng.random() < 0.9:
            (folder / "config.pbtxt").write_bytes(config)


def answer(*arguments: object) -> tuple[int, str, str, float]:
    """Exit code, stdout, stderr and CPU seconds of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    begin = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue(), time.process_time() - begin


def check_random_trees(folder: Path, seeds: range, limit_s: float = float("inf")) -> None:
    """Every kind of report for every tree, and `--fix` leaves nothing that it could still mend."""
    for seed in seeds:
        rng = random.Random(seed)
        root = folder / str(seed)
        root.mkdir()
        random_tree(root, rng)
        server = rng.choice(((), ("--gpus", 0), ("--gpus", 2, "--release", "24.10"), ("--release", "26.06", "--disable-auto-complete-config")))
        for form in ("text", "sarif", "github"):
            code, out, err, seconds = answer("check", root, *server, "--format", form)
            assert (code in (0, 1), err, seconds < limit_s) == (True, "", True), f"seed {seed}"
            out.encode("utf-8")
        before = json.loads(answer("check", root, *server, "--format", "json", "--ignore", "TG074")[1])
        fixed = json.loads(answer("check", root, *server, "--format", "json", "--ignore", "TG074", "--fix")[1])
        after = json.loads(answer("check", root, *server, "--format", "json", "--ignore", "TG074")[1])
        assert after["diagnostics"] == fixed["diagnostics"], f"seed {seed}: what --fix says is left is what is left"
        # Not the other way round: a fix that would show more mistakes than it mends is not made.
        assert before["summary"]["fixable"] > 0 or fixed["summary"]["fixed"] == 0, f"seed {seed}"
        assert json.loads(answer("check", root, *server, "--format", "json", "--fix")[1])["summary"]["fixed"] == 0, f"seed {seed}: --fix is done in one run"


def test_random_trees_get_an_answer(tmp_path):
    check_random_trees(tmp_path, range(40))


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(1_000, 21_000, 1_000))
def test_many_random_trees_get_an_answer(tmp_path, start):
    check_random_trees(tmp_path, range(start, start + 250), LIMIT_S)


@pytest.mark.fuzz
@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_a_hostile_repository_takes_two_seconds_at_most(make, tmp_path):
    make(tmp_path)
    answer("check", "--explain", "TG229")  # imports are not what is measured
    seconds = min(answer("check", tmp_path, "--release", "24.10", "--gpus", "0")[3] for _ in range(2))
    assert seconds < LIMIT_S * len(list(tmp_path.iterdir()))
