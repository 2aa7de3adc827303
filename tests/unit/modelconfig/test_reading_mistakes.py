"""What a person is told about each mistake in a config.pbtxt: one finding, at the right place, with what was probably meant; and what `--fix` makes of it."""

import pytest
from google.protobuf import text_format

from tritongen.diagnostics import Severity
from tritongen.modelconfig import ModelConfig
from tritongen.modelconfig.reading import apply_fixes, read_config

# The text; the code; line:column; what the finding says (its hint, for codes about fields and values, else its message); the text after the safe fix, if any.
ONE = [
    ('inputs [ { name: "x" } ]', "TG208", "1:1", "did you mean 'input'?", 'input [ { name: "x" } ]'),
    ("input { data_type: TYPE_FLOAT32 }", "TG211", "1:20", "did you mean TYPE_FP32?", "input { data_type: TYPE_FP32 }"),
    ("input { data_type: TYPE_BYTES }", "TG211", "1:20", "did you mean TYPE_STRING?", "input { data_type: TYPE_STRING }"),
    ("input { data_type: FP32 }", "TG211", "1:20", "did you mean TYPE_FP32?", "input { data_type: TYPE_FP32 }"),
    ('input { data_type: "TYPE_FP32" }', "TG210", "1:20", "write data_type: TYPE_FP32 without quotes", "input { data_type: TYPE_FP32 }"),
    ("input { data_type: float32 }", "TG211", "1:20", "did you mean TYPE_FP32?", "input { data_type: TYPE_FP32 }"),
    ("input { data_type: TYPE_FP31 }", "TG211", "1:20", "did you mean TYPE_FP32?", None),
    ("max_batchsize: 8", "TG208", "1:1", "did you mean 'max_batch_size'?", "max_batch_size: 8"),
    ("maxBatchSize: 8", "TG208", "1:1", "did you mean 'max_batch_size'?", "max_batch_size: 8"),
    ("max-batch-size: 8", "TG208", "1:1", "did you mean 'max_batch_size'?", "max_batch_size: 8"),
    ('max_batch_size: "8"', "TG210", "1:17", "write max_batch_size: 8 without quotes", "max_batch_size: 8"),
    ("max_batch_size: 8.0", "TG212", "1:17", "write 8", "max_batch_size: 8"),
    ("max_batch_size: eight", "TG210", "1:17", "give a whole number from -2147483648 to 2147483647", None),
    ("max_batch_size: 99999999999", "TG212", "1:17", "give a whole number from -2147483648 to 2147483647", None),
    ("max_batch_size: 8 name: resnet", "TG210", "1:25", 'write name: "resnet"', 'max_batch_size: 8 name: "resnet"'),
    ('name: resnet-50_v1.5\nbackend: "onnxruntime"', "TG210", "1:7", 'write name: "resnet-50_v1.5"', 'name: "resnet-50_v1.5"\nbackend: "onnxruntime"'),
    ('name: my model\nbackend: "x"', "TG210", "1:7", 'write name: "my model"', 'name: "my model"\nbackend: "x"'),
    ('name: "resnet\nbackend: "onnxruntime"', "TG204", "1:7", "the string has no closing quote", None),
    ('name: resnet"\nbackend: "onnxruntime"', "TG204", "1:13", "the string has a closing quote and no opening one", None),
    (
        "name: \u201cresnet\u201d",
        "TG204",
        "1:7",
        "the string is in typographic quotes \u201c \u201d, as word processors and web pages make them",
        'name: "resnet"',
    ),
    ('name: "resnet\u201d\nbackend: "x"', "TG204", "1:14", "the string ends with a typographic quote \u201d", 'name: "resnet"\nbackend: "x"'),
    (
        'parameters { key: "a" value: "1" }',
        "TG216",
        "1:30",
        'write value: { string_value: "1" }; only parameters of accelerators and agents are plain',
        'parameters { key: "a" value: { string_value: "1" } }',
    ),
    (
        'parameters { key: "a" value: 4 }',
        "TG216",
        "1:30",
        'write value: { string_value: "4" }; only parameters of accelerators and agents are plain',
        'parameters { key: "a" value: { string_value: "4" } }',
    ),
    ('parameters { key: "a" value { string_value: 4 } }', "TG210", "1:45", 'write string_value: "4"', 'parameters { key: "a" value { string_value: "4" } }'),
    (
        'optimization { execution_accelerators { gpu_execution_accelerator { parameters { key: "precision_mode" value: { string_value: "FP16" } } } } }',
        "TG216",
        "1:111",
        'write value: "FP16"; only parameters of the model itself have string_value',
        'optimization { execution_accelerators { gpu_execution_accelerator { parameters { key: "precision_mode" value: "FP16" } } } }',
    ),
    ('parameters { threads: "4" }', "TG208", "1:14", 'write parameters { key: "threads" value: { string_value: "4" } }', None),
    ("preferred_batch_size: [4, 8]", "TG209", "1:1", "it belongs into dynamic_batching { preferred_batch_size: [4, 8] }", None),
    ("dynamic_batching { }\nmax_queue_delay_microseconds: 100", "TG209", "2:1", "it belongs into dynamic_batching { max_queue_delay_microseconds: 100 }", None),
    ("dynamic_batching { max_batch_size: 8 }", "TG209", "1:20", "it belongs into the config: move it out of 'dynamic_batching'", None),
    ("instance_group [ { kind: GPU } ]", "TG211", "1:26", "did you mean KIND_GPU?", "instance_group [ { kind: KIND_GPU } ]"),
    ('input [ { name: "x" dims: [ 1, 2, ] } ]', "TG202", "1:33", "a comma before the closing bracket of a list", 'input [ { name: "x" dims: [ 1, 2 ] } ]'),
    ('input [ { name: "x" dims: [ 1 2 3 ] } ]', "TG202", "1:30", "2 commas are missing between items of the list", 'input [ { name: "x" dims: [ 1, 2, 3 ] } ]'),
    ('input [ { name: "x" }, { name: "y" }, ]', "TG202", "1:37", "a comma before the closing bracket of a list", 'input [ { name: "x" }, { name: "y" } ]'),
    ('input [ { name: "x" } { name: "y" } ]', "TG202", "1:22", "a comma is missing between items of the list", 'input [ { name: "x" }, { name: "y" } ]'),
    ('<<<<<<< HEAD\nname: "a"\n=======\nname: "b"\n>>>>>>> other\nmax_batch_size: 8', "TG206", "1:1", "the file holds an unresolved merge conflict", None),
    ('// hello\nname: "a"', "TG207", "1:1", "'//' starts no comment here", '# hello\nname: "a"'),
    ('/* hello\n world */\nname: "a"', "TG207", "1:1", "'/*' starts no comment here", '# hello\n# world\nname: "a"'),
    ("dynamic_batching { } sequence_batching { }", "TG214", "1:22", "'sequence_batching' cannot stand beside 'dynamic_batching' in line 1", None),
    ("max_batch_size: 4\nmax_batch_size: 8", "TG213", "2:1", "'max_batch_size' is given twice, here and in line 1, and may be given once", None),
    ('name: "a"\nname: "a"', "TG213", "2:1", "'name' is given twice, here and in line 1, and may be given once", 'name: "a"\n'),
    ("name: ${name}", "TG205", "1:7", "'${name}' is a place of a template that was not filled", None),
    ("max_batch_size: $SIZE", "TG205", "1:17", "'$SIZE' is a place of a template that was not filled", None),
    ('max_batch_size: "${SIZE}"', "TG205", "1:17", "'${SIZE}' is a place of a template that was not filled", None),
    ("name: <MODEL_NAME>", "TG205", "1:7", "'<MODEL_NAME>' is a place of a template that was not filled", None),
    ('name: "a', "TG204", "1:7", "the string has no closing quote", None),
    ('input [ { name: "x" \n  dims: [ 1 ]\n]\noutput [ { name: "y" } ]', "TG201", "1:9", "'{' is never closed: ']' comes first, in line 3", None),
    ('input {\n  name: "x"\noutput {\n  name: "y"\n}', "TG201", "1:7", "'{' is not closed before line 3", None),
    ('input [\n  {\n    name: "x"\n  }\noutput [\n  {\n    name: "y"\n  }\n]', "TG201", "1:7", "'[' is not closed before line 5", None),
    ('name: "a" }', "TG201", "1:11", "'}' closes nothing", None),
    ('name = "a"', "TG202", "1:6", "'=' stands where a colon should", 'name : "a"'),
    ('{ "name": "a", "max_batch_size": 8 }', "TG200", "1:1", "the file is JSON, and protobuf text is expected", None),
    ('{ name: "a" }', "TG202", "1:1", "braces around fields of the config itself", ' name: "a" '),
    ("name: a\ninput:\n  - name: x\n    data_type: TYPE_FP32", "TG200", "3:3", "the file is YAML, and protobuf text is expected", None),
    ("<!DOCTYPE html><html></html>", "TG200", "1:1", "the file is a web page or XML, not a config", None),
    ("version https://git-lfs.github.com/spec/v1\noid sha256:1", "TG200", "1:1", "the file is a Git LFS pointer, not the config itself", None),
    (b'\xff\xfen\x00a\x00m\x00e\x00:\x00"\x00a\x00"\x00', "TG200", "1:1", "the file is UTF-16 text, and UTF-8 is expected", None),
    (b'\xef\xbb\xbfname: "a"', "TG200", "1:1", "the file begins with a byte-order mark, which the parser takes for text", 'name: "a"'),
    (b'name:\xc2\xa0"a"', "TG203", "1:6", "the blank character U+00A0 (no-break space) stands in the text", 'name: "a"'),
    ('name: "a\x00b"', "TG204", "1:9", "the string holds a NUL character, which ends it for protobuf", None),
    ('name: "C:\\models\\x"', "TG204", "1:10", "\\m begins no escape, nor do 1 more in this string", None),
    ("name", "TG215", "1:1", 'write such as name: "text"', None),
    ('name:\nbackend: "x"', "TG215", "1:1", 'write such as name: "text"', None),
    ("version_policy: latest { num_versions: 1 }", "TG202", "1:17", "'latest' is a field, and its braces are missing", None),
    ("version_policy: all", "TG210", "1:17", "write version_policy { all { } }", None),
    ("response_cache: true", "TG210", "1:17", "write response_cache { enable: true }", None),
    ("dynamic_batching: true", "TG210", "1:19", "write dynamic_batching { }", None),
    ("dynamic_batching", "TG215", "1:1", "write such as dynamic_batching { ... }", None),
    ("input { dims [ 1 ] }", "TG202", "1:13", "a colon is missing behind 'dims'", "input { dims: [ 1 ] }"),
    ('name "a"', "TG202", "1:5", "a colon is missing behind 'name'", 'name: "a"'),
    ("input { dims: [[1, 2]] }", "TG202", "1:16", "a list stands in a list", None),
    ("optimization.cuda.graphs: true", "TG208", "1:1", "write one message in the other: optimization { cuda { graphs: ... } }", None),
    ("optimization { eager_batching: yes }", "TG210", "1:32", "write true", "optimization { eager_batching: true }"),
    ("model_transaction_policy { decoupled: TRUE }", "TG210", "1:39", "write true", "model_transaction_policy { decoupled: true }"),
    ("[foo.bar]: 1", "TG217", "1:1", "a field's name in brackets is an extension, and no message of Triton's has extensions", None),
    ('"name": "a"', "TG204", "1:1", "the field's name 'name' is in quotes", 'name: "a"'),
    ('name: ["a"]', "TG210", "1:7", 'write name: "a"', 'name: "a"'),
    ("dynamic_batching [ { } ]", "TG210", "1:18", "write dynamic_batching { ... }", None),
    ('input < name: "x" }', "TG201", "1:19", "'}' closes what '<' opened in line 1", 'input < name: "x" >'),
    ('input { name: "x", dims: [1, 2 }', "TG201", "1:26", "'[' is never closed: '}' comes first, in line 1", None),
    ('name: "a",, backend: "b"', "TG202", "1:11", "',' separates nothing here", 'name: "a", backend: "b"'),
    ("dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 1ms }", "TG212", "1:81", "write 1000, in microseconds", None),
    ("max_batch_size: +8", "TG212", "1:17", "write the number without it", "max_batch_size: 8"),
    ("max_batch_size: 1_000", "TG212", "1:17", "write 1000, without underscores", None),
    ("max_batch_size: 08", "TG212", "1:17", "a leading 0 makes a number octal; write 8 if it is decimal", None),
    ('foo bar baz\nname: "x"', "TG203", "1:1", "'foo bar baz' means nothing here", None),
    ('name: "a" foo', "TG203", "1:11", "'foo' means nothing here", None),
    ("import json\nname = 3", "TG200", "1:1", "the file is a program, not a config", None),
    ('input [ name: "x" data_type: TYPE_FP32 dims: [1] ]', "TG202", "1:7", "the list holds fields without braces around them", None),
    (
        'sequence_batching { control_input [ { name: "START" control [ { kind: SEQUENCE_START fp32_false_true: [0, 1] } ] } ] }',
        "TG211",
        "1:71",
        "did you mean CONTROL_SEQUENCE_START?",
        'sequence_batching { control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } ] } ] }',
    ),
    ('metric_tags { "a": "b" }', "TG208", "1:15", 'write metric_tags { key: "a" value: "b" }', None),
    ("max_batch_size: -", "TG203", "1:17", "'-' means nothing here", None),
    ("name: 'it's'", "TG204", "1:7", "the string has no closing quote", None),
    (
        'parameters: { key: "x", value: { string_value: "y" } },\nparameters: { key: "z" value: { stringValue: "y" } }',
        "TG208",
        "2:33",
        "did you mean 'string_value'?",
        'parameters: { key: "x", value: { string_value: "y" } },\nparameters: { key: "z" value: { string_value: "y" } }',
    ),
    ('name: "a" "b" c', "TG203", "1:15", "'c' means nothing here", None),
    (
        "instance_group [ { count: 1 kind: KIND_GPU gpus: 0,1 } ]",
        "TG202",
        "1:50",
        "several values have no brackets around them",
        "instance_group [ { count: 1 kind: KIND_GPU gpus: [0,1] } ]",
    ),
    (
        'input [ { name: "x"; data_type: TYPE_FP32; dims: [1; 2] } ]',
        "TG202",
        "1:52",
        "items of a list are separated by commas",
        'input [ { name: "x"; data_type: TYPE_FP32; dims: [1, 2] } ]',
    ),
    ('name: "a": "b"', "TG203", "1:10", "': \"b\"' means nothing here", None),
    ('output { name: "y" data_type: TYPE_DOUBLE }', "TG211", "1:31", "did you mean TYPE_FP64?", 'output { name: "y" data_type: TYPE_FP64 }'),
    ("output { data_type: TYPE_INT }", "TG211", "1:21", "did you mean TYPE_INT32?", None),
    ("input { data_type: TYPE_LONG }", "TG211", "1:20", "did you mean TYPE_INT64?", "input { data_type: TYPE_INT64 }"),
    ("input { data_type: type_fp16 }", "TG211", "1:20", "did you mean TYPE_FP16?", "input { data_type: TYPE_FP16 }"),
    ("input { data_type: TYPE_BFLOAT16 }", "TG211", "1:20", "did you mean TYPE_BF16?", "input { data_type: TYPE_BF16 }"),
    ("input { data_type: TYPE_BOOLEAN }", "TG211", "1:20", "did you mean TYPE_BOOL?", "input { data_type: TYPE_BOOL }"),
    ("input { data_type: string }", "TG211", "1:20", "did you mean TYPE_STRING?", "input { data_type: TYPE_STRING }"),
    ("input { data_type: fp32 }", "TG211", "1:20", "did you mean TYPE_FP32?", "input { data_type: TYPE_FP32 }"),
    ("input { data_type: TYPE_COMPLEX64 }", "TG211", "1:20", "did you mean TYPE_FP64?", None),
    ("input { data_type: 1.5 }", "TG211", "1:20", "it is one of TYPE_BOOL, TYPE_U", None),
    ("input { data_type: 99999999999 }", "TG212", "1:20", "write a name, such as TYPE_FP32", None),
    ("input { format: NHWC }", "TG211", "1:17", "did you mean FORMAT_NHWC?", "input { format: FORMAT_NHWC }"),
    ("optimization { priority: MAX }", "TG211", "1:26", "did you mean PRIORITY_MAX?", "optimization { priority: PRIORITY_MAX }"),
    ('instance_group { kind: "KIND_GPU" }', "TG210", "1:24", "write kind: KIND_GPU without quotes", "instance_group { kind: KIND_GPU }"),
    ("instance_group { kind: gpu count: 1 }", "TG211", "1:24", "did you mean KIND_GPU?", "instance_group { kind: KIND_GPU count: 1 }"),
    ('instance_group { count: "2" }', "TG210", "1:25", "write count: 2 without quotes", "instance_group { count: 2 }"),
    ('instance_group { gpus: "0" }', "TG210", "1:24", "write gpus: 0 without quotes", "instance_group { gpus: 0 }"),
    ("instance_group { instance_count: 2 }", "TG208", "1:18", "did you mean 'count'?", "instance_group { count: 2 }"),
    ("instances { count: 1 }", "TG208", "1:1", "did you mean 'instance_group'?", "instance_group { count: 1 }"),
    ("instanceGroup [ { count: 1 } ]", "TG208", "1:1", "did you mean 'instance_group'?", "instance_group [ { count: 1 } ]"),
    ("instance_groups { count: 1 }", "TG208", "1:1", "did you mean 'instance_group'?", "instance_group { count: 1 }"),
    ('outputs { name: "y" }', "TG208", "1:1", "did you mean 'output'?", 'output { name: "y" }'),
    ("batch_size: 8", "TG208", "1:1", "did you mean 'max_batch_size'?", None),
    ("max_batch_size 8", "TG202", "1:15", "a colon is missing behind 'max_batch_size'", "max_batch_size: 8"),
    ("max_batch_size :: 8", "TG202", "1:16", "'::' stands where a colon should", "max_batch_size : 8"),
    ("max_batch_size := 8", "TG202", "1:16", "':=' stands where a colon should", "max_batch_size : 8"),
    ('platfrom: "onnxruntime_onnx"', "TG208", "1:1", "did you mean 'platform'?", None),
    ('Name: "m"', "TG208", "1:1", "did you mean 'name'?", 'name: "m"'),
    ("dynamic_batcher { }", "TG208", "1:1", "did you mean 'dynamic_batching'?", "dynamic_batching { }"),
    (
        "dynamic_batching { max_queue_delay_us: 100 }",
        "TG208",
        "1:20",
        "did you mean 'max_queue_delay_microseconds'?",
        "dynamic_batching { max_queue_delay_microseconds: 100 }",
    ),
    ("dynamic_batching { max_queue_delay_ms: 1 }", "TG208", "1:20", "did you mean 'max_queue_delay_microseconds'?", None),
    (
        "dynamic_batching { preferred_batch_sizes: [ 4 ] }",
        "TG208",
        "1:20",
        "did you mean 'preferred_batch_size'?",
        "dynamic_batching { preferred_batch_size: [ 4 ] }",
    ),
    ("dynamic_batching { preferred_batch_size: { 4 } }", "TG202", "1:42", "braces stand around plain values", "dynamic_batching { preferred_batch_size: 4 }"),
    (
        "dynamic_batching { preferred_batch_size: 4 8 }",
        "TG202",
        "1:42",
        "several values have no brackets around them",
        "dynamic_batching { preferred_batch_size: [4, 8] }",
    ),
    ("dynamic_batching { max_queue_delay_microseconds: -1 }", "TG212", "1:50", "give a whole number from 0 to 18446744073709551615", None),
    ("dynamic_batching { max_queue_delay_microseconds: 0.5 }", "TG212", "1:50", "write such as max_queue_delay_microseconds: 8", None),
    (
        'dynamic_batching { default_queue_policy { timeout_action: "DELAY" } }',
        "TG210",
        "1:59",
        "write timeout_action: DELAY without quotes",
        "dynamic_batching { default_queue_policy { timeout_action: DELAY } }",
    ),
    ("timeout_action: DELAY", "TG209", "1:1", "it belongs into dynamic_batching { default_queue_policy { timeout_action: DELAY } }", None),
    ("dynamic_batching { instance_group { count: 1 } }", "TG209", "1:20", "it belongs into the config: move it out of 'dynamic_batching'", None),
    ('input { name: "x" max_batch_size: 8 }', "TG209", "1:19", "it belongs into the config: move it out of 'input'", None),
    (
        'optimization { gpu_execution_accelerator { name: "tensorrt" } }',
        "TG209",
        "1:16",
        'it belongs into execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } }',
        None,
    ),
    (
        'gpu_execution_accelerator { name: "tensorrt" }',
        "TG209",
        "1:1",
        'it belongs into optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } }',
        None,
    ),
    (
        'execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } }',
        "TG209",
        "1:1",
        'it belongs into optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
        None,
    ),
    ("graphs: true", "TG209", "1:1", "it belongs into optimization { cuda { graphs: true } }", None),
    ("num_versions: 2", "TG209", "1:1", "it belongs into version_policy { latest { num_versions: 2 } }", None),
    ("decoupled: true", "TG209", "1:1", "it belongs into model_transaction_policy { decoupled: true }", None),
    ("version_policy { num_versions: 1 }", "TG209", "1:18", "it belongs into latest { num_versions: 1 }", None),
    ("version_policy { latest: 2 }", "TG210", "1:26", "write latest { num_versions: 2 }", None),
    ("version_policy { latest { num_versions: 1 } all { } }", "TG214", "1:45", "'all' cannot stand beside 'latest' in line 1", None),
    (
        'version_policy { specific { versions: [ "1" ] } }',
        "TG210",
        "1:41",
        "write versions: 1 without quotes",
        "version_policy { specific { versions: [ 1 ] } }",
    ),
    (
        'model_transaction_policy: { decoupled: "true" }',
        "TG210",
        "1:40",
        "write decoupled: true without quotes",
        "model_transaction_policy: { decoupled: true }",
    ),
    ("response_cache { enable: on }", "TG210", "1:26", "write true", "response_cache { enable: true }"),
    ("response_cache { enable: 2 }", "TG210", "1:26", "write true or false", None),
    ("model_transaction_policy { decoupled }", "TG215", "1:28", "write such as decoupled: true", None),
    (
        'parameters { key: "a" value: { string_value: true } }',
        "TG210",
        "1:46",
        'write string_value: "true"',
        'parameters { key: "a" value: { string_value: "true" } }',
    ),
    ('parameters { key: a value: { string_value: "b" } }', "TG210", "1:19", 'write key: "a"', 'parameters { key: "a" value: { string_value: "b" } }'),
    (
        'parameters { key "a" value { string_value: "b" } }',
        "TG202",
        "1:17",
        "a colon is missing behind 'key'",
        'parameters { key: "a" value { string_value: "b" } }',
    ),
    ('parameters { key: "a" val: { string_value: "b" } }', "TG208", "1:23", "did you mean 'value'?", 'parameters { key: "a" value: { string_value: "b" } }'),
    ('parameters { key: "a" value: { int64_value: 4 } }', "TG208", "1:32", "did you mean 'string_value'?", None),
    ('parameters: "a"', "TG210", "1:13", 'write parameters { key: "..." value: { string_value: "..." } }', None),
    (
        'parameters [ { key: "a", value: "b" } ]',
        "TG216",
        "1:33",
        'write value: { string_value: "b" }; only parameters of accelerators and agents are plain',
        'parameters [ { key: "a", value: { string_value: "b" } } ]',
    ),
    ('parameters { "a": "b" }', "TG208", "1:14", 'write parameters { key: "a" value: { string_value: "b" } }', None),
    ('parameters { key: "a" key: "b" }', "TG213", "1:23", "'key' is given twice, here and in line 1, and may be given once", None),
    (
        'parameters { key: "a" value { string_value: "b" } value { string_value: "c" } }',
        "TG213",
        "1:51",
        "'value' is given twice, here and in line 1, and may be given once",
        None,
    ),
    (
        'model_repository_agents { agents [ { name: "c" parameters { key: "k" value { string_value: "v" } } } ] }',
        "TG216",
        "1:76",
        'write value: "v"; only parameters of the model itself have string_value',
        'model_repository_agents { agents [ { name: "c" parameters { key: "k" value: "v" } } ] }',
    ),
    ('ensemble_scheduling { step [ { model_name: "a" input_map: { "x": "y" } } ] }', "TG208", "1:61", 'write input_map { key: "x" value: "y" }', None),
    (
        'ensemble_scheduling { step [ { model_name: "a" model_version: "1" } ] }',
        "TG210",
        "1:63",
        "write model_version: 1 without quotes",
        'ensemble_scheduling { step [ { model_name: "a" model_version: 1 } ] }',
    ),
    ('ensemble_scheduling { step [ { model_name: "a" inputs { key: "x" value: "y" } } ] }', "TG208", "1:48", "did you mean 'input_map'?", None),
    ('step [ { model_name: "a" } ]', "TG209", "1:1", 'it belongs into ensemble_scheduling { step [ { model_name: "a" } ] }', None),
    ("sequence_batching { direct { } oldest { } }", "TG214", "1:32", "'oldest' cannot stand beside 'direct' in line 1", None),
    (
        'sequence_batching { direct { minimum_slot_utilization: "0.5" } }',
        "TG210",
        "1:56",
        "write minimum_slot_utilization: 0.5 without quotes",
        "sequence_batching { direct { minimum_slot_utilization: 0.5 } }",
    ),
    ("sequence_batching { direct { minimum_slot_utilization: 010 } }", "TG212", "1:56", "write it in decimal digits", None),
    ("sequence_batching { direct { minimum_slot_utilization: half } }", "TG210", "1:56", "give a number", None),
    ("sequence_batching { direct { minimum_slot_utilization: 50% } }", "TG210", "1:56", "give a number", None),
    (
        'model_warmup { name: "w" inputs { key: "x" value { data_type: TYPE_FP32 dims: 1 zero_data: true random_data: true } } }',
        "TG214",
        "1:97",
        "'random_data' cannot stand beside 'zero_data' in line 1",
        None,
    ),
    (
        'model_warmup { name: "w" input { key: "x" value { zero_data: true } } }',
        "TG208",
        "1:26",
        "did you mean 'inputs'?",
        'model_warmup { name: "w" inputs { key: "x" value { zero_data: true } } }',
    ),
    ('name: \'m"\nbackend: "b"', "TG204", "1:7", "the string has no closing quote", None),
    ("name: \u2018m\u2019", "TG204", "1:7", "the string is in typographic quotes \u2018 \u2019, as word processors and web pages make them", 'name: "m"'),
    ("name: «m»", "TG204", "1:7", "the string is in typographic quotes « », as word processors and web pages make them", 'name: "m"'),
    ('name: "m"; ; backend: "b"', "TG202", "1:12", "';' separates nothing here", 'name: "m";  backend: "b"'),
    ('; name: "m"', "TG202", "1:1", "';' separates nothing here", ' name: "m"'),
    ("input { dims: [ , 1 ] }", "TG202", "1:17", "a comma with no item before it", "input { dims: [  1 ] }"),
    ("input { dims: [ 1,, 2 ] }", "TG202", "1:19", "a comma with no item before it", "input { dims: [ 1, 2 ] }"),
    ("input { dims: [ 1, 2 } ", "TG201", "1:15", "'[' is never closed: '}' comes first, in line 1", None),
    ("input { dims: 1, 2 ] }", "TG202", "1:15", "the list has no opening bracket", "input { dims: [1, 2 ] }"),
    ('input [ { name: "x" } , ]', "TG202", "1:23", "a comma before the closing bracket of a list", 'input [ { name: "x" }  ]'),
    ('input [ { name: "a" }, { name: "b" ]', "TG201", "1:24", "'{' is never closed: ']' comes first, in line 1", None),
    ('input { name: "a" ]', "TG201", "1:19", "']' closes what '{' opened in line 1", 'input { name: "a" }'),
    ('input ( name: "a" )', "TG202", "1:7", "parentheses stand where braces should", 'input { name: "a" }'),
    ('input: [ { name: "a" } }', "TG201", "1:24", "'}' closes what '[' opened in line 1", 'input: [ { name: "a" } ]'),
    ('name: "a" # fine\n) \nmax_batch_size: 1', "TG203", "2:1", "')' means nothing here", None),
    ('name: "m" // the name', "TG207", "1:11", "'//' starts no comment here", 'name: "m" # the name'),
    ('name: "m" /* the name */\nmax_batch_size: 8', "TG207", "1:11", "'/*' starts no comment here", 'name: "m" # the name\nmax_batch_size: 8'),
    ('/* open\nname: "m"', "TG207", "1:1", "'/*' starts no comment here, and is not ended either", None),
    ('-- name\nname: "m"', "TG207", "1:1", "'--' starts no comment here", '# name\nname: "m"'),
    ('name: "m"\n=======\nmax_batch_size: 1', "TG206", "2:1", "the file holds an unresolved merge conflict", None),
    ('max_batch_size: ${MAX_BATCH}\nname: "m"', "TG205", "1:17", "'${MAX_BATCH}' is a place of a template that was not filled", None),
    ('name: "m" ${EXTRA}', "TG205", "1:11", "'${EXTRA}' is a place of a template that was not filled", None),
    ("${KEY}: 3", "TG205", "1:1", "'${KEY}' is a place of a template that was not filled", None),
    ('{% if gpu %}\nname: "m"', "TG205", "1:1", "'{% if gpu %}' is a place of a template that was not filled", None),
    ("input { dims: [ ${D}, 3 ] }", "TG205", "1:17", "'${D}' is a place of a template that was not filled", None),
    ('parameters { key: "a" value { string_value: ${V} } }', "TG205", "1:45", "'${V}' is a place of a template that was not filled", None),
    ("name: prefix_${NAME}", "TG205", "1:7", "'prefix_${NAME}' is a place of a template that was not filled", None),
    ("max_batch_size: @SIZE@", "TG205", "1:17", "'@SIZE@' is a place of a template that was not filled", None),
    ("max_batch_size: %(size)s", "TG205", "1:17", "'%(size)s' is a place of a template that was not filled", None),
    ("max_batch_size: <%= size %>", "TG205", "1:17", "'<%= size %>' is a place of a template that was not filled", None),
    ('[[package]]\nname = "m"', "TG200", "1:1", "the file is TOML or INI, and protobuf text is expected", None),
    ("---\nname: m\nmax_batch_size: 8", "TG200", "1:1", "the file is YAML, and protobuf text is expected", None),
    ('syntax = "proto3";', "TG200", "1:1", "the file is a protobuf schema (.proto), not a config", None),
    ("\x7fELF\x02\x01\x01\x00", "TG200", "1:1", "the file is a Linux library or program, not a config", None),
    (b"\x1f\x8b\x08\x00", "TG200", "1:1", "the file is a gzip archive, not a config", None),
    ('<?xml version="1.0"?><config/>', "TG200", "1:1", "the file is a web page or XML, not a config", None),
    ('[{"name": "m"}]', "TG200", "1:1", "the file is JSON, and protobuf text is expected", None),
    ('name: "m"\r\nmax_batchsize: 8\r\n', "TG208", "2:1", "did you mean 'max_batch_size'?", 'name: "m"\r\nmax_batch_size: 8\r\n'),
    ('name:\x1c"m"', "TG203", "1:6", "the blank character U+001C (a control character) stands in the text", 'name: "m"'),
    ('name: "m" \x00 max_batch_size: 1', "TG203", "1:11", "a control character (0x00) stands in the text", None),
    (b'name: "m"\xff', "TG203", "1:10", "byte 0xff, which is no UTF-8 stands in the text", None),
    ('name: "\\xZZ"', "TG204", "1:8", "\\x begins no escape", None),
    ('name: "\\u12"', "TG204", "1:8", "\\u begins no escape", None),
    ('input { name: "x" { dims: 1 } }', "TG202", "1:19", "braces without a field's name before them", None),
    ('input { input { name: "x" } }', "TG209", "1:9", "it belongs into the config: move it out of 'input'", None),
    ('name: { "m" }', "TG202", "1:7", "braces stand around plain values", 'name: "m"'),
    ('input: "x"', "TG210", "1:8", "write input { ... }", None),
    (
        'optimization: { execution_accelerators: [ { gpu_execution_accelerator: [ { name: "tensorrt" } ] } ] }',
        "TG210",
        "1:41",
        "write execution_accelerators { ... }",
        None,
    ),
    ('cc_model_filenames { key: 7.5 value: "m" }', "TG210", "1:27", 'write key: "7.5"', 'cc_model_filenames { key: "7.5" value: "m" }'),
    ("max_batch_size: 0x", "TG212", "1:17", "hexadecimal digits must follow the x", None),
    ("max_batch_size: 8;;", "TG202", "1:19", "';' separates nothing here", "max_batch_size: 8;"),
    ("max_batch_size: 1e3", "TG212", "1:17", "write 1000", "max_batch_size: 1000"),
    ("max_batch_size: 8k", "TG212", "1:17", "write the number alone, without 'k'", None),
    ("max_batch_size: true", "TG210", "1:17", "give a whole number from -2147483648 to 2147483647", None),
    ("max_batch_size: [ 8 ]", "TG210", "1:17", "write max_batch_size: 8", "max_batch_size: 8"),
    ("max_batch_size: { 8 }", "TG202", "1:17", "braces stand around plain values", "max_batch_size: 8"),
    ("max_batch_size:", "TG215", "1:1", "write such as max_batch_size: 8", None),
    ('"max_batch_size": 8', "TG204", "1:1", "the field's name 'max_batch_size' is in quotes", "max_batch_size: 8"),
    ("max_batch_size: 2147483648", "TG212", "1:17", "give a whole number from -2147483648 to 2147483647", None),
    ("input { dims: 9223372036854775808 }", "TG212", "1:15", "give a whole number from -9223372036854775808 to 9223372036854775807", None),
    ('backend: onnxruntime, name: "m"', "TG210", "1:10", 'write backend: "onnxruntime"', 'backend: "onnxruntime", name: "m"'),
    ('label_filename: "labels.txt"', "TG209", "1:1", 'it belongs into output { label_filename: "labels.txt" }', None),
    ('output { labels: "labels.txt" }', "TG208", "1:10", "did you mean 'label_filename'?", None),
    (
        "model_operations { op_library_filename: lib.so }",
        "TG210",
        "1:41",
        'write op_library_filename: "lib.so"',
        'model_operations { op_library_filename: "lib.so" }',
    ),
    ("default_model_filename: model.onnx", "TG210", "1:25", 'write default_model_filename: "model.onnx"', 'default_model_filename: "model.onnx"'),
    ('filename: "model.onnx"', "TG208", "1:1", "did you mean 'default_model_filename'?", None),
    ("[triton.ext]: 1", "TG217", "1:1", "a field's name in brackets is an extension, and no message of Triton's has extensions", None),
    ("dynamic_batching { max_queue_delay_microseconds: 1,000 }", "TG212", "1:50", "write 1000", None),
    ("max_batch_size: 1 000", "TG212", "1:17", "write 1000", None),
    ("max_batch_size: [1,000,000]", "TG212", "1:17", "write 1000000", None),
    ("instance_group { count: 1, 2 }", "TG210", "1:25", "write one of them, such as count: 1", None),
    ('name: "a", "b"', "TG210", "1:7", 'write one of them, such as name: "a"', None),
    ("max_queue_delay_microseconds: 1,000", "TG209", "1:1", "dynamic_batching { max_queue_delay_microseconds: 1000 }", None),
    ("kind: KIND_CPU", "TG209", "1:1", "it belongs into instance_group { kind: KIND_CPU }", None),
    ("count: 2", "TG209", "1:1", "it belongs into instance_group { count: 2 }", None),
    ("gpus: 0, 1", "TG209", "1:1", "it belongs into instance_group { gpus: [ 0, 1 ] }", None),
    (
        "max_batch_size: 8instance_group { count: 2 }",
        "TG202",
        "1:18",
        "a blank is missing between 8 and instance_group",
        "max_batch_size: 8\ninstance_group { count: 2 }",
    ),
    (
        'parameters { key: "c" value { "x" } }',
        "TG216",
        "1:31",
        "needs the name string_value before its value",
        'parameters { key: "c" value { string_value: "x" } }',
    ),
    (
        'parameters { key: "c" value: { 4 } }',
        "TG216",
        "1:32",
        "needs the name string_value before its value",
        'parameters { key: "c" value: { string_value: "4" } }',
    ),
    ("version_policy { latest { 1 } }", "TG210", "1:27", "write latest { num_versions: 1 }", "version_policy { latest { num_versions: 1 } }"),
    ("dynamic_batching { 8 }", "TG210", "1:20", "the braces of 'dynamic_batching' hold fields", None),
    ('input { "name": "a", dims: 1 }', "TG204", "1:9", "the field's name 'name' is in quotes", 'input { name: "a", dims: 1 }'),
    ('backend: "python" -- x', "TG207", "1:19", "'--' starts no comment here", 'backend: "python" # x'),
    ("--- the batch ---\nmax_batch_size: 8", "TG207", "1:1", "'--' starts no comment here", "#- the batch ---\nmax_batch_size: 8"),
    ("```\nmax_batch_size: 8\n```\n", "TG203", "1:1", "a code block of Markdown", "max_batch_size: 8\n"),
    ("```protobuf\r\nmax_batch_size: 8\r\n~~~", "TG203", "1:1", "a code block of Markdown", "max_batch_size: 8\r\n"),
    ("+max_batch_size: 8\n+dynamic_batching {\n+\n+}\n", "TG203", "1:1", "the text is a patch", "max_batch_size: 8\ndynamic_batching {\n\n}\n"),
    (' name: "m"\n-max_batch_size: 4\n+max_batch_size: 8\n', "TG203", "2:1", "the text is a patch", None),
    (
        'diff --git a/c b/c\nindex 12ab..34cd 100644\n--- a/c\n+++ b/c\n@@ -1,2 +1,2 @@ it\'s\n name: "m"\n-max_batch_size: 4\n+max_batch_size: 8\n',
        "TG203",
        "1:1",
        "the text is a patch",
        None,
    ),
    ("// \x00", "TG207", "1:1", "'//' starts no comment here", None),
    ("max_batch_size: +1\x00", "TG210", "1:17", "give a whole number", None),
    ('@@ -0,0 +1 @@\n+name: "m"', "TG203", "1:1", "the text is a patch", 'name: "m"'),
    ('model_config {name: "m" max_batch_size: 8}', "TG208", "1:1", "remove 'model_config {' and its closing brace", 'name: "m" max_batch_size: 8'),
    ('ModelConfig: <\n  name: "m"\n>', "TG208", "1:1", "remove 'ModelConfig: <' and its closing brace", '\n  name: "m"\n'),
]

