"""Texts of configs with several mistakes: each is found, and nothing that merely follows from one."""

SEVERAL = [
    ('input [ { name: "x" type: TYPE_FP32 dim: [1] } ]', ["TG208 1:21", "TG208 1:37"]),
    ("kind: KIND_GPU\ncount: 2", ["TG209 1:1", "TG209 2:1"]),
    ("instance_group { type: KIND_GPU num: 2 }", ["TG208 1:18", "TG208 1:33"]),
    ("name: {{ name }}\nmax_batch_size: %size%", ["TG205 1:7", "TG205 2:17"]),
    (
        # the example of the onnxruntime backend's own README, as it stood for years
        (
            "optimization { execution_accelerators {\n"
            "  gpu_execution_accelerator : [ {\n"
            '    name : "tensorrt"\n'
            '    parameters { key: "precision_mode" value: "FP16" }}\n'
            '    parameters { key: "max_workspace_size_bytes" value: "1073741824" }}\n'
            '    parameters { key: "trt_engine_cache_enable" value: "1" }}\n'
            "  }]\n"
            "}}"
        ),
        ["TG201 4:55", "TG201 5:71", "TG201 6:61"],
    ),
    ('ensemble_scheduling { steps [ { model: "a" input_mapping { key: "x" value: "y" } } ] }', ["TG208 1:23", "TG208 1:33", "TG208 1:44"]),
    (
        'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3, 224, 224 ] } output { name: "y" shape: [3] dtype: FP16',
        ["TG201 1:75", "TG208 1:87", "TG208 1:98", "TG211 1:105"],
    ),
    ('instance_group { gpus: [ "0", "1" ] }', ["TG210 1:26", "TG210 1:31"]),
    ("maxBatchSize = 8", ["TG208 1:1", "TG202 1:14"]),
    ("dynamicBatching { maxQueueDelayMicroseconds: 100 }", ["TG208 1:1", "TG208 1:19"]),
    ("instance_group [ { count: ${N} kind: KIND_${KIND} } ]", ["TG205 1:27", "TG205 1:38"]),
    ("max batch size: 8", ["TG203 1:1", "TG208 1:11"]),
    ('parameters: { "a": "1", "b": "2" }', ["TG208 1:15", "TG208 1:25"]),
    ('input [ { name: "I", "data_type": TYPE_FP32, "dims": 1 } ]', ["TG204 1:22", "TG204 1:46"]),
    ('model_config { name: "m" inputs { } }', ["TG208 1:1", "TG208 1:26"]),
    ("input { dims: [\n-1,\n--2 ] }", ["TG210 3:1"]),
]
