"""How many copies of a model can run at once, and where, by `instances` or by the groups of an overlay."""

import json

import pytest

from tritongen.render.placement import placed_groups
from tritongen.spec import ModelSpec


def placed(**keys):
    return placed_groups(ModelSpec.model_validate({"name": "m", "source": "m.onnx", **keys}))


@pytest.mark.parametrize(
    ("instances", "where"),
    [
        ([{}], [("auto", 1)]),
        ([{"count": 3}], [("auto", 3)]),
        ([{"kind": "gpu", "count": 2, "gpus": [0, 3]}, {"kind": "cpu"}], [("gpu", 4), ("cpu", 1)]),
    ],
    ids=json.dumps,
)
def test_the_groups_of_the_spec(instances, where):
    assert [(group.kind, group.copies) for group in placed(instances=instances)] == where


@pytest.mark.parametrize(
    ("groups", "where"),
    [
        ([{"kind": "KIND_CPU"}], [("cpu", 2)]),
        ([{}], [("auto", 2)]),
        ([{"kind": "KIND_GPU", "gpus": [1, 2]}], [("gpu", 2)]),
        ([{"kind": "KIND_MODEL", "count": -1}], [("model", 1)]),
        ([{"kind": "KIND_CPU", "count": 4, "passive": True}, {"kind": "KIND_CPU", "count": 1}], [("cpu", 0), ("cpu", 1)]),
        ([], [("auto", 2)]),
        ("nonsense", [("auto", 2)]),
    ],
    ids=json.dumps,
)
def test_the_groups_of_an_overlay_take_their_place(groups, where):
    found = placed(instances=[{"kind": "gpu"}], config={"instance_group": groups})
    assert [(group.kind, group.copies) for group in found] == where
    assert {group.key[:2] for group in found} == {("config", "instance_group")}


@pytest.mark.parametrize(("keys", "kind"), [({"accelerator": "cuda"}, "gpu"), ({"backend": "tensorrt"}, "gpu"), ({"accelerator": "openvino"}, "auto")])
def test_a_model_that_needs_a_gpu_is_placed_on_one(keys, kind):
    assert [group.kind for group in placed(**keys)] == [kind]