# Several mistakes in one text: each is found, and nothing that merely follows from one.
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


def encoded(text):
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize(("text", "code", "place", "said", "fixed"), ONE, ids=[repr(case[0])[:60] for case in ONE])
def test_one_mistake_gives_one_finding(text, code, place, said, fixed):
    read = read_config(encoded(text), "m/config.pbtxt")
    assert not read.ok
    [finding] = read.diagnostics
    assert (finding.code, f"{finding.location.line}:{finding.location.column}") == (code, place), finding
    assert said in finding.hint or said in finding.message
    assert finding.severity is Severity.ERROR
    assert finding.consequence.startswith("Triton refuses the model")
    assert finding.message
    assert finding.hint
    assert str(finding.location).startswith("m/config.pbtxt:")


@pytest.mark.parametrize(("text", "fixed"), [(case[0], case[4]) for case in ONE], ids=[repr(case[0])[:60] for case in ONE])
def test_a_fix_gives_a_config_that_protobuf_reads_and_that_says_what_was_understood(text, fixed):
    read = read_config(encoded(text), "config.pbtxt")
    if fixed is None:
        assert not read.fixes
        return
    mended = apply_fixes(encoded(text), read.fixes)
    assert mended.decode() == fixed
    assert read_config(mended, "config.pbtxt").config == text_format.Parse(mended, ModelConfig()) == read.config


