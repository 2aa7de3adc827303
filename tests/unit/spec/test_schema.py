"""The JSON Schema accepts what the loader accepts."""

import json
import re

import pytest
import schemas
from pydantic import BaseModel

from tritongen.errors import SpecError
from tritongen.sources import SourceText, parse_yaml
from tritongen.spec import spec_schema
from tritongen.spec.batching import Batching
from tritongen.spec.findings import fields_at
from tritongen.spec.instances import InstanceGroup
from tritongen.spec.models import ModelSpec, Settings, Spec, Target
from tritongen.spec.schema import DIALECT
from tritongen.spec.shapes import ShapeRange
from tritongen.spec.source import Source
from tritongen.spec.versions import VersionPolicy

SCHEMA = spec_schema()


def spec_of(keys, *, top=""):
    return f"version: 1\n{top}\nmodels:\n  - {{name: m, source: m.onnx{', ' if keys else ''}{keys}}}\n"


GOOD = [
    spec_of(""),
    spec_of("backend: tensorrt, precision: int8"),
    spec_of("batching: none"),
    spec_of("batching: auto"),
    spec_of("batching: {}"),
    spec_of("batching: {max: 8, preferred: [2, 8], max_queue_delay: 1.5ms}"),
    spec_of("shapes: {x: [3, 48], y: {min: [1], opt: [2], max: [3]}}"),
    spec_of("instances: {kind: cpu}"),
    spec_of("instances: [{count: 2}, {kind: gpu, gpus: [0, 1]}]"),
    spec_of("instances: {kind: gpu, profiles: [0, 2], dla: 0, host_policy: near}"),
    spec_of("instances: {rate_limiter: {resources: [{name: R, count: 2, global: true}], priority: 2}}"),
    spec_of("batching: {preferred: none, eager: true, pinned_memory: {input: false}, gather_kernel_buffer_threshold: 4}"),
    spec_of("batching: {preferred: auto}"),
    spec_of("slo: {p50: 5ms, p99: 20ms}, queue: {overload: reject}"),
    spec_of("slo: {error_rate: 0.1%}"),
    spec_of("queue: {priority_levels: 2, default_priority_level: 1, max_queue_size: 4, default_timeout: 1s, timeout_action: delay}"),
    spec_of("queue: {allow_timeout_override: true, priority_levels: 2, priority_queue_policy: {1: {max_queue_size: 4}, '2': {}}}"),
    spec_of("", top="triton: {cpus: 8}"),
    spec_of("warmup: auto"),
    spec_of("warmup: none"),
    spec_of("warmup: [1, 2]"),
    spec_of("warmup: []"),
    spec_of("version: auto, versions: {policy: latest, count: 3}"),
    spec_of("freeze: true, rebatch: true, prove: false, optimize: offline"),
    spec_of("prove: auto, optimize: {level: all, hardware: mine, tolerance: 0.001}"),
    spec_of("", top="defaults: {freeze: true, rebatch: false, prove: true, optimize: none}"),
    "version: 1\nmodels: [{name: a, sources: {'1': a.onnx, '12': {package: pydantic, path: main.py}}}]",
    spec_of("version: 7, versions: {policy: specific, versions: [7]}"),
    spec_of("samples: {a: 1, b: true, c: text, d: [[1.5, 2], [3, 4]], e: 0.5}"),
    spec_of("config: {a: {b: [1, null]}}"),
    spec_of("samples: {a: {files: ., image: {range: [-1, 1], std: [0.5]}, audio: {channels: mix}, text: {per: file}}, b: 1}"),
    spec_of("batching: {max: 8}", top="load: {scenarios: {s: {models: [m], batch_mix: ['1:70%', '8:30%'], shape_mix: {x: 3x4}, data: d}}}"),
    spec_of("", top="load: {scenarios: {s: {models: {m: 2}, batch_mix: 1, stages: '1:1s, 2-3.5:1m', slo: {p99.9: 1ms, error_rate: 0.1%}}}}"),
    spec_of("", top="load: {scenarios: {s: {warmup: 0}}}"),
    spec_of("", top="load: {scenarios: {s: {models: {m: {weight: 0.5}}, arrivals: 'trace:t', slo: {max: 1s, error_rate: 0}}}}"),
    spec_of("slo: {error_rate: 0}"),
    spec_of("onnxruntime: {graph_optimization: basic, arena_shrinkage: ['cpu:0', 'gpu:10'], cuda: {gpu_mem_limit: 0.5GiB, use_tf32: false}}"),
    spec_of("onnxruntime: {tensorrt: {tactic_sources: {cudnn: false}, extra_plugin_lib_paths: [/a/b.so, c.so], ep_context: {path: /m.onnx}}}"),
    spec_of("tensorrt: {cuda_graphs: true, stream_priority: max}, op_libraries: [/opt/a.so, libb.so]"),
    spec_of("tensorrt: {cuda_graphs: {lower_bounds: true}}"),
    spec_of("ragged: {inputs: [x], batch_inputs: [{names: [o], kind: batch_item_shape, source: x, dtype: fp32}]}, response_cache: true"),
    spec_of("ragged: {inputs: {x: [-1, 4]}, batch_outputs: [{names: [z], source: x}]}"),
    spec_of("ragged: {batch_outputs: [{names: [z], source: x}]}"),
    spec_of("optional_inputs: [s, t]"),
    spec_of("cpu_threads: 2", top="triton: {release: '24.10', engine_cache: /a/b}\nrepository: out"),
    spec_of("", top="defaults: {batching: none, instances: {kind: gpu}, warmup: [1], version: auto, versions: {count: 2}}"),
    "version: 1\nmodels: [{name: a.b, source: {package: pydantic, path: main.py}}]",
    "version: 1\nmodels: [{name: a, source: {path: b.onnx}}]",
]

