"""For any two specs A and B: rendering A and then B gives what B alone gives, but for orphans, which are listed, and numbers that `version: auto` counts."""

import json
import shutil

import networks
import onnx
import pytest
from crashes import by_model, tree
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from tritongen.errors import InputError
from tritongen.repository import Action, apply_plan
from tritongen.workflow.rendering import plan_render

NAMES = ("a", "b", "c")
SOURCES = ("one.onnx", "two.onnx", "split/one.onnx", "fixed.onnx")
KEYS = st.fixed_dictionaries(
    {"source": st.sampled_from(SOURCES)},
    optional={
        "batching": st.sampled_from(["auto", "none", {"max": 4}, {"max": 8, "preferred": [2, 8], "max_queue_delay": "1ms"}]),
        "warmup": st.sampled_from(["auto", "none"]),
        "labels": st.just({"y": "labels.txt"}),
        "backend": st.sampled_from(["onnxruntime", "tensorrt"]),
        "version": st.sampled_from([1, 3, "auto"]),
        "versions": st.sampled_from([{"policy": "latest", "count": 2}, {"policy": "all"}]),
        "freeze": st.just(True),
        "rebatch": st.just(True),
        "config": st.just({"metric_tags": {"team": "vision"}}),
    },
)
SPECS = st.dictionaries(st.sampled_from(NAMES), KEYS, min_size=1)
"""The models of a spec by name."""


@pytest.fixture(scope="module")
def folder(memory):
    place = memory / "specs"
    place.mkdir()
    for seed, name in enumerate(("one", "two")):
        networks.mlp(place / f"{name}.onnx", seed=seed)
    networks.mlp(place / "fixed.onnx", batch=1)
    (place / "split/data").mkdir(parents=True)
    onnx.save(onnx.load(place / "one.onnx"), place / "split/one.onnx", save_as_external_data=True, location="data/w.bin", size_threshold=0)
    (place / "labels.txt").write_text("a\nb\nc\nd\n")
    return place


def render(folder, models, root):
    """What a render of these models did; None where something is wrong with them."""
    data = {"version": 1, "defaults": {"prove": False}, "models": [{"name": name, **keys} for name, keys in sorted(models.items())]}
    (folder / "spec.yaml").write_text(json.dumps(data))
    try:
        with plan_render(folder / "spec.yaml", output=root, settle=True) as rendering:
            return apply_plan(rendering.plan).plan
    except InputError:
        return None


def unnumbered(files):
    """A model's files for `version: auto`: its newest version without its number, and the config without its stamp, which holds the numbers."""
    newest = max((int(path.split("/")[0]) for path in files if path.split("/")[0].isdecimal()), default=0)
    kept = {}
    for path, content in files.items():
        first, _, rest = path.partition("/")
        if not first.isdecimal():
            kept[path] = content.split(b"# tritongen-body:")[1] if path == "config.pbtxt" else content
        elif int(first) == newest:
            kept[f"newest/{rest}"] = content
    return kept


def canonical(files, keys):
    return unnumbered(files) if keys.get("version") == "auto" else files


def compare(folder, first, second):
    for root in ("both", "alone"):
        shutil.rmtree(folder / root, ignore_errors=True)
        shutil.rmtree(folder / f"{root}.artifacts", ignore_errors=True)
    alone = render(folder, second, folder / "alone")
    assume(alone is not None)
    event("A is right" if render(folder, first, folder / "both") is not None else "A is wrong, and writes nothing")
    before = by_model(folder / "both")
    plan = render(folder, second, folder / "both")
    found, expected = by_model(folder / "both"), by_model(folder / "alone")
    orphans = {change.name for change in plan.with_action(Action.ORPHAN)}
    assert orphans == before.keys() - second.keys()
    assert {name: found[name] for name in orphans} == {name: before[name] for name in orphans}
    assert found.keys() - orphans == expected.keys()
    for name, files in expected.items():
        assert canonical(found[name], second[name]) == canonical(files, second[name]), name
    if all(keys.get("version") != "auto" for keys in (*first.values(), *second.values())):
        beside, wanted = tree(folder / "both.artifacts"), tree(folder / "alone.artifacts")
        if with_plans := [name for name in orphans if f"{name}/recipes.json" in beside]:
            wanted.pop("build_plans.sh", None)
            script = beside.pop("build_plans.sh").decode()
            assert all(f"begin 'model {name}, " in script for name in with_plans), "they are still served, and can still be built"
        assert {path: content for path, content in beside.items() if path.split("/")[0] not in orphans} == wanted


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=SPECS, second=SPECS)
def test_two_renders_are_as_the_last_alone(folder, first, second):
    compare(folder, first, second)


@pytest.mark.fuzz
@pytest.mark.soak
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(first=SPECS, second=SPECS)
def test_many_pairs_of_specs(folder, first, second):
    compare(folder, first, second)
