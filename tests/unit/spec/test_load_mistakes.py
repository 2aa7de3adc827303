"""Mistakes in a spec: one finding for each, and all of them."""

import re

import pytest

ONE_MODEL = "version: 1\nmodels:\n  - {{name: m, source: m.onnx, {}}}\n"


class TestOneFindingForOneMistake:
    @pytest.mark.parametrize(
        ("text", "code", "at", "message"),
        [
            ("batching: 8", "TG010", "8", "batching: expected auto, none or a mapping with max, preferred and max_queue_delay, got the number 8"),
            ("batching: {max: '4'}", "TG010", "'4'", "batching.max: expected a whole number, got the text '4'"),
            ("batching: {max: 1.5}", "TG010", "1.5", "batching.max: expected a whole number, got the number 1.5"),
            ("batching: {max: true}", "TG010", "true", "batching.max: expected a whole number, got true"),
            ("batching: {max: -1}", "TG011", "-1", "batching.max: must be at least 0, and it is -1"),
            ("batching: {preferred: 4}", "TG010", "4", "batching.preferred: expected a list, got the number 4"),
            ("batching: {preferred: ['4']}", "TG010", "'4'", "batching.preferred, item 1: expected a whole number, got the text '4'"),
            ("batching: {max: 8, preferred: [8, 16]}", "TG015", "[8, 16]", "batching.preferred: 16 is above max: 8"),
            ("batching: {preferred: [8, 4]}", "TG011", "[8, 4]", "preferred sizes must ascend, each once: 4 stands after 8"),
            ("batching: {preferred: [4, 4]}", "TG011", "[4, 4]", "preferred sizes must ascend, each once: 4 is there twice"),
            ("batching: {preferred: [0]}", "TG011", "0", "batching.preferred, item 1: must be at least 1, and it is 0"),
            ("batching: {max: 0, preferred: [1]}", "TG015", "[1]", "batching.preferred: batching is off (max: 0), so there is no batch size to prefer"),
            (
                "batching: {max_queue_delay: 2}",
                "TG012",
                "2",
                "batching.max_queue_delay: 2 has no unit; a duration is written like 2ms (units: us, ms, s, m, h)",
            ),
            ("accelerator: tensort", "TG011", "tensort", "accelerator: expected one of none, cuda, tensorrt, openvino; got the text 'tensort'"),
            ("accelerator: {name: x}", "TG010", "{name: x}", "accelerator: expected one of none, cuda, tensorrt, openvino; got a mapping"),
            ("cpu_threads: 0", "TG011", "0", "cpu_threads: must be at least 1, and it is 0"),
            ("shapes: [3]", "TG010", "[3]", "shapes: expected a mapping (key: value), got a list"),
            ("shapes: {x: 3}", "TG010", "3", "shapes.x: expected a list of dimensions or a mapping with min, opt and max, got the number 3"),
            ("shapes: {x: [3, '4']}", "TG010", "[3, '4']", "shapes.x: expected a list of whole numbers, item 2 is the text '4'"),
            ("shapes: {x: [-1]}", "TG011", "[-1]", "shapes.x: item 1 is -1, and it must be at least 1"),
            ("shapes: {x: []}", "TG011", "[]", "shapes.x: the list of dimensions is empty"),
            ("shapes: {x: {min: [2], opt: [1], max: [3]}}", "TG015", "[1]", "shapes.x.opt: dimension 1 of opt is 1, below min: 2"),
            ("shapes: {x: {min: [1], opt: [2], max: [1]}}", "TG015", "[1]", "shapes.x.max: dimension 1 of max is 1, below opt: 2"),
            ("shapes: {x: {min: [1], opt: [1, 1], max: [1]}}", "TG015", "[1, 1]", "opt has 2 dimensions and min has 1"),
            ("shapes: {x: [2147483648]}", "TG011", "[2147483648]", "shapes.x: item 1 is 2147483648, and it must be at most 2147483647"),
            (
                "shapes: {x: {min: [1], opt: [2], max: [4294967296]}}",
                "TG011",
                "4294967296",
                "shapes.x.max, item 1: must be at most 2147483647, and it is 4294967296",
            ),
            ("batching: {max: 2147483648}", "TG011", "2147483648}", "batching.max: must be at most 2147483647, and it is 2147483648"),
            ("instances: []", "TG011", "[]", "instances: the list of groups is empty"),
            ("instances: gpu", "TG010", "gpu", "instances: expected a list of groups, got the text 'gpu'"),
            ("instances: {kind: gpus}", "TG011", "gpus", "instances.kind: expected one of auto, gpu, cpu, model; got the text 'gpus'"),
            ("instances: {kind: cpu, gpus: [0]}", "TG015", "[0]", "gpus is for kind: gpu, and the kind is cpu"),
            ("instances: [{count: 0}]", "TG011", "0}", "instances.count: must be at least 1, and it is 0"),
            ("instances: {kind: gpu, gpus: [0, 0]}", "TG011", "[0, 0]", "instances.gpus: GPU 0 is listed twice"),
            ("warmup: [0]", "TG011", "[0]", "warmup: item 1 is 0, and it must be at least 1"),
            ("warmup: all", "TG010", "all", "warmup: expected auto, none or a list of batch sizes, got the text 'all'"),
            ("warmup: [8, 1]", "TG011", "[8, 1]", "warmup: batch sizes must ascend, each once: 1 stands after 8"),
            ("batching: {max: 4}, warmup: [1, 8]", "TG015", "[1, 8]", "warmup: 8 is above batching.max: 4"),
            ("batching: none, warmup: [1, 2]", "TG015", "[1, 2]", "warmup: batching is off, so 2 cannot be warmed up"),
            ("version: 0", "TG011", "0", "version: a version is at least 1 and at most 9223372036854775807, got 0"),
            ("version: newest", "TG010", "newest", "version: expected a whole number or auto, got the text 'newest'"),
            ("versions: {policy: specific}", "TG009", "versions: {policy: specific}", "versions.versions: policy: specific needs the versions to serve"),
            ("versions: {count: 0}", "TG011", "0", "versions.count: must be at least 1, and it is 0"),
            ("versions: {versions: [1]}", "TG015", "[1]", "versions is for policy: specific, and the policy is latest"),
            ("samples: {x: [[1, 2], [3]]}", "TG011", "[[1, 2], [3]]", "samples.x: the lists of a sample have different lengths"),
            ("samples: {x: [1, a]}", "TG011", "[1, a]", "samples.x: a list in a sample mixes number and text"),
            ("samples: {x: [{a: 1}]}", "TG010", "[{a: 1}]", "samples.x: a sample holds numbers, true/false or texts, not a mapping"),
            ("samples: {x: []}", "TG011", "[]", "samples.x: a list in a sample is empty"),
            ("labels: {x: [a]}", "TG010", "[a]", "labels.x: expected a text, got a list"),
            ("config: [a]", "TG010", "[a]", "config: expected a mapping (key: value), got a list"),
        ],
    )
    def test_in_a_model(self, folder, text, code, at, message):
        finding = folder.model_finding(text)
        said = re.sub(r"; [\w.]+ is at \S+:\d+:\d+$", "", finding.message) if code == "TG015" else finding.message
        assert (finding.code, said, finding.model) == (code, message, "m")
        assert finding.location.line == 3
        assert finding.location.text[finding.location.column - 1 :].startswith(at)
        assert finding.hint

    @pytest.mark.parametrize(
        ("text", "code", "line", "column", "words"),
        [
            ("triton: {release: 25.10}", "TG010", 2, 19, "25.1 is a number"),
            ("triton: {release: 25.08}", "TG010", 2, 19, "25.08 is a number"),
            ("triton: {release: '25.8'}", "TG011", 2, 19, "'25.8' is not a release"),
            ("triton: {release: '25.13'}", "TG011", 2, 19, "'25.13' is not a release"),
            ("triton: {engine_cache: cache}", "TG011", 2, 24, "not an absolute path"),
            ("triton: {engine_cache: /a/../b}", "TG011", 2, 24, "not an absolute path"),
            ("triton: 25", "TG010", 2, 9, "expected a mapping"),
            ("repository: ''", "TG011", 2, 13, "empty"),
            ('repository: "a\\tb"', "TG011", 2, 13, "control character"),
            ("defaults: {batching: {max: x}}", "TG010", 2, 28, "defaults.batching.max: expected a whole number"),
        ],
    )
    def test_outside_of_models(self, folder, text, code, line, column, words):
        finding = folder.finding(f"version: 1\n{text}\nmodels:\n  - {{name: a, source: a.onnx}}\n  - {{name: b, source: b.onnx}}\n")
        assert (finding.code, finding.location.line, finding.location.column) == (code, line, column)
        assert words in finding.message
        assert finding.hint

    def test_release_as_number_says_to_quote(self, folder):
        assert 'release: "25.08"' in folder.finding("version: 1\ntriton: {release: 25.1}\nmodels: [{name: a, source: a.onnx}]").hint

    def test_a_default_that_does_not_fit_a_model_names_the_model(self, folder):
        finding = folder.finding(
            "version: 1\ndefaults: {warmup: [1, 8]}\nmodels:\n  - {name: a, source: a.onnx}\n  - {name: b, source: b.onnx, batching: {max: 4}}\n"
        )
        assert (finding.location.line, finding.location.column, finding.model) == (2, 12, "b")
        assert finding.message.startswith("model 'b': warmup: 8 is above batching.max: 4")

    def test_a_wrong_key_does_not_hide_a_contradiction_nor_make_one_up(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - {name: m, source: m.onnx, zzz: 1, batching: {max: 4}, warmup: [8]}\n")
        assert [finding.code for finding in found] == ["TG008", "TG015"]
        assert folder.model_finding("batching: {max: '4'}, warmup: [8]").code == "TG010"

    def test_models_that_are_no_mappings(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - a.onnx\n  - [b]\n")
        assert [(finding.code, finding.location.line) for finding in found] == [("TG010", 3), ("TG010", 4)]
        assert folder.finding("version: 1\nmodels: {m: m.onnx}\n").message == "models: expected a list, got a mapping"

    def test_findings_come_in_the_order_of_the_text(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - {name: a b, source: 1}\n  - {name: c, source: c.onnx, x: 1}\nrepositori: x\n")
        places = [(finding.location.line, finding.location.column) for finding in found]
        assert places == sorted(places)
        assert len(places) == 4


class TestAllThatIsWrongOfOneValue:
    """Whatever a finding says to write is right: following it leaves no other finding about the value."""

    @pytest.mark.parametrize(
        ("keys", "messages", "right"),
        [
            ("batching: {max: 4, preferred: [8, 2, 2]}", ["8 is above max: 4", "2 stands after 8"], "batching: {max: 4, preferred: [2]}"),
            (
                "batching: {max: 4, preferred: [8, 2, 2, 0]}",
                ["8 is above max: 4", "2 stands after 8", "item 4: must be at least 1"],
                "batching: {max: 8, preferred: [2, 8]}",
            ),
            ("batching: {max: 0, preferred: [4, 2]}", ["batching is off"], "batching: {max: 4, preferred: [2, 4]}"),
            ("batching: {max: 4}, warmup: [99, 1]", ["99 is above batching.max: 4", "1 stands after 99"], "batching: {max: 4}, warmup: [1]"),
            (
                "batching: {max: 4}, warmup: [99, x, 0]",
                ["99 is above batching.max: 4", "item 2 is the text 'x'", "item 3 is 0"],
                "batching: {max: 99}, warmup: [99]",
            ),
            ("shapes: {x: [0, a, 3]}", ["item 1 is 0", "item 2 is the text 'a'"], "shapes: {x: [1, 2, 3]}"),
            (
                "shapes: {x: {min: [2, 2], opt: [1, 1], max: [3, 3]}}",
                ["dimension 1 of opt", "dimension 2 of opt"],
                "shapes: {x: {min: [1, 1], opt: [2, 2], max: [3, 3]}}",
            ),
            ("instances: {kind: cpu, gpus: [0, 0]}", ["the kind is cpu", "GPU 0 is listed twice"], "instances: {kind: gpu, gpus: [0]}"),
            ("versions: {policy: all, versions: [2, 1]}", ["the policy is all", "1 stands after 2"], "versions: {policy: specific, versions: [1, 2]}"),
        ],
    )
    def test_in_one_run(self, folder, keys, messages, right):
        found = folder.findings(ONE_MODEL.format(keys))
        assert len(found) == len(messages)
        for words in messages:
            assert any(words in finding.message for finding in found), words
        folder.model(right)

    def test_remedies(self, folder):
        hints = {finding.code: finding.hint for finding in folder.findings(ONE_MODEL.format("batching: {max: 4, preferred: [8, 2, 2]}"))}
        assert hints == {"TG015": "raise max to 8 and write preferred: [2, 8], or prefer [2]", "TG011": "write [2]"}
        hints = {finding.code: finding.hint for finding in folder.findings(ONE_MODEL.format("batching: {max: 1, preferred: [8]}"))}
        assert hints == {"TG015": "raise max to 8, or remove preferred"}

    def test_a_name(self, folder):
        found = folder.findings("version: 1\nmodels: [{name: '.a b', source: m.onnx}]")
        assert sorted(finding.message for finding in found) == [
            "name: '.a b' starts with a dot",
            "name: the name '.a b' has characters that do not survive in a URL or a shell: ' '",
        ]
        found = folder.findings(f"version: 1\nmodels: [{{name: {'ü' * 128}, source: m.onnx}}]")
        assert ["longer than 255 bytes" in finding.message for finding in found].count(True) == 1
        assert len(found) == 2

    def test_a_default_and_what_it_means_for_a_model(self, folder):
        found = folder.findings("version: 1\ndefaults: {warmup: [99, 1]}\nmodels: [{name: m, source: m.onnx, batching: {max: 4}}]")
        assert ["1 stands after 99" in finding.message for finding in found].count(True) == 1
        assert ["99 is above batching.max: 4" in finding.message for finding in found].count(True) == 1
