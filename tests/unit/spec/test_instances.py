"""The keys of a group of instances."""

import pytest


@pytest.mark.parametrize(
    ("text", "code", "words", "hint"),
    [
        ("gpus: [MIG-41b35014-745f-5a11-ad7c-5b8f6ffdb8b9]", "TG010", "a GPU is a number, and this is the text 'MIG-41b3", "docker run --gpus 'device=MIG-"),
        ("gpus: ['0']", "TG010", "expected a whole number, got the text '0'", "remove the quotes"),
        ("profiles: [2, 0]", "TG011", "profiles must ascend, each once: 0 stands after 2", "write [0, 2]"),
        ("profiles: ['0']", "TG010", "expected a whole number, got the text '0'", "remove the quotes"),
        ("profiles: 0", "TG010", "expected a list, got the number 0", "write [0]"),
        ("dla: -1", "TG011", "must be at least 0, and it is -1", "at least 0"),
        ("host_policy: 'a,b'", "TG011", "the name 'a,b' cannot be written in the server's --host-policy=", "without ','"),
        ("host_policy: ''", "TG011", "the name '' cannot be written", "write a name"),
        ("rate_limiter: {resources: [{count: 1}]}", "TG009", "'name' is missing", "add name:"),
        ("rate_limiter: {resources: [{name: 'a:b'}]}", "TG011", "the name 'a:b' cannot be written in the server's --rate-limit-resource=", "without ':'"),
        ("rate_limiter: {resources: [{name: a, count: 0}]}", "TG011", "must be at least 1, and it is 0", "at least 1"),
        ("rate_limiter: {resources: [{name: a, is_global: true}]}", "TG008", "there is no key 'is_global'", "global"),
        ("rate_limiter: {priority: 0}", "TG011", "must be at least 1, and it is 0", "at least 1"),
    ],
)
def test_one_finding_for_one_mistake(folder, text, code, words, hint):
    finding = folder.model_finding(f"instances: [{{kind: gpu, {text}}}]")
    assert finding.code == code
    assert words in finding.message
    assert hint in finding.hint


def test_what_triton_does_with_the_devices_of_a_container_is_said(folder):
    assert "MIG devices included" in folder.model_finding("instances: {kind: gpu, gpus: [GPU-5c6b]}").consequence


@pytest.mark.parametrize(("text", "code"), [("cpus: 0", "TG011"), ("cpus: '8'", "TG010"), ("cpus: 2.5", "TG010")])
def test_cores_are_a_number(folder, text, code):
    assert folder.finding(f"version: 1\ntriton: {{{text}}}\nmodels: [{{name: m, source: m.onnx}}]").code == code
