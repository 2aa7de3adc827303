"""Values of `deploy`, and of `server` where its lists say something twice: what is read, and what is refused at its key."""

from __future__ import annotations

import pytest

from tritongen.errors import SpecError
from tritongen.spec import load_spec

DIGEST = "0" * 64


def read(folder, text):
    path = folder / "spec.yaml"
    path.write_text(f"version: 1\n{text}\nmodels: [{{name: m, source: m.onnx}}]\n")
    return load_spec(path).spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deploy: {gpus: [0, GPU-1]}", "by number and others by id"),
        ("deploy: {user: '2147483648'}", "2147483648 is no user or group"),
        ("deploy: {user: '1:99999999999'}", "is not a user's number"),
        ("deploy: {user: -1}", ""),
        ("deploy: {ulimits: {nofile: -1}}", "-1 is no number of open files"),
        ("deploy: {ulimits: {nofile: 1048577}}", "1048577 is no number of open files"),
        ("deploy: {name: Upper}", "is not the name of a compose project"),
        ("server: {listen: {address: 'fe80::1%eth0'}}", "is not the number of a network interface"),
        ("deploy: {memory: 5MiB}", "5.00 MiB is too little"),
        ("deploy: {shm_size: 64KiB}", "64.0 KiB is too little"),
        ("deploy: {start_period: 1500ms}", "the deployment counts in whole seconds"),
        ("deploy: {image: 'a//b'}", "is not the name of an image"),
        ("deploy: {image: Upper}", "is not the name of an image"),
        ("deploy: {image: 'a:b:c'}", "is not the name of an image"),
        ("deploy: {image: 'a@sha256:12'}", "is not the name of an image"),
        ("deploy: {monitoring: {grafana_image: 'a/'}}", "is not the name of an image"),
        ("server: {host_policies: {p: {cpu_cores: '0-3,5-1'}}}", "5-1 holds no core"),
        ("server: {rate_limit: {resources: [{name: r, count: 1}, {name: r, count: 2}]}}", "resource 'r' is listed twice"),
        ("server: {memory: {gpus: [{gpu: 1, pool: 1MiB}, {gpu: 1, load_limit: 0.5}]}}", "GPU 1 is listed twice"),
        ("server: {metrics: {summary_quantiles: [{quantile: 0.5, error: 0.1}, {quantile: 0.5, error: 0.2}]}}", "quantile 0.5 is listed twice"),
    ],
)
def test_what_no_container_or_server_takes_is_refused(tmp_path, text, said):
    with pytest.raises(SpecError) as refused:
        read(tmp_path, text)
    # The model file is not there, and not what this is about.
    (finding,) = (each for each in refused.value.diagnostics if each.code != "TG020")
    assert said in finding.message
    assert finding.location.line == 2


@pytest.mark.parametrize(
    "image",
    [
        "tritonserver",
        "r.example:5000/a/b_c/d--e:25.08-py3",
        f"nvcr.io/nvidia/tritonserver@sha256:{DIGEST}",
        f"Host.example/a:T_1.x@sha256:{DIGEST}",
        "localhost/a",
    ],
)
def test_images_are_named_as_registries_have_them(tmp_path, image):
    assert read(tmp_path, f"deploy: {{image: '{image}'}}").deploy.image == image


def test_a_user_may_be_a_plain_number(tmp_path):
    assert read(tmp_path, "deploy: {user: 1001}").deploy.user == "1001"


def test_one_resource_may_have_a_count_for_each_gpu(tmp_path):
    text = "server: {rate_limit: {resources: [{name: r, count: 1}, {name: r, count: 2, gpu: 0}, {name: r, count: 2, gpu: 1}]}}"
    assert len(read(tmp_path, text).server.rate_limit.resources) == 3


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("listen: {http: 8001}", ["http has port 8001, which grpc has by default"]),
        ("listen: {http: 8002}", ["http has port 8002, which metrics has by default"]),
        ("listen: {grpc: 8002}", ["grpc has port 8002, which metrics has by default"]),
        ("listen: {metrics: 8000}", ["metrics has port 8000, which http has by default"]),
        ("listen: {http: 9000, grpc: 9000, metrics: 9000}", ["grpc has port 9000, which http has", "metrics has port 9000, which http has"]),
        ("metrics: {enabled: true}, listen: {http: 8002}", ["http has port 8002, which metrics has by default"]),
        ("metrics: {enabled: false}, listen: {http: 8001}", ["http has port 8001, which grpc has by default"]),
        ("metrics: {enabled: false}, listen: {http: 8001, grpc: 8001}", ["grpc has port 8001, which http has"]),
    ],
)
def test_protocols_that_are_served_have_ports_of_their_own(tmp_path, server, said):
    with pytest.raises(SpecError) as refused:
        read(tmp_path, f"server: {{{server}}}")
    found = [each for each in refused.value.diagnostics if each.code == "TG015"]
    assert [each.message.partition("; ")[0] for each in found] == said


@pytest.mark.parametrize(
    "server",
    [
        "metrics: {enabled: false}, listen: {http: 8002}",
        "metrics: {enabled: false}, listen: {grpc: 8002}",
        "listen: {http: 9000, metrics: 9000}, metrics: {enabled: false}",
        "listen: {http: 8001, grpc: 8000}",
    ],
)
def test_the_port_of_what_is_not_served_is_free(tmp_path, server):
    assert read(tmp_path, f"server: {{{server}}}").server.listen.grpc
