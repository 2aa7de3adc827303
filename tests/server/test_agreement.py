"""The rules and Triton agree about which models load, and why not.

Three sets of models: the cases of the rules, golden configs, and the golden configs with one thing broken (a sample of them here, all of them in `make fuzz`).
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest
from agreement import ask_rules, ask_triton, disagreements, rename_models
from mutations import GOLDEN, PYTHON_MODEL, mutations

CASES = Path(__file__).parents[1] / "rules"
sys.path.insert(0, str(CASES))

import networks
from building import build_tree, server_facts

pytestmark = pytest.mark.server

SAMPLE = 120


def write_model(folder: Path, text: str) -> None:
    """One model of this set: a config with whatever its backend needs beside it."""
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(text)
    (folder / "labels.txt").write_text("a\nb\n")
    (folder / "1/model.py").write_text(PYTHON_MODEL)
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


def check_mutations(tmp_path: Path, chosen: list, *, auto_complete: bool) -> None:
    described = {}
    for number, mutation in enumerate(chosen):
        name = f"{mutation.golden}_{number}"
        write_model(tmp_path / name, mutation.text)
        described[name] = mutation
    write_steps(tmp_path)
    triton = ask_triton(tmp_path, list(described), auto_complete=auto_complete)
    rules = ask_rules(tmp_path, auto_complete=auto_complete)
    found = [f"{described[line.partition(':')[0]].what}: {line}" for line in disagreements(triton, rules)]
    refused = sum(not verdict.loads for verdict in triton.values())
    print(f"{len(chosen)} mutations: Triton refuses {refused}, loads {len(chosen) - refused}; {len(found)} disagreements")
    assert not found, "\n".join(found)
    if len(chosen) >= SAMPLE:
        assert min(refused, len(chosen) - refused) > len(chosen) // 10, "a set in which nearly everything loads, or nothing does, proves little"


def distinct() -> list:
    """All mutations, each text once."""
    return list({mutation.text: mutation for golden in GOLDEN for mutation in mutations(golden)}.values())


@pytest.mark.parametrize("auto_complete", [False, True])
def test_a_sample_of_mutations(tmp_path, auto_complete):
    check_mutations(tmp_path, random.Random(20 + auto_complete).sample(distinct(), SAMPLE // 2), auto_complete=auto_complete)


@pytest.mark.fuzz
@pytest.mark.parametrize("auto_complete", [False, True])
@pytest.mark.parametrize("golden", list(GOLDEN))
def test_every_mutation(tmp_path, golden, auto_complete):
    check_mutations(tmp_path, [mutation for mutation in distinct() if mutation.golden == golden], auto_complete=auto_complete)


def needs_gpu(case: Path) -> bool:
    """Cases about GPUs and plans: this server has neither, so that it cannot say what NVIDIA's would."""
    text = "".join(path.read_text(errors="replace") for path in case.rglob("config.pbtxt"))
    return "KIND_GPU" in text or "gpu_execution_accelerator" in text or "tensorrt" in text


def loadable_cases(*, auto_complete: bool) -> list[Path]:
    """The rules' cases that are meant for a server like this one: release 24.10 or none, no GPU."""
    chosen = []
    for case in sorted(path for code in CASES.glob("TG*") for path in code.iterdir() if path.is_dir()):
        facts = server_facts(case)
        fits = facts.release is None or facts.release.name == "24.10"
        if fits and facts.auto_complete == auto_complete and not facts.gpus and not needs_gpu(case):
            chosen.append(case)
    return chosen


@pytest.mark.parametrize("auto_complete", [False, True])
def test_the_cases_of_the_rules(tmp_path, auto_complete):
    triton_side, found, triton = tmp_path / "all", [], {}
    triton_side.mkdir()
    rules = {}
    for number, case in enumerate(loadable_cases(auto_complete=auto_complete)):
        tree = build_tree(case, tmp_path / f"case{number}")
        for name in rename_models(tree, f"{case.parent.name}_{case.name}_".replace("-", "_")):
            triton[name] = None
        rules |= ask_rules(tree, auto_complete=auto_complete)
        for folder in tree.iterdir():
            if folder.is_dir():
                folder.rename(triton_side / folder.name)
    triton = ask_triton(triton_side, list(triton), auto_complete=auto_complete)
    found = list(disagreements(triton, rules))
    refused = sum(not verdict.loads for verdict in triton.values())
    print(f"{len(triton)} models of {len(rules)}: Triton refuses {refused}; {len(found)} disagreements")
    if os.environ.get("SHOW_REASONS"):
        for name, verdict in sorted(triton.items()):
            print(name, rules[name].reasons, verdict.reasons)
    assert not found, "\n".join(found)