BAD = [
    "models: [{name: m, source: m.onnx}]",
    "version: 2\nmodels: [{name: m, source: m.onnx}]",
    "version: 1",
    "version: 1\nmodels: []",
    "version: 1\nmodels: [{name: m}]",
    "version: 1\nmodels: [{name: 'a b', source: m.onnx}]",
    "version: 1\nmodels: [{name: .a, source: m.onnx}]",
    "version: 1\nmodels: [{name: m, source: ''}]",
    "version: 1\nmodels: [{name: m, source: {package: a.b, path: x}}]",
    spec_of("", top="zzz: 1"),
    spec_of("", top="triton: {release: 25.08}"),
    spec_of("", top="triton: {release: '25.13'}"),
    spec_of("", top="triton: {engine_cache: relative}"),
    spec_of("", top="triton: {engine_cache: /a/../b}"),
    spec_of("", top="triton: {engine_cache: /}"),
    spec_of("", top="defaults: {name: m}"),
    spec_of("", top="defaults: {samples: {a: 1}}"),
    spec_of("", top="repository: ' '"),
    spec_of("zzz: 1"),
    spec_of("backend: onnx"),
    spec_of("accelerator: TensorRT"),
    spec_of("batching: off"),
    spec_of("onnxruntime: {execution_mode: fast}"),
    spec_of("onnxruntime: {enable_mem_arena: 1}"),
    spec_of("onnxruntime: {arena_shrinkage: ['cuda:0']}"),
    spec_of("onnxruntime: {cuda: {gpu_mem_limit: 0GiB}}"),
    spec_of("onnxruntime: {cuda: {gpu_mem_limit: 0.0 GiB}}"),
    spec_of("onnxruntime: {tensorrt: {builder_optimization_level: 6}}"),
    spec_of("onnxruntime: {tensorrt: {engine_cache_prefix: a/b}}"),
    spec_of("onnxruntime: {tensorrt: {extra_plugin_lib_paths: ['/a;b']}}"),
    spec_of("onnxruntime: {tensorrt: {extra_plugin_lib_paths: ['a;b']}}"),
    spec_of("onnxruntime: {tensorrt: {tactic_sources: {cuda: true}}}"),
    spec_of("onnxruntime: {tensorrt: {ep_context: {}}}"),
    spec_of("tensorrt: {cuda_graphs: 3}"),
    spec_of("tensorrt: {cuda_graphs: {lower_bounds: 1}}"),
    spec_of("op_libraries: [a/b.so]"),
    spec_of("op_libraries: [..]"),
    spec_of("op_libraries: [/]"),
    spec_of("op_libraries: ['/a/../b.so']"),
    spec_of("op_libraries: ['']"),
    spec_of("ragged: {}"),
    spec_of("ragged: {inputs: []}"),
    spec_of("ragged: {inputs: x}"),
    spec_of("ragged: {inputs: {x: []}}"),
    spec_of("ragged: {inputs: {x: [-2]}}"),
    spec_of("ragged: {inputs: [x], batch_inputs: [{names: [], kind: batch_item_shape, source: x}]}"),
    spec_of("ragged: {inputs: [x], batch_inputs: [{names: [o], kind: BATCH_ITEM_SHAPE, source: x}]}"),
    spec_of("ragged: {inputs: [x], batch_outputs: [{names: [o]}]}"),
    spec_of("optional_inputs: s"),
    spec_of("response_cache: 1"),
    spec_of("batching: 8"),
    spec_of("batching: {max: -1}"),
    spec_of("batching: {max: '8'}"),
    spec_of("batching: {max_queue_delay: 2}"),
    spec_of("batching: {max_queue_delay: 2 sec}"),
    spec_of("batching: {max_queue_delay_us: 2}"),
    spec_of("batching: {preferred: [0]}"),
    spec_of("shapes: {x: []}"),
    spec_of("shapes: {x: [0]}"),
    spec_of("shapes: {x: {min: [1], opt: [1]}}"),
    spec_of("instances: []"),
    spec_of("instances: gpu"),
    spec_of("instances: {kind: KIND_GPU}"),
    spec_of("instances: {kind: gpu, gpus: [MIG-1]}"),
    spec_of("instances: {kind: gpu, profiles: ['0']}"),
    spec_of("instances: {host_policy: 'a,b'}"),
    spec_of("instances: {rate_limiter: {resources: [{name: 'a:b'}]}}"),
    spec_of("instances: {rate_limiter: {priority: 0}}"),
    spec_of("batching: {preferred: all}"),
    spec_of("batching: {eager: 1}"),
    spec_of("queue: {max_queue_size: 0}"),
    spec_of("queue: {overload: drop}"),
    spec_of("queue: {priority_queue_policy: {0: {}}}"),
    spec_of("queue: {priority_queue_policy: {high: {}}}"),
    spec_of("slo: {p42: 1ms}"),
    spec_of("slo: {error_rate: 1}"),
    spec_of("slo: {error_rate: 100%}"),
    spec_of("slo: {p99: 20}"),
    spec_of("", top="triton: {cpus: 0}"),
    spec_of("warmup: [0]"),
    spec_of("warmup: all"),
    spec_of("version: 0"),
    spec_of("freeze: 'true'"),
    spec_of("prove: always"),
    spec_of("optimize: extended"),
    spec_of("optimize: {level: fast}"),
    spec_of("optimize: {tolerance: 0}"),
    spec_of("optimize: {tolerance: 2}"),
    "version: 1\nmodels: [{name: a, sources: [a.onnx]}]",
    "version: 1\nmodels: [{name: a, sources: {}}]",
    "version: 1\nmodels: [{name: a, sources: {'01': a.onnx}}]",
    spec_of("version: newest"),
    spec_of("versions: {policy: newest}"),
    spec_of("samples: {x: {}}"),
    spec_of("samples: {x: {files: ., image: {range: [1]}}}"),
    spec_of("samples: {x: {files: ., image: {mean: []}}}"),
    spec_of("samples: {x: {files: ., image: {layout: nchw}}}"),
    spec_of("", top="load: {}"),
    spec_of("", top="load: {scenarios: {}}"),
    spec_of("", top="load: {scenarios: {s: {rate: 0}}}"),
    spec_of("", top="load: {scenarios: {s: {stages: fast}}}"),
    spec_of("", top="load: {scenarios: {s: {stages: []}}}"),
    spec_of("", top="load: {scenarios: {s: {batch_mix: 0}}}"),
    spec_of("", top="load: {scenarios: {s: {batch_mix: '0:1'}}}"),
    spec_of("", top="load: {scenarios: {s: {shape_mix: {x: 3xx4}}}}"),
    spec_of("", top="load: {scenarios: {s: {slo: {}}}}"),
    spec_of("", top="load: {scenarios: {s: {slo: {p0: 1ms}}}}"),
    spec_of("", top="load: {scenarios: {s: {slo: {p99: 20}}}}"),
    spec_of("", top="load: {scenarios: {s: {slo: {error_rate: 0.5}}}}"),
    spec_of("", top="load: {scenarios: {s: {arrivals: soon}}}"),
    spec_of("", top="load: {scenarios: {s: {models: {m: 0}}}}"),
    spec_of("", top="load: {scenarios: {s: {models: []}}}"),
    spec_of("", top="load: {scenarios: {s: {duration: 5}}}"),
    spec_of("", top="load: {scenarios: {s: {duration: 0}}}"),
    spec_of("", top="load: {scenarios: {s: {warmup: false}}}"),
    spec_of("samples: {x: []}"),
    spec_of("labels: {x: 1}"),
    spec_of("cpu_threads: 0"),
    spec_of("cpu_threads: ~"),
    spec_of("config: [1]"),
]


