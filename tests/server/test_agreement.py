"""The rules and Triton agree about which models load, and why not.

Three sets of models: the cases of the rules (all of them without auto-complete in `make test-system`, a sample with it in `make test`, all in `make fuzz`),
golden configs, and the golden configs with one thing broken (a sample of them in `make test`, all of them in `make fuzz`).
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
import tritonclient.http as httpclient
from agreement import EMBEDDED, Verdict, ask_rules, ask_triton, disagreements, rename_models, tally
from causes import CAUSES, NOT_SHOWN
from mutations import GOLDEN, PYTHON_MODEL, mutations

CASES = Path(__file__).parents[1] / "rules"
sys.path.insert(0, str(CASES))

import networks
from building import build_tree, not_live, server_facts

from tritongen.modelconfig.reading import read_config
from tritongen.rules import RULES, Consequence
from tritongen.server import start

pytestmark = pytest.mark.server

SAMPLED_MUTATIONS = {False: 40, True: 20}
"""By whether auto-complete is on: that takes Triton a second more for each model."""
SAMPLED_CASES = (30, 8)
"""Bad and good ones. A case has one model or a few; one that loads takes most of a second, since it starts a process for each instance."""


def test_every_rule_that_says_refused_has_its_cause():
    """A rule without one would be held against nothing."""
    assert {rule.code for rule in RULES if rule.consequence is Consequence.REFUSED} <= {*CAUSES, *NOT_SHOWN}
    assert not CAUSES.keys() & NOT_SHOWN.keys()


def write_model(folder: Path, text: str) -> None:
    """One model of this set: a config with whatever its backend needs beside it."""
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(text)
    (folder / "labels.txt").write_text("a\nb\n")
    (folder / "1/model.py").write_text(PYTHON_MODEL)
    for part, name, numbers in (("warmup", "x", 8), ("initial_state", "start", 2)):
        (folder / part).mkdir()
        (folder / part / name).write_bytes(bytes(4 * numbers))
    if "model.onnx" in text:
        networks.mlp(folder / "1/model.onnx")


def write_steps(repository: Path) -> None:
    """The models that the golden ensemble is made of."""
    for name, size in (("STEP_one", 8), ("STEP_two", 4)):
        tensors = f'input {{ name: "x" data_type: TYPE_FP32 dims: [{size}] }}\noutput {{ name: "y" data_type: TYPE_FP32 dims: [4] }}\n'
        write_model(repository / name, f'backend: "python"\nmax_batch_size: 8\n{tensors}')


def test_golden_configs_load(tmp_path):
    """Else the mutations below would prove nothing."""
    for golden, text in GOLDEN.items():
        write_model(tmp_path / golden, text)
    write_steps(tmp_path)
    triton = ask_triton(tmp_path, list(GOLDEN), auto_complete=False)
    assert {name: verdict.reasons for name, verdict in triton.items() if not verdict.loads} == {}
    rules = ask_rules(tmp_path, auto_complete=False)
    assert list(disagreements(triton, rules)) == []


def not_asked(mutation) -> str:
    """Why this server cannot be asked about a mutation; nothing where it can."""
    config = read_config(mutation.text.encode(), "").config
    if any(group.kind == group.KIND_GPU for group in config.instance_group):
        return "the server here moves GPU instances to the CPU"
    if config.backend == "python" and config.default_model_filename not in ("", "model.py"):
        return "the load of a python model without its file never ends in 24.10"
    return "a backend of that name may be installed where it is meant for" if config.backend.endswith("_") else ""


def show_reasons(triton: dict[str, Verdict], rules: dict[str, Verdict]) -> None:
    """For whoever wants to see more than how many there are."""
    if os.environ.get("SHOW_REASONS"):
        for name, verdict in sorted(triton.items()):
            print(name, rules[name].reasons, verdict.reasons)


def check_mutations(tmp_path: Path, mutated: list, *, auto_complete: bool) -> None:
    described = {}
    left_aside = Counter(filter(None, map(not_asked, mutated)))
    chosen = [mutation for mutation in mutated if not not_asked(mutation)]
    for number, mutation in enumerate(chosen):
        name = f"{mutation.golden}_{number}"
        write_model(tmp_path / name, mutation.text)
        described[name] = mutation
    write_steps(tmp_path)
    triton = ask_triton(tmp_path, list(described), auto_complete=auto_complete)
    rules = ask_rules(tmp_path, auto_complete=auto_complete)
    found = [f"{described[line.partition(':')[0]].what}: {line}" for line in disagreements(triton, rules)]
    refused = sum(not verdict.loads for verdict in triton.values())
    print(f"{tally(triton, rules)}; {len(found)} disagreements about that or about the reason; not asked: {dict(left_aside)}")
    show_reasons(triton, rules)
    assert not found, "\n".join(found)
    # A mutated ensemble seldom loads; of a mixed set, many do.
    least = len(chosen) // 10 if len({mutation.golden for mutation in chosen}) > 1 else 0
    assert min(refused, len(chosen) - refused) > least, "a set in which nearly everything loads, or nothing does, proves little"


def distinct() -> list:
    """All mutations, each text once."""
    return list({mutation.text: mutation for golden in GOLDEN for mutation in mutations(golden)}.values())


@pytest.mark.parametrize("auto_complete", [False, True])
def test_a_sample_of_mutations(tmp_path, auto_complete):
    check_mutations(tmp_path, random.Random(20 + auto_complete).sample(distinct(), SAMPLED_MUTATIONS[auto_complete]), auto_complete=auto_complete)


@pytest.mark.fuzz
@pytest.mark.parametrize("auto_complete", [False, True])
@pytest.mark.parametrize("golden", list(GOLDEN))
def test_every_mutation(tmp_path, golden, auto_complete):
    check_mutations(tmp_path, [mutation for mutation in distinct() if mutation.golden == golden], auto_complete=auto_complete)


def test_a_python_model_without_its_file(tmp_path, options):
    """Its load never ends in 24.10, so that it is asked alone, and for a few seconds only."""
    build_tree(CASES / "TG225/bad-python", tmp_path)
    with start(tmp_path, options(model_control="explicit")) as server:
        client = httpclient.InferenceServerClient(server.http_url.removeprefix("http://"), network_timeout=6)
        with pytest.raises(TimeoutError):
            client.load_model("m")
        assert not client.is_model_ready("m")
        assert "Python model file not found" in server.log()
    assert ask_rules(tmp_path, auto_complete=False)["m"].reasons == ("TG225",)


def left_out(case: Path) -> str:
    """Why this server cannot be asked about a case; nothing where it can."""
    facts = server_facts(case)
    text = "".join(path.read_text(errors="replace") for path in case.rglob("config.pbtxt"))
    if reason := not_live(case):
        return reason
    if facts.release not in (None, EMBEDDED):
        return "the case is about another release"
    if facts.gpus or "KIND_GPU" in text or "gpu_execution_accelerator" in text:
        return "the case is about GPUs, and there is none"
    return "the case is about TensorRT plans, which need a GPU" if "tensorrt" in text else ""


def all_cases() -> list[Path]:
    return sorted(path for code in CASES.glob("TG*") for path in code.iterdir() if path.is_dir())


def check_cases(tmp_path: Path, cases: list[Path], *, auto_complete: bool) -> None:
    together, rules = tmp_path / "all", {}
    together.mkdir()
    for number, case in enumerate(cases):
        tree = build_tree(case, tmp_path / f"case{number}")
        rename_models(tree, f"{case.parent.name}_{case.name}_".replace("-", "_"))
        rules |= ask_rules(tree, auto_complete=auto_complete)
        for folder in tree.iterdir():
            if folder.is_dir():
                folder.rename(together / folder.name)
    triton = ask_triton(together, list(rules), auto_complete=auto_complete)
    found = list(disagreements(triton, rules))
    print(f"{len(cases)} cases, none changed, {tally(triton, rules)}; {len(found)} disagreements")
    print(dict(Counter(reason for case in all_cases() if (reason := left_out(case)))), "left out")
    show_reasons(triton, rules)
    assert not found, "\n".join(found)


def test_a_sample_of_the_cases(tmp_path):
    able = [case for case in all_cases() if not left_out(case)]
    chance = random.Random(31)
    chosen = [case for prefix, count in zip(("bad", "good"), SAMPLED_CASES, strict=True) for case in chance.sample(_named(able, prefix), count)]
    check_cases(tmp_path, chosen, auto_complete=True)


def _named(cases: list[Path], prefix: str) -> list[Path]:
    return [case for case in cases if case.name.startswith(prefix)]


@pytest.mark.parametrize(
    "auto_complete", [pytest.param(False, marks=[pytest.mark.system, pytest.mark.timeout(1500)]), pytest.param(True, marks=pytest.mark.fuzz)]
)
def test_all_cases(tmp_path, auto_complete):
    check_cases(tmp_path, [case for case in all_cases() if not left_out(case)], auto_complete=auto_complete)
