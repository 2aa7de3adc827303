"""From a spec file to values, and from mistakes to findings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritongen.errors import SpecError
from tritongen.spec import load_spec
from tritongen.spec.models import Batching, InstanceGroup, ShapeRange, Source, Spec

FULL = """\
version: 1
triton: {release: "25.08", engine_cache: /cache/engines}
repository: out/models
defaults:
  accelerator: tensorrt
  instances: {kind: gpu, count: 2}
models:
  - name: resnet50
    source: ../elsewhere/resnet50.onnx
    precision: fp16
    batching: {max: 16, preferred: [4, 8, 16], max_queue_delay: 1.5ms}
    shapes: {image: [3, 224, 224], ids: {min: [16], opt: [128], max: [512]}}
    warmup: [1, 16]
    samples: {sr: 16000, text: hello, flags: [[true, false]], ids: ids.npy}
    labels: {probabilities: labels.txt}
    versions: {policy: specific, versions: [1, 3]}
    version: auto
    config: {response_cache: {enable: true}, metric_tags: null}
  - name: other
    source: {package: pydantic, path: main.py}
    instances: [{kind: cpu}]
    accelerator: none
    cpu_threads: 4
    batching: none
    warmup: none
"""


@pytest.fixture
def full(folder):
    (folder.path.parent / "elsewhere").mkdir(exist_ok=True)
    (folder.path.parent / "elsewhere/resnet50.onnx").write_bytes(b"x")
    (folder.path / "labels.txt").write_text("cat\n")
    (folder.path / "ids.npy").write_bytes(b"x")
    return folder


class TestValues:
    def test_every_key(self, full):
        spec = full.load(FULL).spec
        assert (spec.triton.release, spec.triton.engine_cache, spec.repository) == ("25.08", "/cache/engines", "out/models")
        first, second = spec.models
        assert (first.accelerator, first.precision, first.backend) == ("tensorrt", "fp16", "onnxruntime")
        assert first.batching == Batching(max=16, preferred=(4, 8, 16), max_queue_delay="1500us")
        assert first.batching.max_queue_delay_us == 1500
        assert first.instances == (InstanceGroup(kind="gpu", count=2),)
        assert first.shapes["image"].fixed
        assert first.shapes["ids"] == ShapeRange(min=(16,), opt=(128,), max=(512,))
        assert first.samples == {"sr": 16000, "text": "hello", "flags": ((True, False),), "ids": "ids.npy"}
        assert (first.versions.policy, first.versions.versions, first.version, first.warmup) == ("specific", (1, 3), "auto", (1, 16))
        assert first.config == {"response_cache": {"enable": True}, "metric_tags": None}
        assert second.source == Source(package="pydantic", path="main.py")
        assert (second.accelerator, second.cpu_threads, second.batching.max, second.warmup) == ("none", 4, 0, ())
        assert second.instances == (InstanceGroup(kind="cpu", count=1),)

    def test_the_smallest_spec(self, folder):
        (model,) = folder.load("version: 1\nmodels: [{name: m, source: m.onnx}]").spec.models
        assert model.batching.max is None
        assert (model.backend, model.accelerator, model.precision, model.warmup, model.version) == ("onnxruntime", "none", "fp32", "auto", 1)
        assert model.instances == (InstanceGroup(kind="auto", count=1),)

    def test_a_models_own_key_replaces_the_whole_default(self, folder):
        spec = folder.load(
            """\
            version: 1
            defaults: {batching: {max: 8, max_queue_delay: 2ms}}
            models:
              - {name: a, source: a.onnx, batching: {max: 4}}
              - {name: b, source: b.onnx}
            """
        ).spec
        assert [(model.batching.max, model.batching.max_queue_delay_us) for model in spec.models] == [(4, 0), (8, 2000)]

    def test_anchors_and_merge_keys(self, folder):
        spec = folder.load(
            """\
            version: 1
            models:
              - &first {name: a, source: a.onnx, batching: {max: 4}}
              - {<<: *first, name: b}
            """
        ).spec
        assert [(model.name, model.source.path, model.batching.max) for model in spec.models] == [("a", "a.onnx", 4), ("b", "a.onnx", 4)]

    def test_byte_order_mark_and_windows_lines(self, folder):
        file = folder.path / "spec.yaml"
        file.write_bytes(b"\xef\xbb\xbfversion: 1\r\nmodels:\r\n  - name: m\r\n    source: m.onnx\r\n")
        assert load_spec(file).spec.models[0].name == "m"

    def test_paths_are_relative_to_the_spec(self, full, monkeypatch):
        full.write(FULL)
        monkeypatch.chdir(full.path.parent)
        loaded = load_spec(Path(full.path.name) / "spec.yaml")
        assert loaded.repository_path() == full.path / "out/models"
        assert loaded.source_path(0) == full.path / "../elsewhere/resnet50.onnx"
        assert loaded.source_path(1).name == "main.py"

    def test_values_cannot_be_changed(self, full):
        spec = full.load(FULL).spec
        with pytest.raises(ValueError, match="frozen"):
            spec.models[0].name = "other"

    def test_spec_made_in_python(self):
        spec = Spec.model_validate({"version": 1, "defaults": {"cpu_threads": 2}, "models": [{"name": "a", "source": "a.onnx"}]})
        assert spec.models[0].cpu_threads == 2
        with pytest.raises(ValueError, match="only by letter case"):
            Spec.model_validate({"version": 1, "models": [{"name": "a", "source": "a.onnx"}, {"name": "A", "source": "a.onnx"}]})


class TestLocate:
    def place(self, loaded, *path):
        location = loaded.locate(path)
        return location.line, location.column

    def test_key_of_a_mapping_and_item_of_a_list(self, full):
        loaded = full.load(FULL)
        assert self.place(loaded, "models", 0, "batching", "max") == (11, 16)
        assert self.place(loaded, "models", 0, "batching", "preferred", 1) == (11, 40)
        assert self.place(loaded, "models", 1) == (19, 5)
        assert loaded.locate(("models", 0, "precision")).text == "    precision: fp16"

    def test_nearest_ancestor(self, full):
        loaded = full.load(FULL)
        assert self.place(loaded, "models", 0, "config", "response_cache", "none", "deeper") == (18, 14)
        assert self.place(loaded, "models", 9, "name") == (7, 1)
        assert self.place(loaded, "nothing") == (1, 1)
        assert self.place(loaded) == (1, 1)

    def test_inherited_key_is_found_under_defaults(self, full):
        loaded = full.load(FULL)
        assert self.place(loaded, "models", 0, "accelerator") == (5, 3)
        assert self.place(loaded, "models", 1, "accelerator") == (22, 5)
        assert self.place(loaded, "models", 0, "instances", 0, "count") == (6, 26)


class TestWholeFile:
    @pytest.mark.parametrize("text", ["", "\n\n  \n", "# comment\n", "---\n", "~\n"])
    def test_empty(self, folder, text):
        finding = folder.finding(text)
        assert finding.code == "TG003"
        assert "tritongen init" in finding.hint

    def test_list_at_the_top(self, folder):
        finding = folder.finding("- name: m\n  source: m.onnx\n")
        assert (finding.code, "list" in finding.message, "models:" in finding.hint) == ("TG003", True, True)

    def test_single_value(self, folder):
        assert "single value" in folder.finding("just a text").message

    def test_missing_file(self, tmp_path):
        with pytest.raises(SpecError) as caught:
            load_spec(tmp_path / "none.yaml")
        assert caught.value.diagnostics[0].code == "TG001"
        assert caught.value.exit_code == 2

    def test_broken_yaml_is_one_finding(self, folder):
        finding = folder.finding("version: 1\nmodels:\n\t- name: m\n")
        assert (finding.code, finding.location.line, finding.location.text) == ("TG004", 3, "\t- name: m")

    def test_yaml_findings_and_spec_findings_come_together(self, folder):
        found = folder.findings("version: 1\nversion: 1\nmodels:\n  - {name: m, source: m.onnx, sauce: x}\n")
        assert [finding.code for finding in found] == ["TG005", "TG008"]

    def test_a_value_with_a_finding_is_not_judged_again(self, folder):
        assert folder.finding("version: 1\nmodels:\n  - {name: m, source: m.onnx, cpu_threads: 99999999999999999999}\n").code == "TG006"
        assert folder.finding("version: 1\nmodels:\n  - {name: m, source: *gone}\n").code == "TG006"


class TestVersion:
    @pytest.mark.parametrize(
        ("line", "words", "hint"),
        [
            ("", "does not say which version", "add version: 1"),
            ("version: '1'\n", "the text '1'", "write version: 1"),
            ("version: 1.0\n", "not 1.0", "write version: 1"),
            ("version: 0\n", "not 0", "write version: 1"),
            ("version: true\n", "not true", "write version: 1"),
            ("version: [1]\n", "not [1]", "write version: 1"),
        ],
    )
    def test_wrong_version_does_not_hide_other_findings(self, folder, line, words, hint):
        first, second = folder.findings(f"{line}models:\n  - {{name: m, source: m.onnx, precison: fp16}}\n")
        assert (first.code, second.code) == ("TG007", "TG008")
        assert words in first.message
        assert hint in first.hint

    def test_a_newer_version_says_to_upgrade_and_nothing_else(self, folder):
        finding = folder.finding("version: 2\nnew_key: 1\nmodels: {a: b}\n")
        assert finding.code == "TG007"
        assert "version 2" in finding.message
        assert "upgrade" in finding.hint


class TestNames:
    @pytest.mark.parametrize("name", ["m", "resnet50", "_x", "a.b-c_d+1", "9lives", "A" * 255])
    def test_good(self, folder, name):
        assert folder.load(f"version: 1\nmodels: [{{name: '{name}', source: m.onnx}}]").spec.models[0].name == name

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("''", "empty"),
            ("a/b", "'/'"),
            ('"a\\0b"', "'\\x00'"),
            ('"a\\nb"', "'\\n'"),
            ("..", "dot"),
            (".", "dot"),
            (".hidden", "dot"),
            ("a b", "' '"),
            ("-rf", "'-'"),
            ("modèle", "'è'"),
            ("a$b", "'$'"),
            ("a" * 256, "longer than 255 bytes"),
        ],
    )
    def test_bad(self, folder, name, words):
        finding = folder.finding(f"version: 1\nmodels:\n  - name: {name}\n    source: m.onnx\n")
        assert (finding.code, finding.location.line, finding.location.column) == ("TG013", 3, 11)
        assert words in finding.message
        assert finding.hint
        assert finding.consequence

    def test_two_models_of_one_name_name_both_places(self, folder):
        text = (
            "version: 1\nmodels:\n  - {name: net, source: a.onnx}\n  - {name: b, source: b.onnx}\n  - {name: NET, source: c.onnx}\n  - {name: net, sourc: x}\n"
        )
        found = [finding for finding in folder.findings(text) if finding.code == "TG014"]
        assert [(finding.location.line, finding.location.column) for finding in found] == [(5, 12), (6, 12)]
        assert all("spec.yaml:3:12" in finding.message for finding in found)
        assert "letter case" in found[0].message
        assert "letter case" not in found[1].message

    def test_a_number_as_name_says_to_quote_it(self, folder):
        finding = folder.finding("version: 1\nmodels:\n  - {name: 50, source: a.onnx}\n")
        assert (finding.code, finding.message, finding.hint) == ("TG010", "name: expected a text, got the number 50", "put it in quotes")


class TestKeys:
    @pytest.mark.parametrize(
        ("text", "key", "hint"),
        [
            ("version: 1\nrepositry: x\nmodels: [{name: m, source: m.onnx}]", "repositry", "'repository'"),
            ("version: 1\ntriton: {relase: '25.08'}\nmodels: [{name: m, source: m.onnx}]", "relase", "'release'"),
            ("version: 1\ndefaults: {precison: fp32}\nmodels: [{name: m, source: m.onnx}]", "precison", "'precision'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, batchng: 1}", "batchng", "'batching'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, batching: {maximum: 1}}", "maximum", "'max'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, shapes: {x: {min: [1], opt: [1], max: [1], maxx: [1]}}}", "maxx", "'max'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, instances: {kinds: gpu}}", "kinds", "'kind'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, instances: [{gpu: 1}]}", "gpu: 1", "'gpus'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, versions: {polcy: all}}", "polcy", "'policy'"),
            ("version: 1\nmodels:\n  - {name: m, source: {pakage: p, path: x}}", "pakage", "'package'"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, max_batch_size: 8}", "max_batch_size", "batching: {max: 8}"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, instance_group: []}", "instance_group", "instances:"),
            ("version: 1\nmodels:\n  - {name: m, source: m.onnx, metric_tags: {}}", "metric_tags", "config:"),
            ("version: 1\nprecision: fp16\nmodels: [{name: m, source: m.onnx}]", "precision", "key of a model"),
            ("version: 1\nzzz: 1\nmodels: [{name: m, source: m.onnx}]", "zzz", "version, triton, repository, server, deploy, defaults, models"),
            ("version: 1\ndefaults: {name: x}\nmodels: [{name: m, source: m.onnx}]", "name: x", "the keys here are: backend"),
        ],
    )
    def test_unknown_key_offers_the_right_one(self, folder, text, key, hint):
        finding = folder.finding(text)
        assert finding.code == "TG008"
        assert finding.location.text[finding.location.column - 1 :].startswith(key)
        assert hint in finding.hint

    def test_missing_keys_stand_at_their_mapping(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - {source: m.onnx}\n  - {name: m}\n  - {name: n, source: {package: pydantic}}\n")
        assert [(f.code, f.location.line, f.message) for f in found] == [
            ("TG009", 3, "'name' is missing"),
            ("TG009", 4, "'source' is missing"),
            ("TG009", 5, "source: 'path' is missing"),
        ]

    def test_no_models(self, folder):
        assert folder.finding("version: 1\n").message == "'models' is missing"
        assert folder.finding("version: 1\nmodels: []\n").message == "models: the list is empty"
        assert folder.finding("version: 1\nmodels:\n").message == "models: the key has no value"

    def test_keys_without_a_value(self, folder):
        found = folder.findings("version: 1\ntriton:\nmodels:\n  - name: m\n    source: m.onnx\n    batching:\n    shapes: {x: }\n    samples: {y: ~}\n")
        assert [(f.code, f.location.line, f.message) for f in found] == [
            ("TG009", 2, "triton: the key has no value"),
            ("TG009", 6, "batching: the key has no value"),
            ("TG009", 7, "shapes.x: the key has no value"),
            ("TG009", 8, "samples.y: the key has no value"),
        ]


class TestFiles:
    def test_copied_files_must_exist(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - {name: m, source: m.onnx, labels: {y: none.txt}, samples: {x: none.npy}}\n")
        assert [(finding.code, finding.location.column) for finding in found] == [("TG016", 43), ("TG016", 67)]
        assert all("there is no file" in finding.message for finding in found)

    @pytest.mark.parametrize("path", ["../labels.txt", "{parent}/labels.txt", "sub/../../labels.txt", "link.txt", "linked/labels.txt"])
    def test_copied_files_may_not_lie_outside(self, tmp_path, folder, path):
        folder.path = tmp_path / "spec"
        folder.path.mkdir()
        (folder.path / "m.onnx").write_bytes(b"x")
        (tmp_path / "labels.txt").write_text("cat")
        (folder.path / "link.txt").symlink_to(tmp_path / "labels.txt")
        (folder.path / "linked").symlink_to(tmp_path)
        finding = folder.model_finding(f"labels: {{y: '{path.format(parent=tmp_path)}'}}")
        assert finding.code == "TG016"
        assert "outside" in finding.message
        assert str(folder.path) in finding.hint

    def test_links_that_stay_inside_are_fine(self, folder):
        (folder.path / "real").mkdir()
        (folder.path / "real" / "labels.txt").write_text("cat")
        (folder.path / "labels.txt").symlink_to(folder.path / "real" / "labels.txt")
        assert folder.model("labels: {y: labels.txt}").labels == {"y": "labels.txt"}

    def test_loop_of_links_and_folders(self, folder):
        (folder.path / "loop.txt").symlink_to(folder.path / "loop.txt")
        assert folder.model_finding("labels: {y: loop.txt}").code == "TG016"
        (folder.path / "dir.txt").mkdir()
        assert "not a file" in folder.model_finding("labels: {y: dir.txt}").message

    def test_a_too_long_name(self, folder):
        assert folder.model_finding(f"labels: {{y: {'a' * 5000}}}").code == "TG016"

    def test_missing_sources_of_a_spec_without_faults_are_left_to_the_reader_of_the_file(self, folder):
        loaded = folder.load("version: 1\nmodels: [{name: m, source: ~/no/such.onnx}]")
        assert loaded.source_path(0) == Path.home() / "no/such.onnx"

    def test_a_model_file_that_cannot_be_opened_is_said_at_its_place_beside_all_else(self, folder):
        (folder.path / "empty.onnx").write_bytes(b"")
        found = folder.findings(
            """\
            version: 1
            models:
              - {name: a, source: a.onnxx, zzz: 1}
              - {name: b, source: empty.onnx}
              - {name: c, source: {package: pydantic, path: no/such.onnx}}
            """
        )
        assert [(finding.code, finding.location.line, finding.location.column) for finding in found] == [
            ("TG020", 3, 23),
            ("TG008", 3, 32),
            ("TG023", 4, 23),
            ("TG020", 5, 23),
        ]
        assert "a.onnxx: there is no such file" in found[0].message
        assert "a.onnx" in found[0].hint

    @pytest.mark.parametrize("url", ["https://example.com/m.onnx", "s3://bucket/m.onnx", "file:///m.onnx"])
    def test_urls_are_not_read(self, folder, url):
        finding = folder.finding(f"version: 1\nmodels: [{{name: m, source: '{url}'}}]")
        assert (finding.code, finding.location.line) == ("TG011", 2)
        assert "URLs are not read" in finding.message
        assert finding.hint.startswith("download the file")

    def test_unknown_home(self, folder):
        finding = folder.finding("version: 1\nmodels: [{name: m, source: ~nosuchuserhere/m.onnx}]")
        assert (finding.code, "home folder" in finding.message) == ("TG016", True)

    def test_files_are_looked_for_in_a_spec_with_other_faults(self, folder):
        found = folder.findings("version: 1\nmodels:\n  - {name: m, source: {package: no_such_package_here, path: x}, labels: {y: none.txt}, zzz: 1}\n")
        assert sorted(finding.code for finding in found) == ["TG008", "TG016", "TG017"]


@pytest.mark.parametrize(
    "text",
    [
        "version: 1\nmodels: !!python/object/apply:os.system ['id']\n",
        "version: 1\nmodels: [!include m.yaml]\n",
        "version: 1\nmodels: [{name: m, source: m.onnx, warmup: !!set {1, 2}}]\n",
        "version: 1\nmodels: [{name: m, source: m.onnx, batching: !env {max: x}}]\n",
        "version: 1\nmodels: [{name: m, source: !!map [m.onnx]}]\n",
        "version: 1\nmodels: [{name: m, source: m.onnx, labels: !env {y: none.txt}}]\n",
        "--- !env\nversion: 1\nmodels: [{name: m}]\n",
    ],
)
def test_a_tag_is_one_finding(folder, text):
    assert folder.finding(text).code == "TG006"


def test_importing_the_spec_stays_light():
    code = "import sys, tritongen.spec; print(sorted({'onnx', 'onnxruntime', 'numpy', 'tritonclient', 'locust'} & set(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert answer.stdout.strip() == "[]"


def test_a_mapping_whose_only_key_cannot_be_read_is_not_called_empty(folder):
    with pytest.raises(SpecError) as refused:
        folder.load("version: 1\nmodels:\n  - name: m\n    sources: {99999999999999999999: m.onnx}\n")
    assert [finding.code for finding in refused.value.diagnostics] == ["TG006"]
