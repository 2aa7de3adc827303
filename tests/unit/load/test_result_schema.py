"""The published schema of a result says what a result holds, and nothing else."""

import dataclasses
import json
from pathlib import Path

import load_results
import pytest
import schemas

from tritongen.load.arrivals import Stage
from tritongen.load.findmax import Found, Probe
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Recorder
from tritongen.load.result import SCHEMA_VERSION, Setup
from tritongen.report.load_search import found_json

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/load_result.schema.json").read_text(encoding="utf-8"))
RESULTS = {
    "open": load_results.make(),
    "stages": load_results.make("50:1s,50-100:2s"),
    "mixed": dataclasses.replace(
        load_results.make(),
        plan=LoadPlan(
            (ModelLoad("m", batch_mix=((1, 0.5), (8, 0.5)), shape_mix=(({"x": (3, 4)}, 1.0),)), ModelLoad("n", samples={"x": [1]})),
            "http://h:1",
            stages=(Stage(1, 5, 5, "5/s"),),
        ),
    ),
    "closed": load_results.closed(),
    "several": load_results.several("a", "b"),
    "nothing": dataclasses.replace(load_results.make(), recorder=Recorder(), servers={}, complete=False, trouble=("it broke",)),
    "no promise of errors": load_results.make(slo="max=1s"),
}


def data(result):
    return json.loads(result.to_json())


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_a_result_fits(result):
    assert schemas.accepts(SCHEMA, data(result))


@pytest.mark.parametrize("key", data(RESULTS["open"]))
def test_no_key_can_be_left_out(key):
    broken = data(RESULTS["open"])
    del broken[key]
    assert not schemas.accepts(SCHEMA, broken)


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("settings",),
        ("settings", "models", 0),
        ("settings", "models", 0, "slo"),
        ("latency_ms",),
        ("stages", 0),
        ("seconds", 0),
        ("models", 0),
        ("models", 0, "server"),
        ("senders", 0),
        ("errors", 0),
    ],
)
def test_no_key_can_be_added(place):
    broken = data(RESULTS["open"])
    part = broken
    for step in place:
        part = part[step]
    part["surprise"] = 1
    assert not schemas.accepts(SCHEMA, broken)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("schema",), 2),
        (("valid",), "yes"),
        (("error_rate",), 1.5),
        (("latency_ms", "p99"), -1),
        (("latency_ms", "count"), 0),
        (("requests", "ok"), "7"),
        (("models", 0, "server", "batches"), {"many": 1}),
        (("settings", "models", 0, "batch_mix"), [[1, 2, 3]]),
        (("loop",), "half open"),
    ],
)
def test_other_values_are_refused(place, value):
    broken = data(RESULTS["open"])
    part = broken
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    assert not schemas.accepts(SCHEMA, broken)


def test_every_setting_and_the_version_are_described():
    settings, result = SCHEMA["$defs"]["settings"]["properties"], SCHEMA["$defs"]["result"]["properties"]
    assert set(settings) == {field.name for part in (LoadPlan, Setup) for field in dataclasses.fields(part)}
    assert set(settings["models"]["items"]["properties"]) == {field.name for field in dataclasses.fields(ModelLoad)}
    assert result["schema"]["const"] == SCHEMA_VERSION
    described = [name for name, part in result.items() if "$ref" not in part and len(part["description"]) < 10]
    assert described == []


def test_a_closed_loop_has_its_requests_in_its_stage():
    (stage,) = data(load_results.closed(100))["stages"]
    assert (stage["name"], stage["sent"], stage["latency_ms"]["count"]) == ("closed loop", 100, 100)


@pytest.mark.parametrize("kept", [True, False])
def test_a_search_fits_as_well(kept):
    runs = [load_results.make(f"{rate}:2s") for rate in (50, 100)]
    probes = (Probe(50.0, runs[0], () if kept else ("p99 is too high",), False), Probe(100.0, runs[1], ("p99 is too high",), True))
    document = json.loads(found_json(Found(50.0 if kept else 0.0, probes)))
    assert schemas.accepts(SCHEMA, document)
    assert [(probe["rate"], probe["kept"], probe["latency_ms"]["count"] > 0) for probe in document["probes"]] == [(50, kept, True), (100, False, True)]
    assert (document["result"] is not None) == kept
    del document["probes"][0]["latency_ms"]
    assert not schemas.accepts(SCHEMA, document)