@pytest.mark.parametrize(("text", "expected"), SEVERAL, ids=[repr(case[0])[:60] for case in SEVERAL])
def test_every_mistake_is_found_and_nothing_else(text, expected):
    read = read_config(encoded(text), "config.pbtxt")
    assert not read.ok
    assert [f"{finding.code} {finding.location.line}:{finding.location.column}" for finding in read.diagnostics] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name: "$MODEL"', ["1:7"]),
        ('name: "{{ .Values.name }}"\nmax_batch_size: ${SIZE}', ["1:7"]),
        ('input { name: "x-${I}" dims: 1 }\nensemble_scheduling { step { model_name: "<STEP>" } }', ["1:15", "2:42"]),
        ('model_warmup { inputs { key: "a" value { input_data_file: "%FILE%" } } }', ["1:59"]),
    ],
)
def test_a_place_of_a_template_in_a_string_is_a_warning_whether_the_file_parses_or_not(text, expected):
    """Triton takes it for the text itself, so that it is no mistake of the text."""
    read = read_config(encoded(text), "config.pbtxt")
    assert [f"{note.location.line}:{note.location.column}" for note in read.notes] == expected
    assert {(note.code, note.severity) for note in read.notes} == {("TG205", Severity.WARNING)}


@pytest.mark.parametrize(
    "text",
    [
        'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar.gz" } }',
        'parameters { key: "tokenizer_dir" value { string_value: "${tokenizer_dir}" } }',
        'metric_tags { key: "a" value: "{{ x }}" }',
        'input { name: "a$b" } output { name: "serving_default_x:0" }',
    ],
)
def test_dollars_that_may_be_meant_are_no_places_of_a_template(text):
    assert read_config(encoded(text), "config.pbtxt").notes == ()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('parameters { key: "A" value { string_value: "1" } }\nparameters { key: "A" value { string_value: "2" } }\n', 2, "'A' is given twice in 'parameters'"),
        ('metric_tags [ { key: "A" value: "1" }, { key: "A" value: "1" } ]\n', 1, "'A' is given twice in 'metric_tags'"),
        (
            'ensemble_scheduling { step { input_map { key: "x" value: "a" } input_map { value: "b" key: "x" } } }\n',
            1,
            "'x' is given twice in 'input_map'",
        ),
    ],
)
def test_a_key_given_twice_in_a_map_parses_and_is_said(text, line, said):
    read = read_config(text.encode(), "config.pbtxt")
    (note,) = read.notes
    assert read.ok
    assert (note.code, note.severity) == ("TG213", Severity.WARNING)
    assert said in note.message
    assert note.location.line == line


def test_the_same_key_in_different_maps_is_fine():
    text = 'parameters { key: "A" value { string_value: "1" } }\nmetric_tags { key: "A" value: "1" }\n'
    assert read_config(text.encode(), "config.pbtxt").notes == ()