def data(text):
    return parse_yaml(SourceText("spec.yaml", text)).root.plain()


@pytest.mark.parametrize("text", GOOD)
def test_the_schema_accepts_what_the_loader_accepts(folder, text):
    folder.load(text)
    assert schemas.accepts(SCHEMA, data(text))


@pytest.mark.parametrize("text", BAD)
def test_the_schema_refuses_what_the_loader_refuses(folder, text):
    with pytest.raises(SpecError):
        folder.load(text)
    assert not schemas.accepts(SCHEMA, data(text))


def test_it_is_json_of_the_dialect_it_names():
    again = json.loads(json.dumps(SCHEMA))
    assert again == SCHEMA
    assert again["$schema"] == DIALECT == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_is_described():
    described = [
        (name, key) for name, part in SCHEMA["$defs"].items() for key, field in part.get("properties", {}).items() if len(field.get("description", "")) < 10
    ]
    assert described == []
    assert all(field["description"] for field in SCHEMA["properties"].values())


def test_a_unit_is_a_pattern_and_a_choice_is_an_enum():
    parts = SCHEMA["$defs"]
    assert re.search(parts["Batching"]["properties"]["max_queue_delay"]["pattern"], "2ms")
    assert parts["ModelSpec"]["properties"]["accelerator"]["enum"] == ["none", "cuda", "tensorrt", "openvino"]


def test_each_reference_leads_somewhere():
    references = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA)))
    assert references == set(SCHEMA["$defs"])


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ((), Spec),
        (("triton",), Target),
        (("models", 3), ModelSpec),
        (("models", 0, "source"), Source),
        (("models", 0, "batching"), Batching),
        (("models", 0, "shapes", "batching"), ShapeRange),
        (("models", 0, "instances", 1), InstanceGroup),
        (("models", 0, "versions"), VersionPolicy),
        (("defaults",), Settings),
        (("defaults", "batching"), Batching),
    ],
)
def test_keys_by_place(path, model: type[BaseModel]):
    assert set(fields_at(path)) == {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("path", [("nothing",), ("repository",), ("models", 0, "config"), ("models", 0, "labels")])
def test_no_keys_where_they_are_free(path):
    assert fields_at(path) == {}
