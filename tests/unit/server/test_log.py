"""Reading Triton's log. The lines are those of tritonserver 2.51.0."""

from __future__ import annotations

from tritongen.server import log

HEAD = "1129 18:47:30.810705 5443"
TEXT = f"""\
I{HEAD} model_lifecycle.cc:472] "loading: good:1"
E{HEAD} model_repository_manager.cc:1460] "Poll failed for model directory 'plat': unexpected platform type 'onnxruntime' for plat"
[libprotobuf ERROR] Error parsing text-format inference.ModelConfig: 6:14: Message type "inference.ModelConfig" has no field named "max_batchsize".
E{HEAD} model_repository_manager.cc:1460] "Poll failed for model directory 'text': failed to read text proto from /r/text/config.pbtxt"
E{HEAD} model_repository_manager.cc:724] "failed to load model 'ver': at least one version must be available under the version policy of model 'ver'"
I{HEAD} model_lifecycle.cc:472] "loading: back:1"
I{HEAD} model_lifecycle.cc:472] "loading: slow:3"
noise of a stub without a head
E{HEAD} model_lifecycle.cc:642] "failed to load 'back' version 1: Internal: TritonModelException: a \\"quoted\\" reason;\\n\\nAt:\\n  /x.py(2): init\\n"
I{HEAD} model_lifecycle.cc:777] "failed to load 'back'"
I{HEAD} model_lifecycle.cc:839] "successfully loaded 'good'"
tritongen-remark: {{"model": "good", "text": "runs on the CPU"}}
tritongen-remark: {{"model": "good", "text": "runs on the CPU"}}
+-------+---------+
| Model | Status  |
+-------+---------+
error: creating server: Internal - failed to load all models
"""


def test_every_kind_of_reason_is_found():
    found = log.read(TEXT)
    assert found.reasons == {
        "plat": "unexpected platform type 'onnxruntime' for plat",
        "text": "failed to read text proto from /r/text/config.pbtxt: "
        'config.pbtxt:6:14: Message type "inference.ModelConfig" has no field named "max_batchsize".',
        "ver": "at least one version must be available under the version policy of model 'ver'",
        "back": 'Internal: a "quoted" reason',
    }
    assert found.states == {"good": "READY", "plat": "UNAVAILABLE", "text": "UNAVAILABLE", "ver": "UNAVAILABLE", "back": "UNAVAILABLE", "slow": "LOADING"}
    assert found.fatal == "creating server: Internal - failed to load all models"
    assert found.remarks == (("good", "runs on the CPU"),)
    assert found.taken_ports == frozenset()
    assert not found.ending
    assert log.read(f'I{HEAD} server.cc:305] "Waiting for in-flight requests to complete."').ending


def test_the_other_log_format_reads_the_same():
    line = "2026-11-29T18:47:33Z E 5476 model_repository_manager.cc:1460] \"Poll failed for model directory 'm': a reason\""
    assert log.read(line).reasons == {"m": "a reason"}


def test_a_parse_error_belongs_to_the_next_model_only():
    lines = [line for line in TEXT.splitlines() if "text" in line or "plat" in line]
    lines.append(f"E{HEAD} model_repository_manager.cc:1460] \"Poll failed for model directory 'later': failed to read text proto from /r/later/config.pbtxt\"")
    assert log.read("\n".join(lines)).reasons["later"] == "failed to read text proto from /r/later/config.pbtxt"


def test_a_remark_that_another_line_ran_into_is_no_remark():
    assert log.read(log.REMARK + '{"model": "m", "teI1129 18:47:30 some other line').remarks == ()


def test_a_stub_that_could_not_be_executed():
    lines = "Failed to run python backend stub. Errno = 2\nPython backend stub path: /x/triton_python_backend_stub\n"
    assert log.read(TEXT).stub_error is None
    assert log.read(TEXT + lines).stub_error == 2


def test_taken_ports():
    text = "\n".join(
        f"E{HEAD} main.cc:245] \"failed to start {service} service: Unavailable - Socket '127.0.0.1:{port}' already in use \""
        for service, port in (("GRPC", 8001), ("HTTP", 8000))
    )
    assert log.read(text).taken_ports == {8000, 8001}


def test_the_tail_leaves_tables_out():
    assert "+---" not in log.tail(TEXT)
    assert log.tail(TEXT, 1) == "error: creating server: Internal - failed to load all models"
