"""Results of load tests, made without a server."""

import random

from tritongen.load.limits import ModelFacts
from tritongen.load.plan import LoadPlan, ModelLoad, staged
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.load.serverside import ServerSide
from tritongen.spec.traffic import parse_slo, parse_steps

SERVER = ServerSide(
    1200,
    4,
    1200,
    500,
    {"queue": 1.2, "compute_input": 0.1, "compute_infer": 2.2, "compute_output": 0.15},
    {1: 200, 2: 150, 3: 100, 8: 50},
    gauges={"pending requests": 7, "GPU GPU-1 memory": 1.2e10},
)
VERSIONS = {"tritongen": "0.1.0", "locust": "2.40", "triton": "2.51.0"}
HOSTILE = "<script>alert('x')</script> & \x1b[31m\"red\""


def stages_of(text, warmup_s):
    """What `--stages` makes of a text."""
    return staged(parse_steps(text), warmup_s)


def make(stages="50:4s", *, model="recognizer", seed=1, errors=0.005, slower=1.0, slo="p99=20ms,error_rate=5%", message="full", server=SERVER):
    """A run with a second of warmup: some 3 ms and an exponential tail, the same for the same arguments."""
    source = random.Random(seed)
    plan = LoadPlan((ModelLoad(model, slo=parse_slo(slo), slo_from="--slo"),), "grpc://host:8001", stages=stages_of(stages, 1), seed=seed)
    recorder, begin = Recorder(), 0.0
    for index, stage in enumerate(plan.stages):
        for _ in range(int(stage.requests) if stage.measured else 0):
            due = begin + source.random() * stage.seconds
            latency = slower * (0.003 + source.expovariate(500.0))
            failed = source.random() < errors
            recorder.add(Key(model, "grpc", index, "rejected" if failed else "ok"), due, latency, 0.0002, message if failed else "", None if failed else 0.0001)
        begin += stage.seconds
    use, facts = SenderUse("here 0", 1.2, 5.0), {model: ModelFacts(8, 1200.0)}
    return LoadResult(plan, recorder, (use,), {model: server} if server else {}, VERSIONS, started="2026-01-01T00:00:00+00:00", facts=facts)


def several(*names, slo="p99=20ms", message="full"):
    """A run of several models, each with the same promise; the first fails twice as often, and the server says nothing of the last."""
    source, recorder = random.Random(1), Recorder()
    loads = tuple(ModelLoad(name, part=1.0, slo=parse_slo(slo), slo_from=f"slo of {name} (spec.yaml:3:1)") for name in names)
    plan = LoadPlan(loads, "grpc://host:8001", scenario="mixed", stages=stages_of("100:4s", 1))
    for index, name in enumerate(names):
        for number in range(200):
            failed = number % 50 < (2 if index == 0 else 1)
            recorder.add(
                Key(name, "grpc", 1, "rejected" if failed else "ok"),
                1 + number / 50,
                0.003 + source.expovariate(500.0),
                0.0002,
                message * failed,
                None if failed else 0.0001,
            )
    servers = dict.fromkeys(names[:-1], SERVER)
    return LoadResult(plan, recorder, (SenderUse("here 0", 1.2, 5.0),), servers, VERSIONS, started="2026-01-01T00:00:00+00:00")


def closed(requests=100):
    """A closed loop of four users, two seconds long after one of warmup."""
    plan = LoadPlan((ModelLoad("recognizer"),), "http://host:8000", users=4, seconds=2.0, warmup_s=1.0)
    recorder = Recorder()
    for index in range(requests):
        recorder.add(Key("recognizer", "http", 1, "ok"), 1 + 2 * index / requests, 0.004, 0.0, unread_s=0.0001)
    return LoadResult(plan, recorder, (SenderUse("here 0", 0.1, 3.0),), {}, VERSIONS, started="2026-01-01T00:00:00+00:00")
